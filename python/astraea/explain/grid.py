"""What holds on a dense grid of situations, for policies of which nothing can be proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astraea.explain.model import Model
from astraea.explain.steady import BASE, PEAK, Floats, Situation

THROUGHPUTS = np.geomspace(0.1e6, 1000e6, 41)
"""Own throughputs in bit/s: a fiftieth of 5 Mbit/s to all of 1000 Mbit/s."""

DELAYS = np.concatenate([[0.0], np.geomspace(20e-6, 5.0, 240)])
"""Queueing delays in s, to a buffer of 16 bandwidth-delay products at 300 ms."""

LOSSES = (0.0, 0.001, 0.01, 0.02)
SPREADS = (0.0, 0.0005, 0.002, 0.005)
BASES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3)
PEAKS = np.geomspace(5e6, 1000e6, 12)
SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])
"""Own throughput as a share of the largest seen (the papers' form)."""

NEAR = 1.02
"""Ratio of throughputs over which the step's slope is taken, to both sides."""

RISE = 1e-6
"""Rises of a step by no more than this, from one delay to the next, are rounding."""

PLACES = 5
"""Failures that are described."""


@dataclass(frozen=True)
class Family:
    """What the flows that are compared with each other have in common, and their throughputs in bit/s, ascending."""

    throughputs: Floats
    base: float
    loss: float
    spread: float
    peak: float

    def __str__(self) -> str:
        words = [f"loss {100 * self.loss:g} %"]
        if self.spread:
            words.append(f"spread {1e3 * self.spread:g} ms")
        return ", ".join(words)


@dataclass(frozen=True)
class Lines:
    """The steps of a family's flows over the delays, and what holds for each flow.

    `rest` is the delay at which the step crosses zero, in s (NaN: not exactly once, downwards); `ordered` tells for
    each pair of neighbouring throughputs whether the faster one rests at the smaller delay.
    """

    steps: Floats
    falls: NDArray[np.bool_]
    once: NDArray[np.bool_]
    rest: Floats
    ordered: NDArray[np.bool_]


def families(form: str) -> Iterator[Family]:
    """The grid for a form. The forms pure and guided do not see the base round-trip time: one stands for all."""
    if form == "paper":
        for peak, base, loss in product(PEAKS, BASES, LOSSES):
            yield Family(SHARES * peak, base, loss, 0.0, float(peak))
    else:
        for loss, spread in product(LOSSES, SPREADS):
            yield Family(THROUGHPUTS, BASE, loss, spread, PEAK)


def lines(model: Model, family: Family, delays: Floats = DELAYS) -> Lines:
    """Evaluate a family."""
    situation = Situation(family.throughputs[:, None], delays, family.base, family.loss, family.spread, family.peak)
    steps = model.step(situation)
    falls: NDArray[np.bool_] = np.all(np.diff(steps, axis=1) <= RISE, axis=1)
    rest = crossing(steps, delays)
    once = np.isfinite(rest)
    with np.errstate(invalid="ignore"):
        ordered = np.diff(rest) < 0
    return Lines(steps, falls, once, rest, ordered)


def crossing(steps: Floats, delays: Floats) -> Floats:
    """Where each row of `steps` crosses zero, in s; NaN where it does not do so exactly once and downwards."""
    up = steps > 0
    turns = up[:, 1:] != up[:, :-1]
    good = up[:, 0] & ~up[:, -1] & (turns.sum(axis=1) == 1)
    at = turns.argmax(axis=1)
    rows = np.arange(len(steps))
    before, after = steps[rows, at], steps[rows, at + 1]
    part = np.divide(before, before - after, out=np.zeros_like(before), where=before != after)
    return np.where(good, delays[at] + part * (delays[at + 1] - delays[at]), np.nan)


def halving(model: Model, family: Family, rest: Floats) -> Floats:
    """Periods in which a small difference of two flows' throughputs, as a ratio, halves at the delays `rest`; in s.

    The faster one loses by the step's slope over the logarithm of the own throughput. Infinite where that is not
    negative; NaN where the flow does not rest.
    """
    near = np.array([[1 / NEAR], [NEAR]])
    situation = Situation(family.throughputs * near, rest, family.base, family.loss, family.spread, family.peak)
    slope = np.diff(model.step(situation), axis=0)[0] / (2 * np.log(NEAR))
    with np.errstate(divide="ignore"):
        periods = np.log(2) / np.maximum(-slope, 0)
    return np.where(np.isfinite(rest), periods, np.nan)


def survey(model: Model) -> dict[str, Any]:
    """Shares of the grid on which the three properties hold, and where they first fail.

    `halving_periods`: median and largest over the flows that rest (see `halving`); None stands for infinity.
    """
    falls, once, ordered, fair, places = 0, 0, 0, 0, list[str]()
    count, pairs, times = 0, 0, list[Floats]()
    for family in families(model.form):
        found = lines(model, family)
        beside = np.concatenate([found.ordered[:1], found.ordered[:-1] & found.ordered[1:], found.ordered[-1:]])
        good = found.falls & found.once & beside
        count, pairs = count + good.size, pairs + found.ordered.size
        falls += int(found.falls.sum())
        once += int(found.once.sum())
        ordered += int(found.ordered.sum())
        fair += int(good.sum())
        times.append(halving(model, family, np.where(found.once, found.rest, np.nan)))
        if not good.all() and len(places) < PLACES:
            places.append(_failure(family, found, int(np.argmin(good))))
    return {
        "flows": count,
        "delays": DELAYS.size,
        "falls_with_delay": falls / count,
        "crosses_zero_once": once / count,
        "rest_falls_with_throughput": ordered / pairs,
        "all": fair / count,
        "halving_periods": _spread(np.concatenate(times)),
        "failures": places,
    }


def _spread(times: Floats) -> dict[str, float | None] | None:
    known = times[~np.isnan(times)]
    if not known.size:
        return None
    found = {"median": float(np.median(known)), "largest": float(known.max())}
    return {name: value if np.isfinite(value) else None for name, value in found.items()}


def _failure(family: Family, found: Lines, flow: int) -> str:
    """In words, why a flow is not counted as fair."""
    peak = f" of {family.peak / 1e6:.3g} seen, base RTT {1e3 * family.base:g} ms" if family.peak != PEAK else ""
    where = f"{family.throughputs[flow] / 1e6:.3g} Mbit/s{peak}, {family}"
    steps = found.steps[flow]
    if not found.falls[flow]:
        at = int(np.argmax(np.diff(steps)))
        rise = 100 * (steps[at + 1] - steps[at])
        return f"{where}: the step rises by {rise:.3g} % between {_ms(DELAYS[at])} and {_ms(DELAYS[at + 1])} ms"
    if not found.once[flow]:
        if (steps > 0).all():
            return f"{where}: the window grows at every delay"
        if (steps <= 0).all():
            return f"{where}: the window grows at no delay"
        return f"{where}: the step crosses zero more than once"
    other = flow if flow < found.ordered.size and not found.ordered[flow] else flow - 1
    pair = " and ".join(f"{family.throughputs[i] / 1e6:.3g}" for i in (other, other + 1))
    if not found.once[other : other + 2].all():
        return f"{pair} Mbit/s, {family}: one of them rests at no delay, or at several"
    rests = " and ".join(_ms(found.rest[i]) for i in (other, other + 1))
    return f"{pair} Mbit/s, {family}: they rest at {rests} ms, the faster one not at the smaller delay"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"
