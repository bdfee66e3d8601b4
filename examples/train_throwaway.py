"""Trains a throw-away agent on sixty-four links at once, with the evolution strategy of `pip install cmaes`."""

import gymnasium
import numpy as np
from cmaes import CMA

import astraea.envs  # noqa: F401  registers the environments

links = gymnasium.make_vec("astraea/SingleFlow-v0", num_envs=64, steps=100, loss=0.0)
optimizer = CMA(mean=np.zeros(4), sigma=2.0, seed=1)


def score(weights: np.ndarray) -> float:
    """Mean reward of an episode in which the action is tanh of a weighted sum of the newest three features."""
    observation, total = links.reset(seed=1)[0], 0.0
    for _ in range(100):
        action = np.tanh(observation[:, -3:] @ weights[:3] + weights[3])
        observation, reward, *_ = links.step(action[:, None])
        total += float(reward.mean()) / 100
    return total


for generation in range(41):
    if generation % 10 == 0:
        print(f"generation {generation}: mean reward {score(optimizer.mean):.0f}")
    candidates = [optimizer.ask() for _ in range(optimizer.population_size)]
    optimizer.tell([(weights, -score(weights)) for weights in candidates])
