"""Checkpoints that are whole or not there.

A checkpoint is one file. It is written under another name, forced to disk, and then renamed over the one before, which
is the only step that anybody can see: whatever interrupts it, `state.pt` is a complete checkpoint.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from astraea.errors import UserError

FORMAT = 2
_NAME, _NEW = "state.pt", ".state.pt.new"


def path(directory: Path) -> Path:
    """The checkpoint of a run's directory."""
    return directory / "checkpoint" / _NAME


def save(directory: Path, state: Mapping[str, Any]) -> None:
    """Replace the checkpoint; `UserError` if that fails, and then the one before is as it was.

    `state` may hold tensors, numbers, strings, lists and dicts of them.
    """
    final = path(directory)
    new = final.with_name(_NEW)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, final)  # noqa: PTH105 - says that it is atomic
        _sync(final.parent)
    except (OSError, RuntimeError) as error:
        # PyTorch turns a failed write into a RuntimeError; what the system said is its cause.
        cause = error if isinstance(error, OSError) else error.__cause__ or error.__context__
        if cause is not None and not isinstance(cause, Exception):
            raise cause from None  # an end that could wait no longer
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(error).partition("\n")[0]
        kept = "; the one before is kept" if final.exists() else ""
        raise UserError(f"{final}: cannot be written: {reason}{kept}") from None
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def load(directory: Path) -> dict[str, Any]:
    """The checkpoint of a run; `UserError` if there is none or it cannot be read.

    Tensors stay in the file until they are looked at: a replay memory need not fit into memory twice. What is kept of
    them is to be copied, or the file stays on the disk when another has taken its place.
    """
    final = path(directory)
    try:
        # weights_only: nothing in the file is executed.
        state: dict[str, Any] = torch.load(final, map_location="cpu", weights_only=True, mmap=True)
    except FileNotFoundError:
        raise UserError(f"{directory}: there is no checkpoint to resume from") from None
    except Exception as error:
        raise UserError(f"{final}: not a readable checkpoint ({type(error).__name__})") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise UserError(f"{final}: not a checkpoint of this version of Astraea")
    return state


def _sync(directory: Path) -> None:
    """Force the names in a directory to disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
