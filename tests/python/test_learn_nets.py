"""The networks: signs, export, first values."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from learn_toy import NumpyPolicy  # noqa: E402

from astraea.learn.average import Average  # noqa: E402
from astraea.learn.forms import FORMS  # noqa: E402
from astraea.learn.nets import Actor, Critics  # noqa: E402

FALLING = FORMS["pure"].falling


def actor(*, monotone: bool, seed: int = 1, scale: float = 1.0, hidden: tuple[int, ...] = (64, 32)) -> Actor:
    """An actor, as it is made or with weights far from that."""
    generator = torch.Generator().manual_seed(seed)
    made = Actor(25, hidden, FALLING if monotone else (), generator=generator)
    with torch.no_grad():
        made.raw.add_((scale - 1) * torch.randn(made.raw.shape, generator=generator))
    return made


def states(n: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(n, 25, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("scale", [1.0, 1.05, 1.3])
def test_monotone_whatever_the_weights(scale: float) -> None:
    net = actor(monotone=True, scale=scale).double()
    low = states(20_000).double()
    rise = states(20_000, seed=2).double().abs() * torch.tensor(FALLING)
    with torch.no_grad():
        before, after = net.logits(low), net.logits(low + rise)
    assert (after <= before + 1e-12).all()
    assert (after < before).float().mean() > 0.9
    with torch.no_grad():
        free = net.logits(low + 2 * (states(20_000, seed=3) * ~torch.tensor(FALLING)))
    assert (free > before).any()
    assert (free < before).any()


def test_ordinary_network_is_not_monotone() -> None:
    net = actor(monotone=False)
    low = states(1000)
    rise = states(1000, seed=2).abs() * torch.tensor(FALLING)
    with torch.no_grad():
        assert (net.logits(low + rise) > net.logits(low)).any()


def test_first_actions_are_scaled() -> None:
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]
    plain, quiet = (
        Actor(25, (64, 32), first_actions=part, generator=g) for part, g in zip((1.0, 0.1), generators, strict=True)
    )
    with torch.no_grad():
        torch.testing.assert_close(quiet.logits(states(100)), 0.1 * plain.logits(states(100)))


@pytest.mark.parametrize("monotone", [False, True])
def test_exported_weights_are_the_network(monotone: bool) -> None:
    net = actor(monotone=monotone, scale=1.05)
    x = states(100_000)
    with torch.no_grad():
        ours = net(x).numpy()
    theirs = NumpyPolicy(*net.weights(net.effective())).forward(x.numpy())
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.std(theirs) > 0.02


def test_exported_signs_show_monotony() -> None:
    net = actor(monotone=True, scale=1.5)
    activation, ((first, _), *later) = net.weights(net.effective())
    assert activation == "split"
    assert (first[:, list(FALLING)] <= 0).all()
    assert (first[:, [not falls for falls in FALLING]] > 0).any()
    for weights, _ in later:
        assert (weights >= 0).all()
        assert not np.signbit(weights).any()


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("hidden", [(32,), (256, 128, 64), (64, 64, 64, 64)])
def test_first_actions_are_small_and_differ(monotone: bool, hidden: tuple[int, ...]) -> None:
    for seed in range(5):
        with torch.no_grad():
            actions = actor(monotone=monotone, seed=seed, hidden=hidden)(states(1000))
        assert actions.abs().mean() < 0.4
        assert actions.std() > 0.002


def test_average_keeps_the_signs_and_follows() -> None:
    nets = [actor(monotone=True, seed=seed, scale=1.2) for seed in range(50)]
    average = Average(nets[0].effective(), 0.9)
    for net in nets:
        average.update(net.effective().detach())
    _, ((first, _), *later) = nets[0].weights(average.value)
    assert (first[:, list(FALLING)] <= 0).all()
    assert all((weights >= 0).all() for weights, _ in later)
    expected = nets[0].effective().detach().clone()
    for count, net in enumerate(nets, start=1):
        weight = max(0.1, 1 / (count + 1))
        expected += weight * (net.effective().detach() - expected)
    torch.testing.assert_close(average.value, expected)


def test_critics_are_two_networks() -> None:
    critics = Critics(5, (16, 8), generator=torch.Generator().manual_seed(1)).double()
    x = torch.randn(7, 5, dtype=torch.float64)
    parts = critics.raw.detach().split([2 * 5 * 16, 2 * 16, 2 * 16 * 8, 2 * 8, 2 * 8, 2])
    expected = []
    for which in range(2):
        value = x
        for index, (fan_in, out) in enumerate([(5, 16), (16, 8), (8, 1)]):
            weights = parts[2 * index].view(2, fan_in, out)[which]
            value = value @ weights + parts[2 * index + 1].view(2, out)[which]
            value = value.relu() if out > 1 else value
        expected.append(value[:, 0])
    with torch.no_grad():
        torch.testing.assert_close(critics(x), torch.stack(expected))
        torch.testing.assert_close(critics.first(x, critics.raw), expected[0])
    assert not torch.allclose(expected[0], expected[1])
