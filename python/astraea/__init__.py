"""Astraea: learned congestion control, from simulation to deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astraea._native import __version__
from astraea.errors import UserError

if TYPE_CHECKING:
    from astraea.eval.api import Results, run

__all__ = ["Results", "UserError", "__version__", "run"]


def __getattr__(name: str) -> Any:
    """What evaluates is imported when it is first asked for: it takes longer to load than the environments need."""
    if name not in ("Results", "run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from astraea.eval import api

    return getattr(api, name)
