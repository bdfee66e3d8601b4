"""How fast the flows settle against how steady they are afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from astraea.report.charts.base import Chart, Context, Spec, label, names, number
from astraea.report.labels import domain, places

SETTLE, STABILITY, UNSETTLED = "convergence_settle_s", "stability_mbps", "unsettled_events"

BAR = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.6, "clip": True}
"""An interval by Student's t may reach below zero, where there are no times."""


def convergence(context: Context) -> Chart | None:
    """The chart, or None where no scheme has both metrics."""
    rows = [row for cc in context.schemes if (row := _row(context, cc))]
    if not rows:
        return None
    absent = [cc for cc in context.schemes if cc not in {row["cc"] for row in rows}]
    notes = []
    if any(row["unsettled"] for row in rows):
        notes.append("Hollow: some events never settled.")
    if absent:
        notes.append(f"Not defined for {', '.join(absent)}.")
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    ends = {
        axis: domain(
            np.array([v for key in keys for v in columns[key] if v is not None], dtype=np.float64),
            zero=True,
        )
        for axis, keys in (("x", ("x", "x1")), ("y", ("y", "y1")))
    }
    spots = places(np.array(columns["x"]), np.array(columns["y"]), columns["cc"], ends["x"], ends["y"])
    for position, prop in enumerate(("dx", "dy", "align")):
        columns[prop] = [spot[position] for spot in spots]
    return Chart(
        key="convergence",
        title="Convergence and stability",
        how="One mark per scheme, mean over trials; bars are 95 % intervals. "
        "Down is faster to settle, left is steadier: the lower left corner is best.",
        note=" ".join(notes),
        spec=_spec(context, ends),
        data={"convergence": {"columns": columns}},
    )


def _row(context: Context, cc: str) -> dict[str, Any] | None:
    summary = context.run.summary[cc]
    settle, steady = summary.get(SETTLE) or {}, summary.get(STABILITY) or {}
    if settle.get("mean") is None or steady.get("mean") is None:
        return None
    return {
        "cc": cc,
        "y": settle["mean"],
        "y0": settle.get("low"),
        "y1": settle.get("high"),
        "x": steady["mean"],
        "x0": steady.get("low"),
        "x1": steady.get("high"),
        "n": settle.get("n"),
        "unsettled": (summary.get(UNSETTLED) or {}).get("mean") or 0,
    }


def _spec(context: Context, ends: dict[str, list[float]]) -> Spec:
    def axis(field: str, title: str) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": {"domain": ends[field[0]], "nice": True},
            "axis": {"tickCount": 5},
        }

    x = axis("x", "standard deviation of throughput (Mbit/s)")
    y = axis("y", "time to settle (s)")
    paint = context.look.colour(legend=False)
    tooltip = [
        label("cc", "scheme"),
        number("y", "settles in (s)"),
        number("y0", "95 % from"),
        number("y1", "to"),
        number("x", "std. deviation (Mbit/s)"),
        number("x0", "95 % from"),
        number("x1", "to"),
        number("unsettled", "unsettled events per trial"),
        number("n", "trials", "d"),
    ]
    return {
        "data": {"name": "convergence"},
        "layer": [
            {
                "transform": [{"filter": "datum.x0 !== null && datum.n > 1"}],
                "mark": BAR,
                "encoding": {"x": axis("x0", x["title"]), "x2": {"field": "x1"}, "y": y, "color": paint},
            },
            {
                "transform": [{"filter": "datum.y0 !== null && datum.n > 1"}],
                "mark": BAR,
                "encoding": {"x": x, "y": axis("y0", y["title"]), "y2": {"field": "y1"}, "color": paint},
            },
            {
                "mark": {"type": "point", "size": 90, "strokeWidth": 2, "filled": False, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": paint,
                    "shape": context.look.shape(),
                    "fill": {
                        "condition": {
                            "test": "datum.unsettled === 0",
                            **{k: paint[k] for k in ("field", "type", "scale", "legend")},
                        },
                        "value": "transparent",
                    },
                    "tooltip": tooltip,
                },
            },
            names(x, y, paint),
        ],
    }
