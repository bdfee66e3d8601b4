"""The average of the actor: what is evaluated and kept."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Average(nn.Module):
    """An exponential average of parameters, at first a plain mean so that it forgets where training began.

    Learning is fast and then wanders; the average stays in the middle. Effective weights are averaged: those of a
    monotone network keep their signs.
    """

    def __init__(self, parameters: Tensor, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.count = 0
        self.value: Tensor
        self.register_buffer("value", parameters.detach().clone())

    @torch.no_grad()
    def update(self, parameters: Tensor) -> None:
        """Take in the newest parameters."""
        self.count += 1
        weight = max(1.0 - self.decay, 1.0 / (self.count + 1))
        self.value.lerp_(parameters, weight)
