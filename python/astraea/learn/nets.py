"""The networks, each a function of one flat vector of parameters.

One vector makes everything that is done to all parameters at once (Adam, target networks, averages, the signs of a
monotone network) a single operation: at these sizes half of the time would otherwise go into calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from astraea.learn.rollouts import Layers, Weights


class Actor(nn.Module):
    """The policy: states (n, inputs) to actions (n,) in (-1, 1), a multi-layer perceptron ending in tanh.

    With `falling`, one flag for each input, the action is monotone: it never rises with an input whose flag is set, by
    the signs of the weights alone. Those inputs enter with weights <= 0, all later weights are >= 0, and the first half
    of each hidden layer's units computes max(0, x), the other half min(0, x). (With max alone the action would be
    convex.) `first_actions` is a factor on the first weights of the last layer.

    min(0, x) = -max(0, -x), and the two minus signs can be carried by the weights before and after the unit. So inside,
    this is an ordinary ReLU network each of whose weights has a prescribed sign: |w| times that sign.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        falling: Sequence[bool] = (),
        *,
        first_actions: float = 1.0,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.sizes = (inputs, *hidden, 1)
        self.shapes = [(fan_out, fan_in) for fan_in, fan_out in pairwise(self.sizes)]
        self.monotone = any(falling)
        layers = (
            self._rising(generator)
            if self.monotone
            else [_linear(out, fan_in, generator) for out, fan_in in self.shapes]
        )
        layers[-1][0].mul_(first_actions)
        layers[-1][1].zero_()
        self.raw = nn.Parameter(_flat(layers))
        """All parameters, before the signs."""
        signs, fixed = self._signs(falling)
        self.signs: Tensor
        self.fixed: Tensor
        self.register_buffer("signs", signs, persistent=False)
        self.register_buffer("fixed", fixed, persistent=False)

    def _rising(self, generator: torch.Generator) -> list[tuple[Tensor, Tensor]]:
        """First weights of a monotone network.

        Positive weights add up where others cancel. With a mean of 2 / fan-in, an offset that all units of a layer
        share passes on unchanged (half of the units let it pass), instead of growing by the root of the fan-in per
        layer and saturating the tanh. Biases of spread 1/2 keep the units of a layer apart.
        """
        layers = []
        for index, (out, fan_in) in enumerate(self.shapes):
            share = 1.0 / fan_in if index == 0 else 2.0 / fan_in
            weights = torch.randn(out, fan_in, generator=generator) * (share * math.sqrt(math.pi / 2))
            biases = torch.rand(out, generator=generator) - 0.5
            layers.append((weights, biases))
        layers[-1][0].mul_(0.5)
        return layers

    def _signs(self, falling: Sequence[bool]) -> tuple[Tensor, Tensor]:
        """The prescribed sign of each parameter, and whether it is prescribed; shapes as `raw`."""
        signs, fixed = [], []
        before = torch.tensor([-1.0 if falls else 1.0 for falls in falling] or [1.0] * self.sizes[0])
        fixed_before = torch.tensor(list(falling) or [False] * self.sizes[0])
        for out, _ in self.shapes:
            after = halves(out)
            signs += [torch.outer(after, before).flatten(), torch.ones(out)]
            fixed += [fixed_before.expand(out, -1).flatten(), torch.zeros(out, dtype=torch.bool)]
            before, fixed_before = after, torch.full((out,), self.monotone)
        return torch.cat(signs), torch.cat(fixed)

    def effective(self) -> Tensor:
        """All parameters as they are used, shape (parameters,)."""
        if not self.monotone:
            return self.raw
        return torch.where(self.fixed, torch.copysign(self.raw, self.signs), self.raw)

    def forward(self, states: Tensor, parameters: Tensor | None = None) -> Tensor:
        """Actions, shape (n,), with these effective parameters instead of the own ones if given."""
        return torch.tanh(self.logits(states, parameters))

    def logits(self, states: Tensor, parameters: Tensor | None = None) -> Tensor:
        """What tanh makes the actions of, shape (n,)."""
        x = states
        layers = _unflat(self.effective() if parameters is None else parameters, self.shapes)
        for weights, biases in layers[:-1]:
            x = torch.addmm(biases, x, weights.t()).relu_()
        weights, biases = layers[-1]
        return torch.addmm(biases, x, weights.t()).squeeze(1)

    def weights(self, parameters: Tensor) -> Weights:
        """The network with these effective parameters, as roll-outs and policy files take it.

        A monotone network is given with true units max(0, x) and min(0, x), so that the signs can be read off.
        """
        layers: Layers = []
        before = torch.ones(self.sizes[0])
        for weights, biases in _unflat(parameters.detach().cpu(), self.shapes):
            after = halves(len(biases)) if self.monotone else torch.ones(len(biases))
            # + 0.0 turns the zeros' minus signs around.
            signed = after[:, None] * weights * before + 0.0
            layers.append((signed.contiguous().numpy(), (after * biases + 0.0).numpy()))
            before = after
        return "split" if self.monotone else "relu", layers


