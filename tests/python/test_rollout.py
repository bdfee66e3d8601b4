"""Roll-outs as the learner sees them: reproducible, resumable, and strict about what they are given."""

from __future__ import annotations

import json
import re
import signal
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from astraea._native import Cancel, Policy, Rollout

DOMAIN: dict[str, Any] = {
    "bandwidth": [5e6, 50e6],
    "bandwidth_scale": "log",
    "flows": [1, 4],
    "arrival_gap": [0.2, 2],
    "duration": 5,
    "loss": [0, 0.02],
    "lossy": 0.5,
    "jittered": 0.5,
    "codel": 0.3,
    "neighbours": {"probability": 0.5, "flows": [1, 2]},
    "changes": {"bandwidth": 0.5, "rtt": 0.5, "every": [1, 2]},
    "outages": {"probability": 0.3, "every": [1, 3], "length": [0.1, 0.5]},
    "short_flows": {"probability": 0.5},
}


def policy(form: str = "pure", inputs: int = 25) -> Policy:
    rng = np.random.default_rng(1)
    sizes = [inputs, 16, 8, 1]
    layers = [
        (rng.normal(0, n_in**-0.5, (n_out, n_in)).astype(np.float32), np.zeros(n_out, np.float32))
        for n_in, n_out in pairwise(sizes)
    ]
    return Policy.from_weights(form, "relu", layers)


def rollout(threads: int = 1, seed: int = 3, **settings: Any) -> Rollout:
    return Rollout(json.dumps(DOMAIN | settings), "pure", 0.1, threads=threads, seed=seed)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    assert one.keys() == other.keys()
    return all(np.array_equal(one[key], other[key], equal_nan=one[key].dtype.kind == "f") for key in one)


def test_threads_and_earlier_iterations_do_not_matter() -> None:
    one, two = rollout(threads=1), rollout(threads=2)
    assert (one.threads, two.threads) == (1, 2)
    batches = [one.run(policy(), iteration, 8, 0.3, statistics=True) for iteration in (0, 1)]
    again = two.run(policy(), 1, 8, 0.3, statistics=True)
    assert same(batches[1].transitions(0.98, 5), again.transitions(0.98, 5))
    assert same(batches[1].statistics(), again.statistics())
    assert batches[0].decisions != again.decisions
    assert rollout(seed=4).run(policy(), 1, 8, 0.3).decisions != again.decisions
    seeds = [7, 8, 9]
    assert same(one.score(policy(), seeds), two.score(policy(), seeds))
    assert same(one.score(policy(), seeds[1:]), {k: v[1:] for k, v in one.score(policy(), seeds).items()})


def test_shapes() -> None:
    runs = rollout()
    batch = runs.run(policy(), 0, 8, 0.3, statistics=True)
    assert batch.episodes == 8
    assert batch.seconds == pytest.approx(8 * 5.03) or batch.diverged > 0
    transitions = batch.transitions(0.98, 5)
    n = len(transitions["a"])
    assert 0 < n < batch.decisions
    assert (runs.global_size, runs.local_size) == (13, 25)
    assert {key: value.shape for key, value in transitions.items()} == {
        "g": (n, 13),
        "s": (n, 25),
        "a": (n,),
        "r": (n,),
        "g2": (n, 13),
        "s2": (n, 25),
        "discount": (n,),
    }
    for value in transitions.values():
        assert value.dtype == np.float32
        assert np.isfinite(value).all()
    assert np.abs(transitions["a"]).max() <= 1
    # Up to five steps of 0.98; only the ends of diverged episodes have none.
    powers = {np.float32(0.98**k) for k in range(1, 6)} | ({np.float32(0)} if batch.diverged else set())
    assert set(transitions["discount"]) == powers

    statistics = batch.statistics()
    active = statistics["active"]
    rows, flows = active.shape
    assert rows == batch.decisions
    assert active[:, -1].any(), "no wider than needed"
    assert active.any(axis=1).all(), "whoever asks is there"
    for name in ("throughput", "latency", "cwnd", "base_rtt"):
        assert statistics[name].shape == (rows, flows)
        np.testing.assert_array_equal(np.isnan(statistics[name]), ~active)
    assert (statistics["neighbour"] <= active).all()
    assert statistics["neighbour"].any()
    for name in ("time", "capacity", "buffer", "rtt"):
        assert statistics[name].shape == (rows,)
        assert (statistics[name] > 0).all()
    assert len(np.unique(statistics["capacity"])) > 8, "it changes within episodes"
    assert rollout(neighbours={}).global_size == 12


def test_rewards_of_ones_own() -> None:
    batch = rollout().run(policy(), 0, 4, 0.3)
    built_in = batch.rewards()
    assert batch.reward_mean == pytest.approx(built_in.mean(), abs=1e-6)
    explicit = batch.transitions(0.9, 3, built_in.astype(np.float64))
    assert same(explicit, batch.transitions(0.9, 3))
    # The sum of a constant reward is what the discounts say.
    ones = batch.transitions(0.9, 3, np.ones(batch.decisions))
    ended = ones["discount"] == 0
    np.testing.assert_allclose(ones["r"][~ended], (1 - ones["discount"][~ended]) / 0.1, rtol=1e-5)


