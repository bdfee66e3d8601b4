"""The two figures: what a policy does as the delay grows, and at which delay flows of different throughputs rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import vl_convert

from astraea.explain.grid import BASES, DELAYS, crossing
from astraea.explain.model import Model
from astraea.explain.steady import BASE, PEAK, Floats, Situation
from astraea.report import theme

FLOWS = np.array([5e6, 10e6, 25e6, 50e6, 100e6, 200e6])
"""Throughputs of the flows of figure 17, bit/s."""

MAP = np.geomspace(0.5e6, 1000e6, 67)
"""Throughputs of the map, bit/s."""

DASHES = ([1, 0], [8, 3], [3, 3], [10, 3, 3, 3], [16, 4], [6, 2, 2, 2, 2, 2], [2, 5])
"""Lines differ by these, too."""

ALIKE = 0.01
"""Lines of the map that differ by less than this share lie on each other."""

Spec = dict[str, Any]


def actions(model: Model) -> dict[str, Any]:
    """Figure 17: the step in % of the window against the queueing delay in ms, for flows of several throughputs."""
    rest = crossing(model.step(Situation(FLOWS[:, None], DELAYS, BASE, peak=PEAK)), DELAYS)
    longest = float(np.nanmax(rest)) if np.isfinite(rest).any() else 0.1
    delays = np.linspace(0, min(max(2 * longest, 0.005), DELAYS[-1]), 201)
    steps = 100 * model.step(Situation(FLOWS[:, None], delays, BASE, peak=PEAK))
    flows = [
        {"throughput_mbps": float(rate / 1e6), "step_percent": _floats(line), "rest_ms": _milliseconds(at)}
        for rate, line, at in zip(FLOWS, steps, rest, strict=True)
    ]
    return {"peak_mbps": PEAK / 1e6, "base_rtt_ms": 1e3 * BASE, "delay_ms": _floats(1e3 * delays), "flows": flows}


def equilibria(model: Model) -> dict[str, Any]:
    """The map: delay in ms at which flows rest, over their throughput, for several base round-trip times."""
    throughputs = MAP[MAP <= PEAK] if model.form == "paper" else MAP
    lines = [crossing(model.step(Situation(throughputs[:, None], DELAYS, base, peak=PEAK)), DELAYS) for base in BASES]
    first = lines[0]
    same = bool(np.isfinite(first).any()) and all(
        np.allclose(line, first, rtol=ALIKE, equal_nan=True) for line in lines
    )
    return {
        "peak_mbps": PEAK / 1e6,
        "throughput_mbps": _floats(throughputs / 1e6),
        "same_for_all_rtts": same,
        "lines": [
            {"base_rtt_ms": 1e3 * base, "rest_ms": [_milliseconds(at) for at in line]}
            for base, line in zip(BASES, lines, strict=True)
        ],
    }


def _floats(values: Floats) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _milliseconds(seconds: float) -> float | None:
    return float(f"{1e3 * seconds:.6g}") if np.isfinite(seconds) else None


def actions_chart(found: dict[str, Any]) -> Spec:
    """Figure 17 of explain.json's object, as Vega-Lite."""
    data = found["actions"]
    names = [f"{flow['throughput_mbps']:g} Mbit/s" for flow in data["flows"]]
    rows = [
        {"flow": name, "x": x, "y": y}
        for name, flow in zip(names, data["flows"], strict=True)
        for x, y in zip(data["delay_ms"], flow["step_percent"], strict=True)
    ]
    rests = [
        {"flow": name, "x": flow["rest_ms"], "y": 0}
        for name, flow in zip(names, data["flows"], strict=True)
        if flow["rest_ms"] is not None and flow["rest_ms"] <= data["delay_ms"][-1]
    ]
    x = {"field": "x", "type": "quantitative", "title": "queueing delay (ms)", "scale": {"nice": False}}
    y = {"field": "y", "type": "quantitative", "title": "change of the window per period (%)"}
    layers = [
        {"data": {"values": [{"y": 0}]}, "mark": {"type": "rule", "color": {"expr": "muted"}}, "encoding": {"y": y}},
        _line(rows, (x, y), "flow", names, "own throughput"),
        {
            "data": {"values": rests},
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": _colour("flow", names)},
        },
    ]
    return _chart(layers)


def equilibria_chart(found: dict[str, Any]) -> Spec:
    """The map of explain.json's object, as Vega-Lite. Lines that lie on each other are drawn as one."""
    data = found["equilibria"]
    lines = data["lines"]
    names = [f"{line['base_rtt_ms']:g} ms" for line in lines]
    if data["same_for_all_rtts"]:
        names, lines = [f"{names[0]} to {names[-1]}, all alike"], lines[:1]
    rows = [
        {"rtt": name, "x": x, "y": y}
        for name, line in zip(names, lines, strict=True)
        for x, y in zip(data["throughput_mbps"], line["rest_ms"], strict=True)
        if y is not None and y > 0
    ]
    decades = [10**power * digit for power in range(-2, 4) for digit in (1, 3)]
    axis = {"format": "~g", "values": decades}
    ends = [data["throughput_mbps"][0], data["throughput_mbps"][-1]]
    x: Spec = {"field": "x", "type": "quantitative", "title": "own throughput (Mbit/s)", "axis": axis}
    x["scale"] = {"type": "log", "nice": False, "domain": ends}
    y: Spec = {"field": "y", "type": "quantitative", "title": "queueing delay at rest (ms)", "axis": axis}
    y["scale"] = {"type": "log"}
    if rows:
        return _chart([_line(rows, (x, y), "rtt", names, "base RTT")])
    nothing = {"type": "text", "text": "the step crosses zero once for no flow", "color": {"expr": "muted"}}
    middle = {"values": [{"x": float(np.sqrt(ends[0] * ends[1])), "y": 1}]}
    y["scale"] = {"type": "log", "domain": [0.1, 10]}
    return _chart([{"data": middle, "mark": nothing, "encoding": {"x": x, "y": y}}])


def _line(rows: list[Spec], axes: tuple[Spec, Spec], field: str, names: Sequence[str], title: str) -> Spec:
    dash = _by(field, names, list(DASHES[: len(names)]))
    legend = {"symbolType": "stroke", "symbolSize": 300}
    return {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": axes[0],
            "y": axes[1],
            # With the same legend they share one.
            "color": {**_colour(field, names), "title": title, "legend": legend},
            "strokeDash": {**dash, "title": title, "legend": legend},
        },
    }


def _colour(field: str, names: Sequence[str]) -> Spec:
    return _by(field, names, theme.flow_colours("either", len(names)))


def _by(field: str, names: Sequence[str], values: Sequence[Any]) -> Spec:
    scale = {"domain": list(names), "range": list(values)}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def _chart(layers: list[Spec]) -> Spec:
    config = theme.vega_config("either")
    config["legend"] |= {"titlePadding": 14}
    return {"layer": layers, "width": 640, "height": 300, "config": config}


def svg(chart: Spec) -> str:
    """A figure as SVG, legible on white and on black."""
    return vl_convert.vegalite_to_svg(chart)


def png(chart: Spec) -> bytes:
    """A figure as PNG, twice the size, on a transparent background."""
    return vl_convert.vegalite_to_png(chart, scale=2)
