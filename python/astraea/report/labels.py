"""Places for the names beside marks, so that they do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from astraea.report.sampling import Floats

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""
Place = tuple[float, float, str]
"""Offset right, offset down (pixels from the mark) and alignment of a name."""

VIEW = (440.0, 270.0)
"""Assumed size of a chart in pixels; a larger one only leaves more room."""
GLYPH, LINE, MARK = 7.0, 13.0, 6.0
"""Width of a character, height of a line, half the size of a mark, in pixels."""
PLACES: tuple[Place, ...] = (
    (10, -8, "left"),
    (-10, -8, "right"),
    (10, 9, "left"),
    (-10, 9, "right"),
    (0, -15, "center"),
    (0, 16, "center"),
    (10, -22, "left"),
    (10, 23, "left"),
    (-10, -22, "right"),
    (-10, 23, "right"),
)


def domain(values: Floats, *, zero: bool, pad: float = 0.1) -> list[float]:
    """Ends of an axis with room around the values; from zero if `zero` or if zero is near anyway.

    Values that hardly differ are not spread over the whole axis.
    """
    low, high = float(values.min()), float(values.max())
    if zero or low < 0.5 * high:
        return [0.0, high * (1 + pad) or 1.0]
    room = max((high - low) * pad, 0.05 * abs(high)) or 1.0
    return [low - room, high + room]


def places(
    x: Floats, y: Floats, names: Sequence[str], x_domain: Sequence[float], y_domain: Sequence[float]
) -> list[Place]:
    """One place per mark: the first of `PLACES` that is free, else the first."""
    px = (x - x_domain[0]) / (x_domain[1] - x_domain[0]) * VIEW[0]
    py = (1 - (y - y_domain[0]) / (y_domain[1] - y_domain[0])) * VIEW[1]
    taken: list[Box] = [(a - MARK, b - MARK, a + MARK, b + MARK) for a, b in zip(px, py, strict=True)]
    chosen = []
    for a, b, name in zip(px, py, names, strict=True):
        boxes = [_box(a, b, len(name) * GLYPH, place) for place in PLACES]
        free = [not any(_overlap(box, other) for other in taken) and _inside(box) for box in boxes]
        best = int(np.argmax(free))
        taken.append(boxes[best])
        chosen.append(PLACES[best])
    return chosen


def _box(x: float, y: float, width: float, place: Place) -> Box:
    dx, dy, align = place
    left = x + dx - {"left": 0.0, "center": width / 2, "right": width}[align]
    return left, y + dy - LINE / 2, left + width, y + dy + LINE / 2


def _inside(box: Box) -> bool:
    return box[0] >= 0 and box[2] <= VIEW[0]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
