"""A policy as a function: what it does with the window of a flow in a steady state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from astraea import models
from astraea.errors import UserError
from astraea.explain.steady import Floats, Situation, states, step
from astraea.learn.forms import FORMS, FormName

Layers = Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
"""Weights (outputs, inputs) and biases (outputs,) from input to output, as they are used."""

CHUNK = 1 << 16
"""States evaluated at once."""


class Policy(Protocol):
    """What is needed of `_native.Policy`."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file says about it."""

    def weights(self) -> Layers:
        """The layers from input to output."""

    def forward(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (n,) for states (n, inputs)."""


@dataclass(frozen=True)
class Model:
    """A policy with what is known about it."""

    name: str
    policy: Policy
    form: FormName
    alpha: float
    activation: str

    @property
    def layers(self) -> Layers:
        """The network's layers."""
        return self.policy.weights()

    @property
    def shape(self) -> str:
        """Sizes from input to output, such as "25-64-32-1"."""
        layers = self.layers
        return "-".join(str(size) for size in (layers[0][0].shape[1], *(len(bias) for _, bias in layers)))

    def action(self, at: Situation) -> Floats:
        """The network's action in -1..1, shape `at.shape`."""
        inputs = states(self.form, at)
        flat = inputs.reshape(-1, inputs.shape[-1])
        parts = [self.policy.forward(flat[i : i + CHUNK]) for i in range(0, len(flat), CHUNK)]
        return np.concatenate(parts).astype(float).reshape(at.shape)

    def step(self, at: Situation) -> Floats:
        """Change of the window's logarithm in a period, law included, shape `at.shape`.

        For round-trip times above a period it is carried out in smaller steps, which does not change its sign.
        """
        action = self.action(at)
        if self.form == "paper":  # equation 3
            return np.sign(action) * np.log1p(self.alpha * np.abs(action))
        return step(self.form, at, self.alpha * action)


def of(policy: Policy, name: str) -> Model:
    """The model of a policy; raises `UserError` if its file does not say what is needed."""
    about = policy.metadata
    form = about.get("form")
    if form not in FORMS:
        raise UserError(f"{name}: form is {form!r}; expected one of {', '.join(FORMS)}")
    return Model(name, policy, cast(FormName, form), float(about["alpha"]), str(about["activation"]))


def load(text: str) -> Model:
    """A policy by the name of one that is shipped, or from a .safetensors file; raises `UserError`."""
    return of(models.load(text), models.path(text).stem)
