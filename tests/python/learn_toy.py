"""A training environment whose best policy is known, in the place of the simulator.

A point at x is moved by half the action; the reward is 1 - x * x after the move. The best action is -2 x, as far as
actions reach: larger moves first lead no further. The policy sees x as the first of 25 inputs, of which it may only
fall; the others are noise. The global state is (x, 1).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astraea._native import Cancel
from astraea.learn.rollouts import Layers, Weights

STEPS = 20
INPUTS = 25
STEP = 0.5


class NumpyPolicy:
    """What a policy file says, evaluated the plain way."""

    def __init__(self, activation: str, layers: Layers) -> None:
        self.layers = [(weights.astype(np.float64), biases.astype(np.float64)) for weights, biases in layers]
        self.activation = activation

    def forward(self, states: NDArray[Any]) -> NDArray[np.float64]:
        x = np.asarray(states, np.float64)
        for weights, biases in self.layers[:-1]:
            x = x @ weights.T + biases
            half = x.shape[1] // 2 if self.activation == "split" else x.shape[1]
            x = np.concatenate([np.maximum(x[:, :half], 0), np.minimum(x[:, half:], 0)], axis=1)
        weights, biases = self.layers[-1]
        return np.asarray(np.tanh(x @ weights.T + biases)[:, 0])


class BestPolicy:
    def forward(self, states: NDArray[Any]) -> NDArray[np.float64]:
        return np.clip(-states[:, 0] / STEP, -1, 1)


Policy = NumpyPolicy | BestPolicy


def n_step(episode: tuple[NDArray[Any], ...], gamma: float, n: int) -> dict[str, list[Any]]:
    """Transitions of one sequence by the definition, one at a time: r[t] follows a[t], the last state has no action."""
    g, s, a, r = episode
    rows: dict[str, list[Any]] = {name: [] for name in ("g", "s", "a", "r", "g2", "s2", "discount")}
    end = len(a)
    for t in range(end):
        steps = min(n, end - t)
        values = (g[t], s[t], a[t], sum(gamma**k * r[t + k] for k in range(steps)), g[t + steps], s[t + steps])
        for name, value in zip(rows, (*values, gamma**steps), strict=True):
            rows[name].append(value)
    return rows


class ToyBatch:
    diverged = 0

    def __init__(self, g: Any, s: Any, a: Any, r: Any) -> None:
        self.g, self.s, self.a, self.r = g, s, a, r
        self.episodes, self.decisions = len(a), a.size
        self.reward_mean = float(r.mean())
        self.seconds = 0.03 * a.size

    def statistics(self) -> dict[str, NDArray[Any]]:
        x = self.g[:, 1:, 0].reshape(-1)
        position = np.stack([x, np.full_like(x, np.nan)], axis=1)
        return {"position": position, "active": ~np.isnan(position), "scale": np.ones(len(x))}

    def transitions(
        self, gamma: float, n: int, rewards: NDArray[np.float64] | None = None
    ) -> dict[str, NDArray[np.float32]]:
        r = self.r if rewards is None else rewards.reshape(self.r.shape)
        rows = [n_step(episode, gamma, n) for episode in zip(self.g, self.s, self.a, r, strict=True)]
        return {name: np.concatenate([row[name] for row in rows]).astype(np.float32) for name in rows[0]}


class ToyRollouts:
    """Like the native class; `delay` makes every other iteration slow."""

    global_size = 2
    largest_episode = (float(STEPS), 1.0)

    def __init__(self, seed: int = 1, delay: float = 0.0) -> None:
        self.seed, self.delay = seed, delay

    def run(
        self,
        policy: Weights,
        iteration: int,
        episodes: int,
        noise: float,
        *,
        statistics: bool = False,
        cancel: Cancel | None = None,
    ) -> ToyBatch:
        del statistics, cancel
        if iteration % 2:
            time.sleep(self.delay)
        return self._play(NumpyPolicy(*policy), np.random.default_rng([self.seed, iteration]), episodes, noise)

    def score(self, policy: Weights, seeds: Sequence[int]) -> Mapping[str, NDArray[np.float64]]:
        rewards, nothing = self.rewards(NumpyPolicy(*policy), seeds), np.zeros(len(seeds))
        one = nothing + 1
        return {
            "jain": rewards,
            "utilization": one,
            "rtt_inflation": one,
            "settled": one,
            "loss": nothing,
            "diverged": nothing,
        }

    def rewards(self, policy: Policy, seeds: Sequence[int]) -> NDArray[np.float64]:
        """Mean reward of an episode for each seed, without noise."""
        return np.array([self._play(policy, np.random.default_rng(seed), 1, 0.0).r.mean() for seed in seeds])

    def _play(self, policy: Policy, random: np.random.Generator, episodes: int, noise: float) -> ToyBatch:
        g = np.ones((episodes, STEPS + 1, 2))
        s = 0.2 * random.normal(size=(episodes, STEPS + 1, INPUTS))
        a, r = np.empty((episodes, STEPS)), np.empty((episodes, STEPS))
        x = random.uniform(-1, 1, episodes)
        for t in range(STEPS + 1):
            g[:, t, 0] = s[:, t, 0] = x
            if t == STEPS:
                break
            chosen = policy.forward(s[:, t].astype(np.float32)) + noise * random.normal(size=episodes)
            a[:, t] = np.clip(chosen, -1, 1)
            x = np.clip(x + STEP * a[:, t], -2, 2)
            r[:, t] = 1 - x * x
        return ToyBatch(g, s, a, r)