def test_noise_is_what_makes_episodes_explore() -> None:
    runs = rollout(changes={}, neighbours={}, short_flows={})
    quiet = runs.run(policy(), 0, 4, 0.0).transitions(0.98, 1)
    expected = policy().forward(quiet["s"])
    np.testing.assert_allclose(quiet["a"], expected, atol=1e-6)
    noisy = runs.run(policy(), 0, 4, 0.3).transitions(0.98, 1)
    difference = noisy["a"] - policy().forward(noisy["s"])
    # 0.3 times 0.2 to 1.5, and a little less by clipping.
    assert 0.03 < difference.std() < 0.45


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Rollout("{}", "papers", 0.1), 'form: is "papers", expected one of paper, pure, guided'),
        (lambda: Rollout('{"rtt": 0}', "pure", 0.1), "rtt: is [0, 0], expected two numbers in order, 0.0001 to 10"),
        (
            lambda: Rollout('{"alpha": 0.5}', "pure", 0.1),
            "alpha: is an argument of its own, and no setting of the environment here",
        ),
        (
            lambda: rollout(duration=3600, flows=1000, period=0.01, lifetime=None),
            "duration: 3600 s of 1000 flows are 360000000 decisions with a period of 0.01 s, expected at most 10000000",
        ),
        (lambda: Rollout("{}", "pure", 0.0), "alpha: is 0, expected 0.000001 to 1"),
        (lambda: rollout().run(policy("paper", 40), 0, 1, 0.1), 'policy: is of the form "paper", expected "pure"'),
        (lambda: rollout().score(policy("guided"), [1]), 'policy: is of the form "guided", expected "pure"'),
        (lambda: rollout().run(policy(), 0, 0, 0.1), "episodes: is 0, expected 1 to 1000000"),
        (lambda: rollout().run(policy(), 0, 1, float("nan")), "noise: is NaN, expected 0 to 10"),
        (
            lambda: rollout().run(policy(), 0, 1, 0.1).statistics(),
            "statistics: were not kept, run with statistics=True",
        ),
        (lambda: rollout().run(policy(), 0, 1, 0.1).transitions(1.5, 1), "gamma: is 1.5, expected 0 to 1"),
        (lambda: rollout().run(policy(), 0, 1, 0.1).transitions(0.9, 0), "n: is 0, expected 1 to 1000000"),
    ],
)
def test_mistakes_have_one_line(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}$"):
        call()


def test_rewards_from_statistics_are_rewards() -> None:
    batch = rollout().run(policy(), 0, 4, 0.3, statistics=True)
    rewards = np.nansum(batch.statistics()["throughput"], axis=1) / batch.statistics()["capacity"]
    assert rewards.dtype == np.float32
    expected = batch.transitions(0.9, 3, rewards.astype(np.float64))
    for given in (rewards, rewards.tolist(), np.repeat(rewards, 2)[::2]):
        assert same(batch.transitions(0.9, 3, given), expected)
    whole = batch.transitions(0.9, 3, np.ones(batch.decisions, np.int64))
    assert same(whole, batch.transitions(0.9, 3, np.ones(batch.decisions)))


@pytest.mark.timeout(60)
def test_roll_outs_can_be_cancelled() -> None:
    """These would take hours."""
    runs = rollout(bandwidth=1e9, duration=3000, lifetime=None, threads=2)
    for work in (
        lambda cancel: runs.run(policy(), 0, 100, 0.1, cancel=cancel),
        lambda cancel: runs.score(policy(), range(100), cancel=cancel),
    ):
        cancel = Cancel()
        timer = threading.Timer(0.5, cancel.cancel)
        timer.start()
        with pytest.raises(KeyboardInterrupt, match="cancelled"):
            work(cancel)
        timer.join()


@pytest.mark.timeout(60)
def test_a_signal_ends_roll_outs() -> None:
    runs = rollout(bandwidth=1e9, duration=3000, lifetime=None, threads=2)

    def end(*_: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(InterruptedError):
            runs.score(policy(), range(100))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_rewards_must_fit() -> None:
    batch = rollout().run(policy(), 0, 2, 0.1)
    with pytest.raises(ValueError, match=rf"^rewards: 3 of them, expected {batch.decisions}, one for each decision$"):
        batch.transitions(0.98, 5, np.zeros(3))
    rewards = np.zeros(batch.decisions)
    rewards[4] = np.inf
    with pytest.raises(ValueError, match=r"^rewards\[4\]: is inf, expected a number$"):
        batch.transitions(0.98, 5, rewards)
    column = np.zeros((batch.decisions, 1))
    message = f"rewards: an array of shape ({batch.decisions}, 1), expected {batch.decisions}, one for each decision"
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}$"):
        batch.transitions(0.98, 5, column)
    for wrong in ("high", ["high"], {}, [[1.0], []]):
        message = f"rewards: no array of numbers, expected {batch.decisions}, one for each decision"
        with pytest.raises(ValueError, match=rf"^{re.escape(message)}$"):
            batch.transitions(0.98, 5, wrong)  # type: ignore[arg-type]
