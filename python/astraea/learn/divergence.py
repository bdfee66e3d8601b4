"""Noticing that a training has gone wrong, so that it ends with the reason instead of with hours lost."""

from __future__ import annotations

import math
from collections.abc import Mapping

from astraea.learn.td3 import Progress

ESTIMATE_LIMIT = 10.0
"""Estimates beyond this multiple of what any policy can be worth are nonsense."""
COLLAPSE = 0.4
"""A validation score has collapsed when it is below the best one by more than this share of a perfect one."""
COLLAPSED_VALIDATIONS = 5
"""So many collapses in a row are no wandering."""
EMPTY_ITERATIONS = 20
"""So many iterations in a row without a transition, and none will ever come."""
DIVERGED_SHARE, DIVERGED_ITERATIONS = 0.5, 20
"""More than this share of the episodes had to be ended, so many iterations in a row."""


class Divergence(Exception):  # noqa: N818 - nothing is wrong with the program
    """Training has diverged; the message says how it shows."""


class Watch:
    """Looks at each iteration. Its `state` is part of a checkpoint."""

    def __init__(self) -> None:
        self.worth = 1.0
        self.collapses = 0
        self.diverged = 0
        self.empty = 0

    def rollouts(self, transitions: int, worth: float, diverged: int, episodes: int) -> None:
        """Look at an iteration's roll-outs.

        `worth` is what the largest reward seen would be worth if earned for ever, `diverged` counts the episodes that
        were ended.
        """
        self.empty = 0 if transitions else self.empty + 1
        if self.empty >= EMPTY_ITERATIONS:
            raise Divergence(
                f"there is nothing to learn from: in {self.empty} iterations no flow has decided twice; expected "
                "longer episodes, or shorter round-trip times"
            )
        self.worth = max(self.worth, worth)
        self.diverged = self.diverged + 1 if diverged > DIVERGED_SHARE * episodes else 0
        if self.diverged >= DIVERGED_ITERATIONS:
            raise Divergence(
                f"windows stay at their limit, or half of what is sent is lost: more than {DIVERGED_SHARE:.0%} of the "
                f"episodes had to be ended in {self.diverged} iterations in a row"
            )

    def updates(self, progress: Progress, *, finite: bool) -> None:
        """Look at what the learner says of itself, and whether the actor's weights are all finite."""
        estimates = (progress.critic_loss, progress.largest, progress.actor_value)
        if not all(math.isfinite(value) for value in estimates):
            raise Divergence("the critics' estimates are no longer numbers")
        if not finite:
            raise Divergence("the actor's weights are no longer numbers")
        if progress.largest > ESTIMATE_LIMIT * self.worth:
            raise Divergence(
                f"a critic's estimate is {progress.largest:.3g}, but no policy can be worth more than {self.worth:.3g}"
            )

    def score(self, score: float) -> None:
        """Look at a validation score before anything is kept for it."""
        if not math.isfinite(score):
            raise Divergence(f"the validation score is {score}")

    def validation(self, score: float, best: float, full: float) -> None:
        """Look at a validation score beside the best one so far; `full` is the largest score that there can be."""
        limit = best - COLLAPSE * full
        self.collapses = self.collapses + 1 if score < limit else 0
        if self.collapses >= COLLAPSED_VALIDATIONS:
            raise Divergence(
                f"the validation score collapsed: below {limit:.3f} {self.collapses} times in a row, now {score:.3f}, "
                f"after {best:.3f}"
            )

    def state(self) -> dict[str, float | int]:
        """All that `restore` needs."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, float | int]) -> None:
        """Go back to a `state`."""
        vars(self).update(state)
