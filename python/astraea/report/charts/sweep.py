"""How the metrics change over the points of a sweep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from astraea.report.charts.base import Chart, Spec, label, number
from astraea.report.charts.look import Look
from astraea.report.glossary import METRICS, Metric
from astraea.report.run import Point, Run

FIRST = ("throughput_ratio", "jain", "utilization")
"""Metrics that are put first, if the sweep has them."""


def sweep(run: Run, index: Mapping[str, int]) -> Chart | None:
    """Mean and interval of a metric against each swept key, one panel per key; the metric can be chosen."""
    present = [
        item
        for item in METRICS
        if any(_mean(point, cc, item) is not None for point in run.points for cc in run.schemes)
    ]
    if not present:
        return None
    keys = _varied(run)
    rows: list[dict[str, Any]] = []
    for key, values in keys.items():
        for place, (value, points) in enumerate(values.items()):
            for cc in run.schemes:
                rows += [
                    {"panel": _short(key, keys), "x": value, "place": place, "cc": cc, "choice": item.name, **found}
                    for item in present
                    if (found := _value(points, cc, item))
                ]
    single = all(len(points) == 1 for values in keys.values() for points in values.values())
    intervals = any(row["low"] is not None for row in rows)
    trials = "Mean over trials with its 95 % interval." if intervals else "Mean over trials."
    how = trials if single else "Mean over all points with the same value."
    order = sorted(present, key=lambda item: FIRST.index(item.name) if item.name in FIRST else len(FIRST))
    return Chart(
        key="sweep",
        title="Over the sweep",
        how=how,
        spec=_spec(
            Look(run.schemes, index),
            [_short(key, keys) for key in keys],
            intervals=intervals,
        ),
        data={"sweep": {"columns": {name: [row[name] for row in rows] for name in rows[0]}}},
        panels=len(keys),
        height=220,
        choices=tuple((item.name, f"{item.title} ({item.unit})" if item.unit else item.title) for item in order),
        wide=True,
    )


def _varied(run: Run) -> dict[str, dict[str, list[Point]]]:
    """Swept key -> value as written -> points that have it, in the order of the sweep; constant keys are left out."""
    keys: dict[str, dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for point in run.points:
        for key, value in point.values.items():
            keys[key][str(value)].append(point)
    varied = {key: dict(values) for key, values in keys.items() if len(values) > 1}
    return varied or {"setting": {point.label or str(i + 1): [point] for i, point in enumerate(run.points)}}


def _short(key: str, keys: Mapping[str, Any]) -> str:
    """The last part of a dotted key, unless two keys end alike."""
    last = key.rpartition(".")[2]
    return key if sum(other.rpartition(".")[2] == last for other in keys) > 1 else last


def _value(points: list[Point], cc: str, item: Metric) -> dict[str, float | None]:
    means = [mean for point in points if (mean := _mean(point, cc, item)) is not None]
    if not means:
        return {}
    entry = points[0].summary[cc].get(item.name, {}) if len(points) == 1 else {}
    bounds = {key: None if entry.get(key) is None else entry[key] * item.scale for key in ("low", "high")}
    return {"y": sum(means) / len(means) * item.scale, **bounds}


def _mean(point: Point, cc: str, item: Metric) -> float | None:
    mean = point.summary[cc].get(item.name, {}).get("mean")
    return None if mean is None else float(mean)


def _spec(look: Look, order: list[str], *, intervals: bool) -> Spec:
    x = {
        "field": "x",
        "type": "ordinal",
        "title": None,
        "sort": {"field": "place"},
        "axis": {"labelAngle": 0, "labelOverlap": "greedy"},
    }
    y = {"field": "y", "type": "quantitative", "title": "@choice", "scale": {"zero": False}, "axis": {"tickCount": 5}}
    tooltip = [
        label("cc", "scheme"),
        label("x", "value"),
        number("y", "mean"),
        number("low", "95 % from"),
        number("high", "to"),
    ]
    interval = {
        "transform": [{"filter": "datum.low !== null"}],
        "mark": {"type": "rule", "strokeWidth": 1.5, "strokeOpacity": 0.5},
        "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    return {
        "data": {"name": "sweep"},
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": order},
        "columns": 1,
        "spacing": {"row": 12, "column": 18},
        "resolve": {"scale": {"x": "independent"}, "axis": {"x": "independent"}},
        "spec": {
            "encoding": {"x": x, "color": look.colour(legend=True)},
            "layer": [
                *([interval] if intervals else []),
                {
                    "mark": {"type": "line", "strokeWidth": 1.6},
                    "encoding": {"y": y, "strokeDash": look.dash()},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
                    "encoding": {"y": y, "tooltip": tooltip},
                },
            ],
        },
    }
