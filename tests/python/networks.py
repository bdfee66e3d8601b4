"""Policies of random weights, and what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from astraea._native import Policy

Layers = list[tuple[NDArray[np.float32], NDArray[np.float32]]]

INPUTS = {"paper": 40, "pure": 25, "guided": 25}


def layers(inputs: int, hidden: Sequence[int], draw: int = 1) -> Layers:
    """Layers of random weights, with sums of order one."""
    rng = np.random.default_rng(draw)
    sizes = [inputs, *hidden, 1]
    return [
        ((rng.normal(size=(b, a)) / a**0.5).astype(np.float32), rng.normal(size=b).astype(np.float32) / 2)
        for a, b in pairwise(sizes)
    ]


def policy(
    form: str = "pure",
    activation: str = "relu",
    hidden: Sequence[int] = (16, 8),
    *,
    draw: int = 1,
    **texts: str,
) -> Policy:
    """A policy of random weights."""
    return Policy.from_weights(form, activation, layers(INPUTS[form], hidden, draw), metadata=texts)


def reference(network: Layers, activation: str, states: NDArray[np.float32]) -> NDArray[np.float64]:
    """The definition of a network, in double precision."""
    x = states.astype(np.float64)
    for index, (weights, bias) in enumerate(network):
        x = x @ weights.T.astype(np.float64) + bias
        if index + 1 < len(network):
            half = (x.shape[1] + 1) // 2 if activation == "split" else x.shape[1]
            x = np.concatenate([np.maximum(x[:, :half], 0), np.minimum(x[:, half:], 0)], axis=1)
    return np.tanh(x)[:, 0]
