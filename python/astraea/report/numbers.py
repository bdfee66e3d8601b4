"""Numbers as people read them: three significant digits, a real minus sign, no exponent."""

from __future__ import annotations

import math


def decimals(value: float, significant: int = 3) -> int:
    """How many decimals show `value` with `significant` digits (0 to 6)."""
    if value == 0 or not math.isfinite(value):
        return 0
    return min(6, max(0, significant - 1 - math.floor(math.log10(abs(value)))))


def show(value: float | None, places: int | None = None) -> str:
    """`value` as text; an en dash where there is none.

    `places` fixes the number of decimals, so that an interval is written like its mean.
    """
    if value is None or not math.isfinite(value):
        return "–"
    places = decimals(value) if places is None else places
    text = f"{value:.{places}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")


def interval(mean: float, low: float, high: float) -> str:
    """The interval of `mean` as text, to two digits of its half width and no further than the mean's own digits."""
    # A mean of exactly zero says nothing about the digits its interval needs, nor does a width of zero.
    known = (((high - low) / 2, 2), (mean, 3))
    places = min((decimals(value, significant) for value, significant in known if value), default=0)
    return f"[{show(low, places)}, {show(high, places)}]"
