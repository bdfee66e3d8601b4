"""Empirical distributions and normal ellipses, small enough to embed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from astraea.report.sampling import Floats, rounded

STEPS = 160
"""Steps per curve; a finer curve looks the same."""


def cdf(values: Floats) -> tuple[Floats, Floats]:
    """Values and the share of all values at or below each, thinned to `STEPS` quantiles."""
    ordered = np.sort(values)
    n = len(ordered)
    rank = np.unique(np.rint(np.linspace(1, n, min(n, STEPS))).astype(np.int64))
    return ordered[rank - 1], rank / n


def columns(groups: Mapping[str, Floats]) -> dict[str, list[Any]]:
    """Columns cc, x, p of one CDF per group; each curve starts at zero."""
    packed: dict[str, list[Any]] = {"cc": [], "x": [], "p": []}
    for cc, values in groups.items():
        x, p = cdf(values)
        packed["cc"] += [cc] * (len(x) + 1)
        packed["x"] += rounded(np.concatenate([x[:1], x]))
        packed["p"] += rounded(np.concatenate([[0.0], p]))
    return packed


def ellipse(x: Floats, y: Floats, corners: int = 48) -> tuple[Floats, Floats] | None:
    """Outline at one standard deviation of the normal distribution fitted to the points.

    None for fewer than three points or when all are the same.
    """
    if len(x) < 3:
        return None
    covariance = np.cov(np.stack([x, y]))
    variances, axes = np.linalg.eigh(covariance)
    if not np.isfinite(variances).all() or variances.max() <= 0:
        return None
    angle = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    outline = axes @ (np.sqrt(np.maximum(variances, 0))[:, None] * circle)
    return outline[0] + x.mean(), outline[1] + y.mean()
