"""Intervals of means over trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95
_SEED = 0


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % percentile bootstrap interval of the mean (Efron 1979); None for fewer than two values.

    The resampling has a fixed seed: the same values give the same interval.
    """
    if len(values) < 2:
        return None
    sample = np.asarray(values, dtype=float)
    rng = np.random.default_rng(_SEED)
    means = sample[rng.integers(len(sample), size=(RESAMPLES, len(sample)))].mean(axis=1)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
