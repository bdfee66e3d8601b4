"""Fidelity: the same settings in the simulator and on real traffic, and how far the two are apart."""

from __future__ import annotations

from astraea.fidelity.compare import compare
from astraea.fidelity.measure import measure
from astraea.fidelity.write import FILES, write

__all__ = ["FILES", "compare", "measure", "write"]
