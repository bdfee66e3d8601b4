"""Colours and Vega configuration, once for light and once for dark.

Colours are picked for contrast of at least 3:1 on their background and differ in lightness as well
as in hue; charts repeat the distinction by mark shape, dash or a label, never by colour alone.
There are as many as schemes are shipped. The later ones are darker or brighter than the first ten,
because hue alone tells no more of them apart, and the colour-blind fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Mode = Literal["light", "dark", "either"]
"""`either`: for a picture with a transparent background that must be legible on both."""
MODES: tuple[Mode, ...] = ("light", "dark")
"""The modes of the page."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

SCHEME_COLOURS: dict[Mode, tuple[str, ...]] = {
    "light": (
        "#0b66b5",
        "#d1500b",
        "#0c8a63",
        "#a0379b",
        "#8f6400",
        "#c2255c",
        "#4b5563",
        "#0e7c86",
        "#5b4fc7",
        "#5f7a0a",
        "#690601",
        "#4e0670",
        "#927bbd",
        "#0a3149",
        "#1c5d07",
        "#1e20a3",
        "#8e2e45",
        "#b07f68",
        "#e815ee",
        "#0000fc",
        "#000036",
        "#5a1bd8",
        "#0b0b0b",
        "#360000",
        "#f755a1",
    ),
    "dark": (
        "#58a6e6",
        "#ff8a4c",
        "#3fc79a",
        "#dd8bdc",
        "#e3b341",
        "#ff7aa2",
        "#aeb8c4",
        "#4dd0dc",
        "#a79bff",
        "#b3d14a",
        "#876655",
        "#7056c9",
        "#f7defd",
        "#1082ab",
        "#768b09",
        "#2e79f5",
        "#d13d91",
        "#faf3c0",
        "#c53df5",
        "#fcfc00",
        "#2de17e",
        "#6c6c2d",
        "#d86300",
        "#51fcfc",
        "#0bb701",
    ),
}

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])


@dataclass(frozen=True)
class Ink:
    """The neutral colours of a mode."""

    surface: str | None
    text: str
    muted: str
    grid: str
    capacity: str
    """Fill behind throughput: what the link could have carried."""
    flows: tuple[str, ...]
    """Ramp that flows are coloured with in the order of their arrival; unlike the schemes' colours."""


INK: dict[Mode, Ink] = {
    "light": Ink("#ffffff", "#1f2328", "#5c656f", "#e7e9ec", "#dfe3e8", ("#2d1160", "#c2308a", "#e39000")),
    "dark": Ink("#191c21", "#e6e9ee", "#9ba5b0", "#2d323a", "#343a43", ("#8f86ff", "#ff6fb0", "#ffd772")),
    "either": Ink(None, "#737c86", "#737c86", "#8b949e55", "#8b949e40", ("#7a5cf0", "#d6409f", "#dd8a00")),
}


def flow_colours(mode: Mode, count: int) -> list[str]:
    """One colour per flow from the mode's ramp, its ends included."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in INK[mode].flows])
    at = np.linspace(0, len(stops) - 1, max(count, 2))[:count]
    channels = [np.interp(at, np.arange(len(stops)), stops[:, k]) for k in range(3)]
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.rint(channels).astype(int).T]


def scheme_index(schemes: Sequence[str]) -> dict[str, int]:
    """One number per scheme over the whole page; it selects colour, shape and dash."""
    return {cc: position for position, cc in enumerate(dict.fromkeys(schemes))}


def pick(values: Sequence[Any], index: int) -> Any:
    """The `index`-th of `values`, starting over at the end."""
    return values[index % len(values)]


def vega_config(mode: Mode) -> dict[str, Any]:
    """Vega-Lite configuration of a mode.

    Whoever draws adds the ranges `category` (the schemes' colours) and `ordinal` (the flows').
    """
    ink = INK[mode]
    text = {"labelColor": ink.muted, "titleColor": ink.muted}
    return {
        "background": ink.surface,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "axis": {
            **text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "gridColor": ink.grid,
            "domain": False,
            "tickColor": ink.grid,
            "tickSize": 4,
            "labelFlush": False,
        },
        "legend": {
            **text,
            "labelFontSize": 11,
            "labelColor": ink.text,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "orient": "top",
            "symbolStrokeWidth": 2.5,
            "titleOrient": "left",
            "labelLimit": 220,
        },
        "header": {
            "labelColor": ink.text,
            "labelFontSize": 12,
            "labelFontWeight": 600,
            "labelAnchor": "start",
            "labelLimit": 320,
            "title": None,
        },
        # Names that specifications use for the neutral colours: {"expr": "muted"}.
        "params": [
            {"name": "muted", "value": ink.muted},
            {"name": "capacity", "value": ink.capacity},
        ],
    }
