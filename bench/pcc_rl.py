# SPDX-License-Identifier: Apache-2.0
"""Steps per CPU second of PCC-RL's gym, the yardstick for ``astraea/SingleFlow-v0`` (see pcc_rl.md).

python bench/pcc_rl.py CHECKOUT [--episodes 50] [--seed 1] [--actions normal]
"""

import argparse
import contextlib
import io
import json
import random
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def cpu_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def drawer(kind: str, env: Any, seed: int) -> Callable[[], Any]:
    """A function that draws one action."""
    rng = np.random.default_rng(seed)
    env.action_space.seed(seed)
    drawers: dict[str, Callable[[], Any]] = {
        "normal": lambda: rng.standard_normal(1),  # an untrained Gaussian policy
        "uniform": lambda: rng.uniform(-1.0, 1.0, 1),
        "space": env.action_space.sample,  # +-1e12: the rate jumps between its limits
    }
    return drawers[kind]


def play(gym: Any, episodes: int, seed: int, kind: str, count: bool) -> dict[str, float]:
    """Play whole episodes; with ``count`` also count packets, which costs time."""
    random.seed(seed)
    env = gym.SimulatedNetworkEnv()
    act = drawer(kind, env, seed)
    steps = packets = 0
    simulated = 0.0
    begin = cpu_seconds()
    for _ in range(episodes):
        env.reset()
        start, done = env.net.cur_time, False
        while not done:
            _, _, done, _ = env.step(act())
            steps += 1
            if count:
                packets += env.senders[0].sent
        simulated += env.net.cur_time - start
    return {"steps": steps, "packets": packets, "simulated_s": simulated, "cpu_s": cpu_seconds() - begin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="directory of the PCC-RL repository")
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--actions", choices=["normal", "uniform", "space"], default="normal")
    args = parser.parse_args()

    sys.argv = sys.argv[:1]  # PCC-RL reads its own options from here
    sys.path.insert(0, str(args.checkout / "src" / "gym"))
    with contextlib.redirect_stdout(io.StringIO()):  # it prints a line per episode
        import network_sim as gym

        timed = play(gym, args.episodes, args.seed, args.actions, count=False)
        counted = play(gym, args.episodes, args.seed, args.actions, count=True)
    steps = timed["steps"]
    if steps != counted["steps"] or timed["simulated_s"] != counted["simulated_s"]:
        sys.exit("the two passes differ: the gym is not determined by its seed")
    print(
        json.dumps(
            {
                "actions": args.actions,
                "seed": args.seed,
                "steps": steps,
                "cpu_s": round(timed["cpu_s"], 2),
                "steps_per_cpu_s": round(steps / timed["cpu_s"]),
                "packets_per_step": round(counted["packets"] / steps, 1),
                "packets_per_cpu_s": round(counted["packets"] / timed["cpu_s"]),
                "simulated_s_per_step": round(timed["simulated_s"] / steps, 4),
            }
        )
    )


if __name__ == "__main__":
    main()
