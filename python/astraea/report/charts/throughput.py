"""The flows' throughput over time, one panel per scheme (the form of figure 6 of the paper)."""

from __future__ import annotations

import numpy as np

from astraea.report.bottleneck import capacity_lines
from astraea.report.charts.base import (
    Chart,
    Context,
    Spec,
    cursor,
    label,
    number,
    panels,
    time_axis,
)
from astraea.report.lifetimes import flow_labels, spans
from astraea.report.sampling import floats, groups, smooth, spread

MAX_FLOWS = 24
"""Flows drawn per panel: more lines cannot be told apart."""
LEGEND_FLOWS = 10


def throughput(context: Context) -> Chart | None:
    """The chart, or None where no series was recorded."""
    lines, flows, total = _lines(context)
    if not lines:
        return None
    names = flow_labels(context.run.trials)
    names += [str(flow + 1) for flow in range(len(names), max(flows) + 1)]
    kinds = {line["kind"] for line in lines}
    for line in lines:
        if line["kind"] == "flow":
            line["name"] = names[int(line["key"][1:])]
    note = f"{len(flows)} of {total} flows are drawn." if len(flows) < total else ""
    how = f"One colour per flow, in the order of arrival; moving average over {context.grid.window_s:.2g} s."
    if "fair" in kinds:
        how += " Dashed: the fair share of each active flow, on which the lines should meet."
    if "capacity" in kinds:
        how += " Grey: what the link could have carried."
    return Chart(
        key="throughput",
        title="Throughput over time",
        how=how,
        note=note,
        spec=_spec(context, [(f"f{flow}", names[flow]) for flow in flows], lines),
        data={"throughput": {"lines": lines}},
        panels=len(context.schemes),
        flows=len(flows),
        height=150,
        wide=True,
    )


def _lines(context: Context) -> tuple[list[Spec], list[int], int]:
    """Packed lines, the numbers of the flows drawn, and how many flows there are."""
    table = context.run.series
    if table is None or not table.height:
        return [], [], 0
    everyone = sorted(table["flow"].unique().to_list())
    flows = spread(everyone, MAX_FLOWS)
    grid = context.grid
    lives = {(trial.number, trial.cc): spans(trial, context.duration_s) for trial in context.run.trials}
    lines: list[Spec] = []
    for (trial, cc, flow), part in groups(table, "trial", "cc", "flow"):
        if trial not in context.embedded or flow not in flows or cc not in context.index:
            continue
        t, y = floats(part, "t"), floats(part, "throughput")
        life = lives.get((trial, cc), [])
        if flow < len(life):
            start, end = life[flow]
            # Slots that a flow's life only touches would bend the ends of its line down.
            y = np.where((t >= start - 1e-9) & (t + grid.slot_s <= end + 1e-9), y, np.nan)
        line = smooth(t, y, grid)
        if line is not None:
            lines.append(line.packed(cc=cc, trial=trial, kind="flow", key=f"f{flow}"))
    for (trial, cc), shares in context.fair.items():
        if trial in context.embedded and cc in context.index:
            lines += [share.packed(cc=cc, trial=trial, kind="fair", key=f"fair{i}") for i, share in enumerate(shares)]
    for (trial, cc), line in capacity_lines(context.run, grid).items():
        if trial in context.embedded and cc in context.index:
            lines.append(line.packed(cc=cc, trial=trial, kind="capacity", key="capacity"))
    return lines, flows, len(everyone)


def _spec(context: Context, flows: list[tuple[str, str]], lines: list[Spec]) -> Spec:
    x, y = time_axis(), _y()
    kinds = {line["kind"] for line in lines}
    shares = sorted({line["key"] for line in lines if line["kind"] == "fair"})
    layers: list[Spec] = []
    if "capacity" in kinds:
        layers.append(
            {
                "transform": [{"filter": "datum.kind === 'capacity'"}],
                "mark": {"type": "area", "color": {"expr": "capacity"}, "interpolate": "step"},
                "encoding": {"x": x, "y": y},
            }
        )
    layers.append(
        {
            "transform": [{"filter": "datum.kind === 'flow'"}],
            "mark": {"type": "line", "strokeWidth": 1.6, "strokeJoin": "round"},
            "encoding": {
                "x": x,
                "y": y,
                "color": {
                    "field": "name",
                    "type": "ordinal",
                    "title": "flow",
                    "scale": {"domain": [name for _, name in flows]},
                    "legend": {"symbolType": "stroke"} if 1 < len(flows) <= LEGEND_FLOWS else None,
                },
            },
        }
    )
    if "fair" in kinds:
        layers.append(
            {
                "transform": [{"filter": "datum.kind === 'fair'"}],
                "mark": {
                    "type": "line",
                    "color": {"expr": "muted"},
                    "interpolate": "step",
                    "strokeWidth": 1,
                    "strokeDash": [4, 3],
                },
                "encoding": {"x": x, "y": y, "detail": {"field": "key"}},
            }
        )
    tooltip = [label("cc", "scheme"), number("t", "time (s)")]
    tooltip += [number(key, f"flow {name} (Mbit/s)") for key, name in flows[:LEGEND_FLOWS]]
    tooltip += [
        number(key, "fair share (Mbit/s)" if len(shares) == 1 else f"fair share {i + 1} (Mbit/s)")
        for i, key in enumerate(shares)
    ]
    tooltip += [number("capacity", "capacity (Mbit/s)")] if "capacity" in kinds else []
    layers.append(
        cursor(
            "moment",
            {
                "transform": [
                    {"filter": "datum.y !== null && datum.i % 2 === 0"},
                    {"pivot": "key", "value": "y", "groupby": ["cc", "t"]},
                ],
                "encoding": {"x": x, "tooltip": tooltip},
            },
        )
    )
    return panels(context, "throughput", layers)


def _y() -> Spec:
    return {
        "field": "y",
        "type": "quantitative",
        "title": "Mbit/s",
        "axis": {"tickCount": 4},
        "scale": {"zero": True, "nice": 4},
    }
