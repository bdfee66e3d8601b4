"""Choosing the best policy by episodes that are always the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from astraea.learn.config import ValidationSettings
from astraea.learn.rollouts import Rollouts, Weights


@dataclass(frozen=True)
class Score:
    """How good a policy is on the validation grid. All but `score` are for people: means, and 10th percentiles."""

    score: float
    jain: float
    jain_p10: float
    utilization: float
    utilization_p10: float
    rtt_inflation: float
    loss: float
    settled: float
    diverged: float

    def as_dict(self) -> dict[str, float]:
        """Name and value of each figure."""
        return asdict(self)


class Validation:
    """Scores policies on episodes whose seeds are fixed."""

    def __init__(self, settings: ValidationSettings, rollouts: Rollouts) -> None:
        self.settings = settings
        self.rollouts = rollouts
        self.seeds = [settings.seed + index for index in range(settings.episodes)]

    def score(self, policy: Weights) -> Score:
        """Run the episodes with this policy."""
        return score(self.settings, self.rollouts.score(policy, self.seeds))


def values(settings: ValidationSettings, measured: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """The value of each episode, shape (episodes,); the least there is if it diverged, or nothing arrived in it."""
    excess = np.clip(measured["rtt_inflation"] - 1.0, 0.0, 1.0)
    found = (
        settings.jain * measured["jain"]
        + settings.utilization * measured["utilization"]
        # An episode without a pause long enough to settle in is not judged by that.
        + settings.settled * np.nan_to_num(measured["settled"], nan=1.0)
        - settings.delay * excess
        - settings.loss * measured["loss"]
    )
    # Not 0, which a poor episode that was not ended can be below.
    return np.where((measured["diverged"] > 0) | np.isnan(found), settings.least(), found)


def _mean(measured: NDArray[np.float64], unknown: float) -> float:
    """Mean over the episodes that have a figure: one in which nothing arrived has none."""
    known = measured[np.isfinite(measured)]
    return float(known.mean()) if known.size else unknown


def _tenth(measured: NDArray[np.float64], unknown: float) -> float:
    """Their 10th percentile."""
    known = measured[np.isfinite(measured)]
    return float(np.percentile(known, 10)) if known.size else unknown


def score(settings: ValidationSettings, measured: Mapping[str, NDArray[np.float64]]) -> Score:
    """The score from what was measured in each episode.

    The lower tail counts beside the mean, because a policy that is perfect on most networks and useless on some is not
    fit for use, and because the mean alone would hide it.
    """
    of_episodes = values(settings, measured)
    total = (1 - settings.tail) * of_episodes.mean() + settings.tail * np.percentile(of_episodes, 10)
    jain, utilization, settled = measured["jain"], measured["utilization"], measured["settled"]
    return Score(
        score=float(total),
        jain=_mean(jain, 0.0),
        jain_p10=_tenth(jain, 0.0),
        utilization=_mean(utilization, 0.0),
        utilization_p10=_tenth(utilization, 0.0),
        rtt_inflation=_mean(measured["rtt_inflation"], 1.0),
        loss=_mean(measured["loss"], 0.0),
        settled=_mean(settled, 1.0),
        diverged=float(measured["diverged"].mean()),
    )
