"""The proof from the signs of the weights that an action never rises with certain inputs.

A unit computes a non-decreasing function of its sum: max(0, x), min(0, x), or tanh at the end. If every weight of the
first layer on an input is <= 0, no unit of that layer rises with the input; if all later weights are >= 0, no later
unit does, and neither does the action. This holds for all states, not for samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from astraea.explain.model import Layers, Model
from astraea.explain.steady import BACKLOG, PERIODS
from astraea.learn.forms import FORMS

NON_DECREASING = ("relu", "split")
"""Hidden activations that are non-decreasing."""

PAIRS = 20_000


@dataclass(frozen=True)
class Proof:
    """Whether the signs prove it, over how many weights, and the first that does not fit."""

    holds: bool
    weights: int = 0
    place: str = ""


def prove(model: Model) -> Proof:
    """Check the signs of a policy's weights."""
    falling = FORMS[model.form].falling
    if not falling:
        reason = f"the form {model.form} has no inputs that say how much a flow takes"
        return Proof(False, place=f"{reason}: they are relative to its own past")
    if model.activation not in NON_DECREASING:
        return Proof(False, place=f'activation "{model.activation}" is not known to be non-decreasing')
    return _prove(model.layers, np.array(falling))


def _prove(layers: Layers, falling: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Proof:
    checked = 0
    for number, (weights, _) in enumerate(layers, 1):
        if not np.isfinite(weights).all():
            return Proof(False, checked, f"layer {number} has a weight that is not finite")
        wrong = (weights > 0) & falling if number == 1 else weights < 0
        if wrong.any():
            unit, source = (int(index) for index in np.argwhere(wrong)[0])
            where = _feature(source) if number == 1 else f"unit {source + 1} of layer {number - 1}"
            rule = "at most" if number == 1 else "at least"
            value = float(weights[unit, source])
            more = f" ({int(wrong.sum())} in this layer)" if wrong.sum() > 1 else ""
            place = f"layer {number}, unit {unit + 1}: its weight on {where} is {value:.6g}, expected {rule} 0{more}"
            return Proof(False, checked, place)
        checked += int(falling.sum()) * len(weights) if number == 1 else weights.size
    return Proof(True, checked)


def _feature(index: int) -> str:
    period, feature = divmod(index, len(BACKLOG))
    return f"{BACKLOG[feature]}, period {period + 1} of {PERIODS}"


def violations(model: Model) -> int:
    """In how many of `PAIRS` pairs of random states the action is larger where all falling inputs are larger.

    A test of what runs, rounding included, beside the proof of what is written.
    """
    rng = np.random.default_rng(1)
    falling = np.array(FORMS[model.form].falling)
    low = rng.uniform(-2.0, 4.0, (PAIRS, falling.size))
    more = np.where(falling, rng.exponential(1.0, low.shape) * rng.integers(0, 2, low.shape), 0.0)
    lower, higher = low.astype(np.float32), (low + more).astype(np.float32)
    return int((model.policy.forward(higher) > model.policy.forward(lower)).sum())
