"""The learner: its losses, its targets, and that it finds the best policy where that is known."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from learn_toy import BestPolicy, NumpyPolicy, ToyRollouts  # noqa: E402

from astraea.learn.config import PolicySettings, Td3Settings  # noqa: E402
from astraea.learn.replay import Layout, Replay  # noqa: E402
from astraea.learn.td3 import Td3  # noqa: E402

LAYOUT = Layout(g=3, s=25)


def learner(*, monotone: bool = True, layout: Layout = LAYOUT, **settings: Any) -> Td3:
    td3 = Td3Settings(hidden=(16, 8), **settings)
    policy = PolicySettings(form="pure", alpha=0.1, hidden=(16, 8), monotone=monotone)
    return Td3(td3, policy, layout, torch.Generator().manual_seed(1))


def rows(n: int, layout: Layout = LAYOUT, seed: int = 1) -> torch.Tensor:
    made = torch.randn(n, layout.width, generator=torch.Generator().manual_seed(seed))
    made[:, layout.g + layout.s].clamp_(-1, 1)
    made[:, -1] = 0.98 ** torch.arange(1, n + 1).clamp(max=5)
    return made


def test_critic_gradient_is_that_of_finite_differences() -> None:
    td3 = learner().double()
    batch, target = rows(6).double(), torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))

    def loss(raw: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            td3.critics.raw.copy_(raw)
        return td3.critic_loss(batch, target)[0]

    start = td3.critics.raw.detach().clone()
    (gradient,) = torch.autograd.grad(loss(start), td3.critics.raw)
    # Small enough a step that hardly a unit's sign changes within it.
    numeric = torch.empty_like(start)
    for index in range(len(start)):
        step = torch.zeros_like(start)
        step[index] = 1e-6
        numeric[index] = (loss(start + step) - loss(start - step)).item() / 2e-6
    torch.testing.assert_close(gradient, numeric, rtol=1e-5, atol=1e-7)
    assert gradient.abs().max() > 0.1


def test_the_critics_loss_is_the_sum_of_both_errors() -> None:
    td3 = learner()
    batch, target = rows(32), torch.randn(32, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        loss, values = td3.critic_loss(batch, target)
        expected = td3.critics(batch[:, : LAYOUT.g + LAYOUT.s + 1])
    torch.testing.assert_close(values, expected)
    errors = [float(np.mean((expected[which].numpy() - target.numpy()) ** 2)) for which in (0, 1)]
    assert errors[0] != pytest.approx(errors[1], rel=1e-3)
    assert loss.item() == pytest.approx(sum(errors), rel=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("monotone", [False, True])
def test_actor_gradient_is_that_of_finite_differences(monotone: bool, penalty: float) -> None:
    td3 = learner(monotone=monotone, logit_penalty=penalty).double()
    batch = rows(6).double()
    start = td3.actor.raw.detach().clone()
    (gradient,) = torch.autograd.grad(td3.actor_loss(batch)[0], td3.actor.raw)
    for index in range(0, len(start), 7):
        values = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                td3.actor.raw.copy_(start)
                td3.actor.raw[index] += step
                values.append(td3.actor_loss(batch)[0].item())
        assert gradient[index].item() == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-8)


def test_target_by_the_definition() -> None:
    """Each transition by itself, with the target networks as NumPy sees them."""
    td3 = learner(target_noise=0.4, target_noise_clip=0.5)
    for seed in range(20):
        td3.update(rows(32, seed=seed))
    td3.target_actor.mul_(3.0)  # far enough that actions reach the ends
    batch, noise = rows(64, seed=99), 2 * torch.randn(64, generator=torch.Generator().manual_seed(3))
    found = td3.target(batch, noise)
    actor = NumpyPolicy(*td3.actor.weights(td3.target_actor))
    clipped = 0
    for row, value, drawn in zip(batch.numpy(), found.numpy(), noise.numpy(), strict=True):
        there = row[LAYOUT.g + LAYOUT.s + 1 : -2]
        action = actor.forward(there[None, LAYOUT.g :])[0] + np.clip(0.4 * drawn, -0.5, 0.5)
        clipped += abs(action) > 1
        x = torch.tensor(np.append(there, np.clip(action, -1, 1)), dtype=torch.float32)
        with torch.no_grad():
            values = td3.critics(x[None], td3.target_critics)[:, 0].tolist()
        assert value == pytest.approx(row[-2] + row[-1] * min(values), abs=1e-5)
    assert clipped > 0
    assert not torch.equal(td3.target_critics, td3.critics.raw)


def test_centred_rewards_only_shift_the_values() -> None:
    """Leaving out c per period takes c / (1 - gamma) off all values, ends and shorter sequences included."""
    td3 = learner(centring=0.25, gamma=0.98).double()
    batch, noise = rows(64).double(), torch.zeros(64, dtype=torch.float64)
    batch[:5, -1] = 0.0
    before = td3.target(batch, noise)
    td3.see_reward(2.0)
    td3.see_reward(6.0)
    assert td3.centre == 3.0
    with torch.no_grad():
        td3.target_critics[-2:] -= 3.0 / (1 - 0.98)  # the output's biases
    torch.testing.assert_close(td3.target(batch, noise), before - 3.0 / (1 - 0.98))
    unchanged = learner()
    unchanged.see_reward(2.0)
    assert unchanged.centre is None


def parts_of(td3: Td3) -> list[int]:
    """Numbers of parameters of each layer's weights and biases, of both critics together."""
    return [2 * size for fan_in, out in pairwise(td3.critics.sizes) for size in (fan_in * out, out)]


