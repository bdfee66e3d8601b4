"""How often the flows shared fairly: distribution of Jain's index over 500 ms slots."""

from __future__ import annotations

from astraea.report.charts.base import Chart, Context, cdf_spec, label, number
from astraea.report.distribution import columns


def jain(context: Context) -> Chart | None:
    """The chart, or None where two flows were never active together."""
    if not context.jain:
        return None
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "Jain's index of a 500 ms slot",
        "scale": {"zero": False, "nice": 5},
        "axis": {"tickCount": 6},
    }
    tooltip = [
        label("cc", "scheme"),
        number("x", "Jain's index", ".3f"),
        number("p", "share of slots at or below", ".0%"),
    ]
    return Chart(
        key="jain",
        title="Distribution of Jain's index",
        how="Share of the slots with at least two flows whose Jain's index is at most x, all "
        "trials. A curve that stays low and rises only near 1 is fairer.",
        spec=cdf_spec(context, "jain", x, tooltip),
        data={"jain": {"columns": columns(context.jain)}},
    )
