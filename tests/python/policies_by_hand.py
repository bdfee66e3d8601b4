"""Policies with weights set by hand, evaluated by NumPy, in the place of `_native.Policy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from astraea.explain import model
from astraea.explain.model import Layers, Model

FALLING = np.array([True, True, True, False, False] * 5)


class ByHand:
    """A network of given layers."""

    def __init__(self, layers: Layers, *, form: str = "guided", activation: str = "split", alpha: float = 0.1) -> None:
        self._layers = [(np.asarray(w, np.float32), np.asarray(b, np.float32)) for w, b in layers]
        self.metadata: dict[str, Any] = {"form": form, "activation": activation, "alpha": alpha}

    def weights(self) -> Layers:
        return self._layers

    def forward(self, states: np.ndarray) -> np.ndarray:
        x = states
        for weights, biases in self._layers[:-1]:
            x = x @ weights.T + biases
            half = (x.shape[1] + 1) // 2 if self.metadata["activation"] == "split" else x.shape[1]
            x = np.concatenate([np.maximum(x[:, :half], 0), np.minimum(x[:, half:], 0)], axis=1)
        weights, biases = self._layers[-1]
        return np.tanh(x @ weights.T + biases)[:, 0]


def monotone_layers(units: int = 8) -> Layers:
    """Falls with rate, delay and backlog of every period; loss and spread enter with either sign."""
    rng = np.random.default_rng(3)
    first = np.where(FALLING, -1.0, rng.choice([-1.0, 1.0], (units, 25))) * rng.uniform(0.02, 0.1, (units, 25))
    second = rng.uniform(0.01, 0.1, (units, units))
    return [
        (first, rng.uniform(-0.1, 0.1, units)),
        (second, rng.uniform(-0.1, 0.1, units)),
        (rng.uniform(0.01, 0.1, (1, units)), np.zeros(1)),
    ]


def guided(layers: Layers | None = None) -> Model:
    """A policy that is added to the law."""
    return model.of(ByHand(monotone_layers() if layers is None else layers), "by-hand")


def linear(weights: dict[str, float], bias: float, form: str = "pure") -> Model:
    """tanh(weights of the newest period's features + bias), with no hidden layer."""
    names = ("rate", "delay", "backlog", "loss", "spread")
    row = np.zeros((1, 25))
    for name, weight in weights.items():
        row[0, 20 + names.index(name)] = weight
    return model.of(ByHand([(row, np.array([bias]))], form=form, activation="relu"), "linear")
