"""A reward of one's own: proportional fairness. `astraea train examples/own_reward.toml` trains with it.

Run as a program, this file shows what the function makes of a few ways to share a link.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def proportional(
    flows: Mapping[str, NDArray[np.float32]], active: NDArray[np.bool_], link: Mapping[str, NDArray[np.float32]]
) -> NDArray[np.float64]:
    """The mean logarithm of a flow's part of its fair share, less what the queue costs; shape (decisions,)."""
    number = np.maximum(active.sum(axis=1), 1)
    share = (link["capacity"] / number)[:, None]
    part = np.where(active, flows["mean_throughput"] / share, 1.0)
    gain = np.log(np.clip(part, 0.01, None)).sum(axis=1) / number
    inflation = np.where(active, flows["latency"] / flows["base_rtt"], 1.0)
    excess = (inflation - 1.0).sum(axis=1) / number
    reward: NDArray[np.float64] = np.clip(0.1 + 0.05 * gain - 0.02 * np.clip(excess - 0.2, 0.0, None), -0.1, 0.1)
    return reward


if __name__ == "__main__":
    print("two flows on 100 Mbit/s, 30 ms")
    for first, second, latency in ((50, 50, 30), (60, 40, 30), (90, 10, 30), (50, 50, 60), (40, 40, 30)):
        rewards = proportional(
            {
                "mean_throughput": np.array([[first * 1e6, second * 1e6]], np.float32),
                "latency": np.full((1, 2), latency / 1e3, np.float32),
                "base_rtt": np.full((1, 2), 0.03, np.float32),
            },
            np.ones((1, 2), bool),
            {"capacity": np.array([1e8], np.float32)},
        )
        print(f"{first} + {second} Mbit/s, round trip {latency} ms: {rewards[0]:.4f}")