def test_update_by_hand() -> None:
    """Two updates: the critics move in both, the actor, the targets and the average in the second one."""
    td3 = learner(tau=0.25, average=0.5)
    before = copy.deepcopy(td3)
    td3.update(rows(32))
    # Each layer's weights, and its biases, are those of the one critic and then those of the other.
    moved = [part.view(2, -1).ne(0).any(1) for part in (td3.critics.raw - before.critics.raw).split(parts_of(td3))]
    assert torch.stack(moved).all(), moved
    for name in ("target_actor", "target_critics"):
        assert torch.equal(getattr(td3, name), getattr(before, name))
    assert torch.equal(td3.actor.raw, before.actor.raw)
    td3.update(rows(32, seed=2))
    assert not torch.equal(td3.actor.raw, before.actor.raw)
    moved = before.target_critics + 0.25 * (td3.critics.raw.detach() - before.target_critics)
    torch.testing.assert_close(td3.target_critics, moved)
    moved = before.target_actor + 0.25 * (td3.actor.effective().detach() - before.target_actor)
    torch.testing.assert_close(td3.target_actor, moved)
    moved = 0.5 * (before.average.value + td3.actor.effective().detach())
    torch.testing.assert_close(td3.average.value, moved)


def test_step_size_halves_down_to_the_floor() -> None:
    td3 = learner(learning_rate=0.01, half_life=100, learning_rate_floor=0.1)
    for updates, expected in ((0, 0.01), (100, 0.005), (200, 0.0025), (10_000, 0.001)):
        td3.updates = updates
        assert td3.learning_rate() == pytest.approx(expected)


def test_the_penalty_is_the_mean_square_of_what_tanh_is_taken_of() -> None:
    td3 = learner(logit_penalty=0.5)
    loss, value, actions = td3.actor_loss(rows(32))
    assert (loss + value).item() == pytest.approx(0.5 * torch.atanh(actions).square().mean().item(), rel=1e-4)
    assert (loss + value).item() > 1e-3


def test_the_penalty_leads_out_of_saturation() -> None:
    """An actor that answers everything with +1: without the penalty it is flat and stays, with it the actions part."""
    spread = {}
    for penalty in (0.0, 0.02):
        td3 = learner(logit_penalty=penalty, learning_rate=1e-2)
        with torch.no_grad():
            td3.actor.raw[-1] = 10.0  # the output's bias
        for seed in range(300):
            td3.update(rows(64, seed=seed))
        spread[penalty] = td3.actor(rows(64)[:, LAYOUT.g : LAYOUT.g + LAYOUT.s]).std().item()
    assert spread[0.0] < 1e-3
    assert spread[0.02] > 1e-2


def test_long_gradients_are_shortened() -> None:
    batch = rows(32)
    batch[:, -2] = 1e4
    td3 = learner(gradient_norm=1.0)
    td3.update(batch)
    assert td3.critics.raw.grad is not None
    assert td3.critics.raw.grad.norm().item() == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("monotone", [False, True])
def test_finds_the_best_policy(monotone: bool) -> None:
    toy = ToyRollouts()
    seeds = range(1000, 1032)
    best = toy.rewards(BestPolicy(), seeds).mean()
    layout = Layout(g=2, s=25)
    torch.set_num_threads(1)
    learning = {"gamma": 0.9, "steps": 2, "learning_rate": 2e-3, "half_life": 1000, "average": 0.99}
    settings = Td3Settings.model_validate({"batch": 64, "hidden": (64, 32)} | learning)
    policy = PolicySettings(form="pure", alpha=0.1, hidden=(32, 16), monotone=monotone)
    td3 = Td3(settings, policy, layout, torch.Generator().manual_seed(1))
    replay = Replay(20_000, layout, 1)
    out = torch.empty(settings.batch, layout.width)

    def score() -> float:
        return float(toy.score(td3.actor.weights(td3.average.value), seeds)["jain"].mean())

    first = score()
    for iteration in range(20):
        batch = toy.run(td3.actor.weights(td3.actor.effective()), iteration, 32, 0.3)
        replay.add(layout.rows(batch.transitions(settings.gamma, settings.steps)))
        for _ in range(100):
            replay.sample(out.numpy())
            td3.update(out)
    assert first < best - 0.1
    assert score() > best - 0.01


def test_state_and_restore_go_on_alike() -> None:
    td3 = learner(half_life=10)
    for seed in range(7):
        td3.update(rows(32, seed=seed))
    state = copy.deepcopy(td3.state())
    other = learner(half_life=10)
    other.restore(state)
    for seed in range(7, 14):
        for one in (td3, other):
            one.update(rows(32, seed=seed))
    for name, tensor in td3.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


def test_replay_is_a_ring_of_the_newest(tmp_path: Path) -> None:
    del tmp_path
    layout = Layout(g=1, s=1)
    replay = Replay(10, layout, 1)
    seen: list[int] = []
    for count in (3, 4, 5, 1, 10, 25, 2):
        new = list(range(len(seen), len(seen) + count))
        seen += new
        replay.add(np.repeat(np.array(new, np.float32)[:, None], layout.width, 1))
        out = np.empty((500, layout.width), np.float32)
        replay.sample(out)
        assert set(out[:, 0]) == set(seen[-10:])
        assert (out == out[:, :1]).all()