class Critics(nn.Module):
    """Two independent value functions of (global state, local state, action), evaluated together.

    Input (n, inputs) or (2, n, inputs), output (2, n). The weights of both lie in one tensor per layer, multiplied by
    batched products.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], *, generator: torch.Generator) -> None:
        super().__init__()
        self.sizes = (inputs, *hidden, 1)
        shapes = list(pairwise(self.sizes))
        pairs = [[_linear(out, fan_in, generator) for _ in range(2)] for fan_in, out in shapes]
        weights = [torch.stack([weights.t() for weights, _ in pair]) for pair in pairs]
        biases = [torch.stack([biases[None] for _, biases in pair]) for pair in pairs]
        self.shapes = [tuple(tensor.shape) for layer in zip(weights, biases, strict=True) for tensor in layer]
        self.raw = nn.Parameter(_flat(list(zip(weights, biases, strict=True))))
        """All parameters of both."""

    def forward(self, x: Tensor, parameters: Tensor | None = None) -> Tensor:
        """Values, shape (2, n)."""
        tensors = self._tensors(self.raw if parameters is None else parameters)
        x = x.expand(2, -1, -1)
        for weights, biases in zip(tensors[0:-2:2], tensors[1:-2:2], strict=True):
            x = torch.baddbmm(biases, x, weights).relu_()
        return torch.baddbmm(tensors[-1], x, tensors[-2]).squeeze(2)

    def first(self, x: Tensor, parameters: Tensor) -> Tensor:
        """Values of the first one alone, shape (n,), at half the cost."""
        tensors = [tensor[0] for tensor in self._tensors(parameters)]
        for weights, biases in zip(tensors[0:-2:2], tensors[1:-2:2], strict=True):
            x = torch.addmm(biases, x, weights).relu_()
        return torch.addmm(tensors[-1], x, tensors[-2]).squeeze(1)

    def _tensors(self, parameters: Tensor) -> list[Tensor]:
        parts = torch.split(parameters, [math.prod(shape) for shape in self.shapes])
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def halves(units: int) -> Tensor:
    """Sign of each unit of a split layer: 1 for max(0, x), then -1 for min(0, x). A single unit is an output."""
    signs = torch.ones(units)
    if units > 1:
        signs[(units + 1) // 2 :] = -1.0
    return signs


def _linear(out: int, fan_in: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Weights (out, fan_in) and biases (out,), uniform as in PyTorch's `nn.Linear`."""
    bound = 1.0 / math.sqrt(fan_in)
    weights = (2 * torch.rand(out, fan_in, generator=generator) - 1) * bound
    return weights, (2 * torch.rand(out, generator=generator) - 1) * bound


def _flat(layers: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for layer in layers for tensor in layer])


def _unflat(parameters: Tensor, shapes: Sequence[tuple[int, int]]) -> list[tuple[Tensor, Tensor]]:
    parts = torch.split(parameters, [size for out, fan_in in shapes for size in (out * fan_in, out)])
    return [(parts[2 * i].view(shape), parts[2 * i + 1]) for i, shape in enumerate(shapes)]
