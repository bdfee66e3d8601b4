"""Pictures: the two backends against each other, and each setting's course."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import vl_convert

from astraea.fidelity.measure import Pair
from astraea.report import theme

Spec = dict[str, Any]

DASHES = ([1, 0], [5, 3])
"""The two differ in dash as well as in colour."""


def scatter(entries: list[dict[str, Any]], metric: str, title: str, backend: str = "kernel") -> str | None:
    """A point for each setting and scheme: the backend's value against the simulator's, as SVG; None without values."""
    rows = [
        {"x": entry[backend][metric], "y": entry["sim"][metric], "cc": entry["cc"], "setting": entry["setting"]}
        for entry in entries
        if entry[backend][metric] and entry["sim"][metric]
    ]
    if not rows:
        return None
    schemes = list(dict.fromkeys(row["cc"] for row in rows))
    values = [row[axis] for row in rows for axis in "xy"]
    ends = [min(values) / 1.3, max(values) * 1.3]
    scale = {"type": "log", "domain": ends, "nice": False}
    ticks = {"format": "~g", "tickCount": 6}
    x: Spec = {"field": "x", "type": "quantitative", "title": f"{title}, {backend}", "scale": scale, "axis": ticks}
    y: Spec = {"field": "y", "type": "quantitative", "title": f"{title}, simulator", "scale": scale, "axis": ticks}
    even = {"values": [{"x": end, "y": end} for end in ends]}
    rule = {"type": "line", "strokeDash": [3, 3], "color": {"expr": "muted"}}
    points = {
        "data": {"values": rows},
        "mark": {"type": "point", "size": 60, "strokeWidth": 1.6},
        "encoding": {"x": x, "y": y, **_by_scheme(schemes)},
    }
    layers = [{"data": even, "mark": rule, "encoding": {"x": x, "y": y}}, points]
    return _svg({"layer": layers, "width": 300, "height": 300})


def course(pair: Pair) -> str:
    """Throughput, window and queueing delay over time of both backends' first trials, as SVG."""
    rows: list[Spec] = []
    names = (pair.backend, "simulator")
    for name, measured in zip(names, (pair.kernel, pair.sim), strict=True):
        columns: Mapping[str, list[float | None]] = measured.course
        for slot, t in enumerate(columns["t"]):
            rows.append({"backend": name, "t": t} | {key: columns[key][slot] for key in TITLES})
    panels = [_panel(rows, names, key, title, last=key == list(TITLES)[-1]) for key, title in TITLES.items()]
    return _svg({"vconcat": panels, "spacing": 10})


TITLES = {"throughput": "Mbit/s", "cwnd": "window, packets", "queue_delay": "queue, ms"}


def _panel(rows: list[Spec], names: tuple[str, str], key: str, title: str, *, last: bool) -> Spec:
    colours = {"domain": list(names), "range": list(theme.SCHEME_COLOURS["light"][:2])}
    dashes = {"domain": list(names), "range": list(DASHES)}
    legend = None if key != "throughput" else {"title": None}
    own = [{"backend": row["backend"], "t": row["t"], "y": row[key]} for row in rows]
    return {
        "data": {"values": own},
        "mark": {"type": "line", "strokeWidth": 1.4},
        "width": 640,
        "height": 90,
        "encoding": {
            "x": {"field": "t", "type": "quantitative", "title": "s" if last else None, "scale": {"nice": False}},
            "y": {"field": "y", "type": "quantitative", "title": title, "axis": {"tickCount": 4}},
            "color": {"field": "backend", "type": "nominal", "scale": colours, "legend": legend},
            "strokeDash": {"field": "backend", "type": "nominal", "scale": dashes, "legend": legend},
        },
    }


def _by_scheme(schemes: list[str]) -> Spec:
    index = theme.scheme_index(schemes)

    def scale(values: Any) -> Spec:
        return {"domain": schemes, "range": [theme.pick(values, index[cc]) for cc in schemes]}

    legend = {"title": None}
    return {
        "color": {
            "field": "cc",
            "type": "nominal",
            "scale": scale(theme.SCHEME_COLOURS["light"]),
            "legend": legend,
        },
        "shape": {"field": "cc", "type": "nominal", "scale": scale(theme.SHAPES), "legend": legend},
    }


def _svg(chart: Spec) -> str:
    return vl_convert.vegalite_to_svg({**chart, "config": theme.vega_config("either")})
