"""Waiting time in the bottleneck's queue over time, one panel per scheme."""

from __future__ import annotations

from astraea.report.bottleneck import bottleneck, link_slots
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
from astraea.report.sampling import floats, smooth


def delay(context: Context) -> Chart | None:
    """The chart, or None where no link was recorded."""
    lines: list[Spec] = []
    for (trial, cc), part in link_slots(context.run):
        if trial not in context.embedded or cc not in context.index:
            continue
        line = smooth(floats(part, "t"), floats(part, "queue_delay"), context.grid)
        if line is not None:
            lines.append(line.packed(cc=cc, trial=trial))
    if not lines:
        return None
    x = time_axis()
    y = {
        "field": "y",
        "type": "quantitative",
        "title": "ms",
        "axis": {"tickCount": 4},
        "scale": {"zero": True, "nice": 4},
    }
    encoding = {"x": x, "y": y, "color": context.look.colour(legend=False)}
    tooltip = [label("cc", "scheme"), number("t", "time (s)"), number("y", "queueing delay (ms)")]
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.18, "line": {"strokeWidth": 1.4}},
            "encoding": encoding,
        },
        cursor(
            "moment",
            {
                "transform": [{"filter": "datum.y !== null && datum.i % 2 === 0"}],
                "encoding": {"x": x, "tooltip": tooltip},
            },
        ),
    ]
    several = context.run.links is not None and context.run.links["link"].n_unique() > 1
    link = f"link “{bottleneck(context.run)}”" if several else "the bottleneck"
    return Chart(
        key="delay",
        title="Queueing delay over time",
        how=f"Time that packets waited in the queue of {link}; moving average over {context.grid.window_s:.2g} s. "
        "Lower is better.",
        spec=panels(context, "delay", layers),
        data={"delay": {"lines": lines}},
        panels=len(context.schemes),
        height=110,
        wide=True,
    )
