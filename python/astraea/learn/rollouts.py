"""Roll-outs as the learner sees them: the native class, or anything that does the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from astraea._native import Cancel

Layers = list[tuple[NDArray[np.float32], NDArray[np.float32]]]
"""Weights, shape (outputs, inputs), and biases, shape (outputs,), of each layer."""

Weights = tuple[str, Layers]
"""A network: name of the activation of its hidden layers, and its layers. It ends in tanh."""


class Batch(Protocol):
    """What the episodes of an iteration gave."""

    @property
    def decisions(self) -> int:
        """Decisions that were taken."""

    @property
    def episodes(self) -> int:
        """Episodes that were run."""

    @property
    def diverged(self) -> int:
        """Episodes that were ended: a window stayed at its limit, or half of what a flow sent was lost."""

    @property
    def reward_mean(self) -> float:
        """Mean of the built-in reward."""

    @property
    def seconds(self) -> float:
        """Simulated time of all episodes together, in s."""

    def statistics(self) -> Mapping[str, NDArray[Any]]:
        """Statistics of each decision: of the flows, shape (decisions, flows), and of the link, (decisions,)."""

    def transitions(
        self, gamma: float, n: int, rewards: NDArray[np.float64] | None = None
    ) -> Mapping[str, NDArray[np.float32]]:
        """The transitions `g`, `s`, `a`, `r`, `g2`, `s2`, `discount`, with the rewards of n steps summed up.

        `rewards`, one for each decision, takes the place of the built-in reward.
        """


class Rollouts(Protocol):
    """Runs episodes with a policy; what an episode is like depends on the seed, the iteration and its number alone."""

    @property
    def global_size(self) -> int:
        """Values of the global state."""

    @property
    def largest_episode(self) -> tuple[float, float]:
        """About how many decisions an episode has at most, and how many flows are there at one of them."""

    def run(
        self,
        policy: Weights,
        iteration: int,
        episodes: int,
        noise: float,
        *,
        statistics: bool = False,
        cancel: Cancel | None = None,
    ) -> Batch:
        """Run the episodes of an iteration with this exploration noise, without holding the interpreter lock.

        With `cancel` another thread can end it early: then it may raise KeyboardInterrupt.
        """

    def score(self, policy: Weights, seeds: Sequence[int]) -> Mapping[str, NDArray[np.float64]]:
        """Run an episode for each seed without noise; what was measured, each of shape (seeds,)."""
