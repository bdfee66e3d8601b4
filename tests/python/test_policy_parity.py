"""Our inference gives the actions of the networks that PyTorch trains."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from networks import INPUTS, policy  # noqa: E402

from astraea._native import Policy  # noqa: E402
from astraea.learn.forms import FORMS  # noqa: E402
from astraea.learn.nets import Actor  # noqa: E402

STATES = 100_000


def states(inputs: int) -> np.ndarray:
    """States of order one, and some far from it."""
    rng = np.random.default_rng(5)
    return (rng.normal(size=(STATES, inputs)) * rng.choice([0.1, 1.0, 3.0], (STATES, 1))).astype(np.float32)


@pytest.mark.parametrize(
    ("form", "hidden", "monotone"),
    [("paper", (256, 128, 64), False), ("guided", (64, 32), True), ("guided", (256, 128, 64), True)],
)
def test_a_trained_network_acts_alike(form: str, hidden: tuple[int, ...], monotone: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    actor = Actor(INPUTS[form], hidden, FORMS["guided"].falling if monotone else (), generator=generator)
    with torch.no_grad():
        actor.raw.add_(0.02 * torch.randn(actor.raw.shape, generator=generator))
        tried = states(INPUTS[form])
        expected = actor(torch.from_numpy(tried)).numpy()
        made = Policy.from_weights(form, *actor.weights(actor.effective()))
    actions = made.forward(tried)
    assert expected.std() > 0.01, "the network says something"
    np.testing.assert_allclose(actions, expected, atol=1e-5, rtol=0)


def test_layers_act_like_those_of_pytorch() -> None:
    made = policy("paper", "relu", (256, 128, 64))
    modules: list[torch.nn.Module] = []
    for weights, bias in made.weights():
        linear = torch.nn.Linear(weights.shape[1], weights.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights))
            linear.bias.copy_(torch.from_numpy(bias))
        modules += [linear, torch.nn.ReLU()]
    network = torch.nn.Sequential(*modules[:-1], torch.nn.Tanh())
    tried = states(40)
    with torch.no_grad():
        expected = network(torch.from_numpy(tried)).squeeze(1).numpy()
    np.testing.assert_allclose(made.forward(tried), expected, atol=1e-5, rtol=0)
