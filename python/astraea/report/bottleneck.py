"""The bottleneck link of a run: which it is, its queue and what it could have carried."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from astraea.report.run import Run
from astraea.report.sampling import Floats, Grid, Line, floats, groups, smooth

Key = tuple[int, str]
"""Trial number and scheme."""

VARIES = 0.01
"""Relative standard deviation of the capacity from which a link counts as varying."""


def bottleneck(run: Run) -> str | None:
    """Name of the link where packets waited longest, on average over the run."""
    if run.links is None or not run.links.height:
        return None
    waits = (
        run.links.group_by("link", maintain_order=True)
        .agg(pl.col("queue_delay").fill_nan(None).mean().fill_null(0.0))
        .sort("queue_delay", descending=True, maintain_order=True)
    )
    return str(waits["link"][0])


def link_slots(run: Run) -> Iterator[tuple[Key, pl.DataFrame]]:
    """The bottleneck's slots, trial by trial and scheme by scheme."""
    name = bottleneck(run)
    if name is None or run.links is None:
        return
    for key, part in groups(run.links.filter(pl.col("link") == name), "trial", "cc"):
        trial, cc = key
        yield (int(trial), str(cc)), part


def capacity(part: pl.DataFrame) -> Floats:
    """What the link could have carried in each slot, in Mbit/s of goodput."""
    return floats(part, "capacity")


def varies(values: Floats) -> bool:
    """Whether a capacity changes enough to be drawn."""
    known = values[np.isfinite(values)]
    return bool(known.size and known.mean() > 0 and known.std() > VARIES * known.mean())


def capacity_lines(run: Run, grid: Grid) -> dict[Key, Line]:
    """Capacity over time, where it varies (traces, schedules)."""
    lines: dict[Key, Line] = {}
    for key, part in link_slots(run):
        values = capacity(part)
        line = smooth(floats(part, "t"), values, grid) if varies(values) else None
        if line is not None:
            lines[key] = line
    return lines
