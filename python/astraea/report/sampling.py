"""From slots of the recording to lines that can be drawn: smoothing and thinning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOW_S = 0.5
"""Width of the moving average; the papers' figures are drawn at this scale."""
POINTS = 500
"""Points per line that a panel can show; more cannot be told apart."""


@dataclass(frozen=True)
class Grid:
    """Points in time that a chart draws: `step_s` apart, each the mean over `window_s` around it."""

    slot_s: float
    step_s: float
    window_s: float

    @classmethod
    def of(cls, slot_s: float, duration_s: float) -> Grid:
        """A grid for a recording; short ones get a narrower window so that they keep their shape."""
        window = max(slot_s, min(WINDOW_S, duration_s / 40))
        slots = max(1, math.ceil(duration_s / POINTS / slot_s - 1e-9))
        return cls(slot_s, slots * slot_s, window)

    @property
    def step(self) -> int:
        """Slots between two points."""
        return max(1, round(self.step_s / self.slot_s))

    @property
    def half(self) -> int:
        """Slots on either side of a point that its mean covers."""
        return round(self.window_s / self.slot_s) // 2


@dataclass(frozen=True)
class Line:
    """Values at `t0 + i * dt` seconds; NaN where nothing was recorded."""

    t0: float
    dt: float
    y: Floats

    def packed(self, **keys: Any) -> dict[str, Any]:
        """Compact JSON form; `keys` become columns of every point."""
        return {**keys, "t0": round(self.t0, 6), "dt": round(self.dt, 6), "y": rounded(self.y)}


def slot_length(t: Floats) -> float:
    """Length of a slot in seconds from the slots' starts: the smallest step; 10 ms if there is none."""
    steps = np.diff(np.unique(t))
    steps = steps[steps > 1e-9]
    return float(steps.min()) if steps.size else 0.01


def smooth(t: Floats, y: Floats, grid: Grid) -> Line | None:
    """Moving average of one flow's or link's slots, thinned to the grid; None without values.

    Slots without a row, and NaN, count as missing: they do not enter the means. The grid's points
    are multiples of its step, so that the lines of a panel share their times.
    """
    known = np.isfinite(y)
    if not known.any():
        return None
    slot = np.rint(t / grid.slot_s).astype(np.int64)
    first, last = int(slot[known].min()), int(slot[known].max())
    total = np.zeros(last - first + 2)
    count = np.zeros(last - first + 2)
    np.add.at(total, slot[known] - first + 1, y[known])
    np.add.at(count, slot[known] - first + 1, 1.0)
    total, count = np.cumsum(total), np.cumsum(count)
    start = -(-first // grid.step) * grid.step
    at = np.arange(start, last + 1, grid.step) - first
    if not at.size:
        at = np.zeros(1, dtype=np.int64)
        start = first
    low, high = np.maximum(at - grid.half, 0), np.minimum(at + grid.half + 1, last - first + 1)
    n = count[high] - count[low]
    with np.errstate(invalid="ignore"):
        mean = np.where(n > 0, (total[high] - total[low]) / np.maximum(n, 1), np.nan)
    return Line(start * grid.slot_s, grid.step * grid.slot_s, mean)


def groups(table: pl.DataFrame, *keys: str) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    """The parts of `table` by `keys`, in the table's order."""
    yield from table.partition_by(list(keys), as_dict=True, maintain_order=True).items()


def floats(table: pl.DataFrame, column: str) -> Floats:
    """A column as float64, nulls as NaN."""
    return table[column].cast(pl.Float64).fill_null(math.nan).to_numpy()


def rounded(values: Floats, significant: int = 4) -> list[float | None]:
    """Numbers for JSON with few digits (a chart cannot show more); None for NaN."""
    return [float(f"{v:.{significant}g}") if math.isfinite(v) else None for v in values.tolist()]


def spread(items: list[Any], limit: int) -> list[Any]:
    """At most `limit` of `items`, evenly over the list, first and last included."""
    if len(items) <= limit:
        return items
    if limit < 2:
        return items[: max(0, limit)]
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]
