"""Throughput against queueing delay: a point per flow and trial, an ellipse per scheme."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from astraea.report.bottleneck import link_slots
from astraea.report.charts.base import Chart, Context, Spec, label, names, number
from astraea.report.distribution import ellipse
from astraea.report.labels import domain, places
from astraea.report.lifetimes import spans
from astraea.report.sampling import Floats, floats, groups, rounded, slot_length

MAX_POINTS = 400
"""Points drawn per scheme; the ellipses are computed from all."""


def tradeoff(context: Context) -> Chart | None:
    """The chart, or None where series or links were not recorded."""
    points = _points(context)
    if not points:
        return None
    marks: dict[str, list[Any]] = {key: [] for key in ("cc", "kind", "x", "y", "i", "what")}

    def add(cc: str, kind: str, x: Floats, y: Floats, what: list[str]) -> None:
        marks["cc"] += [cc] * len(x)
        marks["kind"] += [kind] * len(x)
        marks["x"] += rounded(x)
        marks["y"] += rounded(y)
        marks["i"] += list(range(len(x)))
        marks["what"] += what

    for cc in context.schemes:
        if cc not in points:
            continue
        x, y, what = points[cc]
        every = -(-len(x) // MAX_POINTS)
        add(cc, "point", x[::every], y[::every], what[::every])
        add(cc, "centre", x.mean(keepdims=True), y.mean(keepdims=True), [f"mean of {len(x)}"])
        outline = ellipse(x, y)
        if outline:
            add(cc, "ellipse", *outline, [""] * len(outline[0]))
    ends = [domain(np.array(marks["x"]), zero=True), domain(np.array(marks["y"]), zero=False)]
    centres = [i for i, kind in enumerate(marks["kind"]) if kind == "centre"]
    x, y = (np.array([marks[axis][i] for i in centres]) for axis in ("x", "y"))
    # The horizontal axis runs backwards.
    spots = places(x, y, [marks["cc"][i] for i in centres], ends[0][::-1], ends[1])
    for position, prop in enumerate(("dx", "dy", "align")):
        marks[prop] = [None] * len(marks["x"])
        for i, spot in zip(centres, spots, strict=True):
            marks[prop][i] = spot[position]
    return Chart(
        key="tradeoff",
        title="Throughput and delay",
        how="A faint point per flow and trial (means over its life), their mean, and the ellipse of one standard "
        "deviation. Delay grows to the left, so that the upper right corner is best; a flat ellipse "
        "means equal flows.",
        spec=_spec(context, ends, "ellipse" in marks["kind"]),
        data={"tradeoff": {"columns": marks}},
    )


def _points(context: Context) -> dict[str, tuple[Floats, Floats, list[str]]]:
    """Per scheme: queueing delay (ms) and throughput (Mbit/s) of each flow over its life."""
    run = context.run
    if run.series is None or run.links is None:
        return {}
    waits = {key: (floats(part, "t"), floats(part, "queue_delay")) for key, part in link_slots(run)}
    lives = {(trial.number, trial.cc): spans(trial, context.duration_s) for trial in run.trials}
    numbers = run.trial_numbers
    slot = slot_length(floats(run.series, "t")) if run.series.height else 0.0
    found: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for (trial, cc, flow), part in groups(run.series, "trial", "cc", "flow"):
        life = lives.get((trial, cc), [])
        if (trial, cc) not in waits or flow >= len(life):
            continue
        start, end = life[flow]
        x = _mean_between(*waits[trial, cc], start, end - slot)
        y = _mean_between(floats(part, "t"), floats(part, "throughput"), start, end - slot)
        if np.isfinite(x) and np.isfinite(y):
            found[cc].append((x, y, f"flow {flow + 1} of trial {numbers.index(trial) + 1}"))
    return {
        cc: (np.array([p[0] for p in rows]), np.array([p[1] for p in rows]), [p[2] for p in rows])
        for cc, rows in found.items()
    }


def _mean_between(t: Floats, y: Floats, start: float, end: float) -> float:
    inside = y[(t >= start - 1e-9) & (t <= end + 1e-9)]
    inside = inside[np.isfinite(inside)]
    return float(inside.mean()) if inside.size else float("nan")


def _spec(context: Context, ends: list[list[float]], ellipses: bool) -> Spec:
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": "queueing delay (ms), better →",
        "scale": {"reverse": True, "domain": ends[0], "nice": True},
        "axis": {"tickCount": 6},
    }
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "title": "throughput of a flow (Mbit/s)",
        "scale": {"domain": ends[1], "nice": True},
        "axis": {"tickCount": 5},
    }
    paint = context.look.colour(legend=False)
    place = {"x": x, "y": y, "color": paint}
    tooltip = [
        label("cc", "scheme"),
        label("what", "point"),
        number("x", "queueing delay (ms)"),
        number("y", "throughput (Mbit/s)"),
    ]
    outline = {
        "transform": [{"filter": "datum.kind === 'ellipse'"}],
        "mark": {
            "type": "line",
            "interpolate": "linear-closed",
            "strokeWidth": 1.5,
            "fillOpacity": 0.1,
            "clip": True,
        },
        "encoding": {**place, "fill": paint, "order": {"field": "i"}},
    }
    return {
        "data": {"name": "tradeoff"},
        "layer": [
            *([outline] if ellipses else []),
            {
                "transform": [{"filter": "datum.kind === 'point'"}],
                "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.4},
                "encoding": {**place, "shape": context.look.shape(), "tooltip": tooltip},
            },
            {
                "transform": [{"filter": "datum.kind === 'centre'"}],
                "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
                "encoding": {**place, "shape": context.look.shape(), "tooltip": tooltip},
            },
            {"transform": [{"filter": "datum.kind === 'centre'"}], **names(x, y, paint)},
        ],
    }
