"""Completion times of sized flows and messages."""

from __future__ import annotations

import numpy as np
import polars as pl

from astraea.report.charts.base import Chart, Context, cdf_spec, label, number
from astraea.report.distribution import columns
from astraea.report.sampling import Floats, floats


def completion(context: Context) -> Chart | None:
    """The chart, or None where nothing completed."""
    values = {cc: times for cc in context.schemes if (times := _times(context, cc)).size}
    if not values:
        return None
    counts = ", ".join(f"{cc} {len(times)}" for cc, times in values.items())
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "completion time (s), logarithmic",
        "scale": {"type": "log", "nice": False},
        "axis": {"tickCount": 6, "format": "~g"},
    }
    tooltip = [
        label("cc", "scheme"),
        number("x", "completion time (s)"),
        number("p", "share completed", ".0%"),
    ]
    return Chart(
        key="completion",
        title="Completion times",
        how="Share of the transfers that completed within x, all trials. Further left is faster.",
        note=f"Transfers completed: {counts}.",
        spec=cdf_spec(context, "completion", x, tooltip),
        data={"completion": {"columns": columns(values)}},
    )


def _times(context: Context, cc: str) -> Floats:
    """Completion times in seconds of everything that `cc` completed."""
    table = context.run.completions
    if table is None:
        return np.zeros(0)
    times = floats(table.filter(pl.col("cc") == cc), "time")
    return times[np.isfinite(times) & (times > 0)]
