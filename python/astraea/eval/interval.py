"""Intervals of means over trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

LEVEL = 0.95
LEAST = 3
"""Values from which on an interval is given: two say next to nothing about their spread."""


def interval(*samples: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean of all values by Student's t; None where a sample has fewer than three of them.

    Several samples (the points of a sweep) have means and variances of their own: what lies between them is no
    uncertainty. The degrees of freedom of their common mean are Welch's (1947).
    """
    from scipy.special import stdtrit

    known = [np.asarray(sample, dtype=float) for sample in samples if len(sample)]
    if not known or min(map(len, known)) < LEAST:
        return None
    count = sum(map(len, known))
    mean = math.fsum(sample.sum() for sample in known) / count
    # Of the variance of the mean; equal values may differ from their own mean by rounding.
    parts = np.array([len(sample) * sample.var(ddof=1) if np.ptp(sample) else 0.0 for sample in known]) / count**2
    variance = parts.sum()
    if variance == 0.0:
        return mean, mean
    degrees = variance**2 / sum(part**2 / (len(sample) - 1) for part, sample in zip(parts, known, strict=True))
    half = float(stdtrit(degrees, (1 + LEVEL) / 2)) * math.sqrt(variance)
    return mean - half, mean + half
