"""What a chart is, and the pieces that several charts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from astraea.report.bottleneck import Key
from astraea.report.charts.look import Look
from astraea.report.fairness import fairness
from astraea.report.lifetimes import duration
from astraea.report.run import Run
from astraea.report.sampling import Floats, Grid, Line, floats, slot_length

Spec = dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """One figure of the page.

    `data` maps the names used in the Vega-Lite `spec` to packed data: {"columns": {name: values}}
    or {"lines": [{t0, dt, y, ...keys}]}. `panels` > 0: the spec is faceted into so many panels,
    which the page arranges; 0: one view. `flows`: how many flows the range `ordinal` colours. `choices`: name and
    title of each value of the column `choice`, one of which is in view; its title replaces "@choice" in the spec.
    `wide`: takes the page's full width.
    """

    key: str
    title: str
    how: str
    spec: Spec
    data: Mapping[str, Any]
    note: str = ""
    panels: int = 0
    flows: int = 0
    choices: tuple[tuple[str, str], ...] = ()
    height: int = 280
    wide: bool = False


@dataclass(frozen=True)
class Context:
    """What every chart of a run is made from.

    `index`: scheme -> number on the page (colour, shape, dash); `shown`: the trial in view;
    `embedded`: the trials that can be selected; `jain`: Jain's index of each slot, by scheme; `fair`: the fair
    shares over time, by trial and scheme.
    """

    run: Run
    index: Mapping[str, int]
    duration_s: float
    shown: int
    embedded: Sequence[int]
    grid: Grid
    """Points in time of everything drawn over time."""
    jain: Mapping[str, Floats]
    fair: Mapping[Key, list[Line]]

    @classmethod
    def of(cls, run: Run, index: Mapping[str, int], shown: int, embedded: Sequence[int]) -> Context:
        """Compute what several charts need."""
        length = duration(run)
        recorded = run.series if run.series is not None else run.links
        slot = slot_length(floats(recorded, "t")) if recorded is not None else 1.0
        grid = Grid.of(slot, length)
        jain, fair = fairness(run, grid, length)
        return cls(run, index, length, shown, embedded, grid, jain, fair)

    @property
    def look(self) -> Look:
        """How the run's schemes look."""
        return Look(self.run.schemes, self.index)

    @property
    def schemes(self) -> list[str]:
        """The run's schemes, in the order of its results."""
        return self.run.schemes


def names(x: Spec, y: Spec, paint: Spec) -> Spec:
    """The schemes' names beside their marks, at the places in columns dx, dy and align."""
    return {
        "mark": {
            "type": "text",
            "baseline": "middle",
            "fontWeight": 600,
            **{prop: {"expr": f"datum.{prop}"} for prop in ("align", "dx", "dy")},
        },
        "encoding": {"x": x, "y": y, "text": {"field": "cc"}, "color": paint},
    }


def number(field_: str, title: str, fmt: str = ".3~g") -> Spec:
    """A tooltip entry for a number."""
    return {"field": field_, "type": "quantitative", "title": title, "format": fmt}


def label(field_: str, title: str) -> Spec:
    """A tooltip entry for a name."""
    return {"field": field_, "type": "nominal", "title": title}


def panels(context: Context, data: str, layers: list[Spec]) -> Spec:
    """Small multiples: one panel per scheme with shared scales and axes on each panel."""
    return {
        "data": {"name": data},
        "facet": {
            "field": "cc",
            "type": "nominal",
            "title": None,
            "sort": context.schemes,
            "header": {"labelPadding": 2},
        },
        "columns": 1,
        "spacing": {"row": 12, "column": 18},
        "resolve": {"axis": {"x": "independent"}},
        "spec": {"layer": layers},
    }


def time_axis(title: str = "time (s)") -> Spec:
    """The horizontal axis of everything over time."""
    return {
        "field": "t",
        "type": "quantitative",
        "title": title,
        "axis": {"grid": False, "tickCount": 6},
        "scale": {"nice": False},
    }


def cursor(name: str, layer: Spec) -> Spec:
    """A vertical line under the pointer that carries a tooltip of everything at that time."""
    return {
        **layer,
        "mark": {"type": "rule", "color": {"expr": "muted"}, "strokeWidth": 4},
        "params": [
            {
                "name": name,
                "select": {"type": "point", "on": "pointerover", "clear": "pointerout"},
            }
        ],
        "encoding": {
            **layer["encoding"],
            "opacity": {"condition": {"param": name, "empty": False, "value": 0.35}, "value": 0},
        },
    }


def cdf_spec(context: Context, data: str, x: Spec, tooltip: list[Spec]) -> Spec:
    """Cumulative distribution per scheme: steps, and a mark that appears under the pointer."""
    y = {
        "field": "p",
        "type": "quantitative",
        "title": "share of values ≤ x",
        "axis": {"format": ".0%", "tickCount": 5},
        "scale": {"domain": [0, 1]},
    }
    return {
        "data": {"name": data},
        "encoding": {"x": x, "y": y, "color": context.look.colour(legend=True)},
        "layer": [
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
                "encoding": {"strokeDash": context.look.dash()},
            },
            {
                "params": [
                    {
                        "name": "at",
                        "select": {"type": "point", "on": "pointerover", "clear": "pointerout"},
                    }
                ],
                "mark": {"type": "point", "filled": True, "size": 90},
                "encoding": {
                    "opacity": {
                        "condition": {"param": "at", "empty": False, "value": 1},
                        "value": 0,
                    },
                    "tooltip": tooltip,
                },
            },
        ],
    }
