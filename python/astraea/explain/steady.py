"""What a policy sees of a flow whose situation has not changed for the five periods that it remembers.

A steady flow sends what it gets: its window is its rate x its round-trip time, all of it in flight and paced evenly.
Features and law are those that run (`crates/policy`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from astraea import _native
from astraea.learn.forms import FormName
from astraea.scenario.units import MSS

Floats = NDArray[np.float64]
States = NDArray[np.float32]

PERIODS = 5

PEAK = 200e6
"""Largest throughput seen in figure 17 of the paper, bit/s."""

BASE = 0.04
"""Base round-trip time of figure 17, s."""

BACKLOG = ("rate", "delay", "backlog", "loss", "spread")
"""Features of a period of the forms pure and guided."""


@dataclass(frozen=True)
class Situation:
    """Situations of flows: numbers, or arrays that broadcast together."""

    throughput: Floats | float
    """Own throughput in bit/s."""
    queue: Floats | float
    """Queueing delay in s."""
    base: Floats | float = BASE
    """Base round-trip time in s."""
    loss: Floats | float = 0.0
    """Share of packets lost."""
    spread: Floats | float = 0.0
    """Mean less smallest round-trip time of a period in s, as jitter causes."""
    peak: Floats | float = PEAK
    """Largest throughput that the flow has seen in bit/s; only the papers' form uses it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all of them together."""
        return np.broadcast_shapes(
            *(np.shape(x) for x in (self.throughput, self.queue, self.base, self.loss, self.spread, self.peak))
        )

    @property
    def rate(self) -> Floats:
        """Own throughput in packets/s."""
        return np.asarray(self.throughput) / (8 * MSS)


def states(form: FormName, at: Situation) -> States:
    """The policy's inputs, shape `at.shape` + (inputs,)."""
    return _native.steady_states(form, _table(at)).reshape(*at.shape, -1)


def step(form: FormName, at: Situation, answer: ArrayLike) -> Floats:
    """What the policy's answer, as a relative change of the window, becomes of it in a period, shape `at.shape`.

    In the guided form a law is added: 0.1 e within -0.1 and 0.025, where e is the share by which the own backlog,
    rate x queueing delay, is below the wanted one, 10 (x / 2777)^.375 packets at x packets/s, less 30 times the share
    of packets lost, at most 0.6. Where the law asks for more, a quarter of that is left at least, at up to 2 % loss.
    Where it asks for less and nothing is lost, a negative answer counts by the law's step over -0.025, one at most.
    """
    answers = np.broadcast_to(np.asarray(answer, dtype=float), at.shape)
    if form != "guided":
        return answers
    return _native.steady_step(_table(at), answers.ravel()).reshape(at.shape)


def _table(at: Situation) -> Floats:
    """The flows as the native module takes them, shape (n, 6)."""
    columns = (at.rate, at.queue, at.loss, at.spread, at.base, np.asarray(at.peak) / (8 * MSS))
    return np.stack([np.broadcast_to(column, at.shape).ravel() for column in columns], axis=-1).astype(float)
