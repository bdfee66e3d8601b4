"""Transitions per second and core of roll-outs, as JSON, and a table on stderr: `python bench/rollouts.py [SECONDS]`.

Each figure is the best of three rounds of SECONDS each (default 5) of processor time on one thread, with five-step
transitions written out: other work on the machine only ever takes away. The network, 256-128-64, is evaluated as in
training but answers 0, so that the law of the guided form and the exploration noise drive the flows: what is measured
is a policy that works, not one that floods the link. `efficiency` is the speed on two threads over the speed on one, by
the wall clock; `own_reward` is the speed, as a share, when statistics are kept for a reward in Python.

Most of the time goes into packets, so the figure follows from how many a flow has in a period: `table 3, to the end` is
the same domain with flows that stay, more of which share the link. Each domain is measured with a packet for each
segment, and with packets of half a millisecond of the link (`offload`), as the default policy is trained.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import astraea
from astraea._native import Policy, Rollout, build_profile

TABLE_3: dict[str, Any] = {}
"""The defaults."""

WIDE: dict[str, Any] = {
    "bandwidth": [5e6, 1e9],
    "bandwidth_scale": "log",
    "rtt": [0.005, 0.3],
    "rtt_scale": "log",
    "buffer_min_packets": 5,
    "codel": 0.1,
    "loss": [0, 0.02],
    "lossy": 0.3,
    "jittered": 0.3,
    "aggregated": 0.2,
    "flows": [1, 50],
    "flows_scale": "log",
    "arrival_gap": [0.05, 10],
    "lifetime": [5, 100],
    "short_flows": {"probability": 0.1},
    "neighbours": {"probability": 0.2, "flows": [1, 4]},
    "changes": {"bandwidth": 0.15, "rtt": 0.15, "every": [3, 15]},
    "outages": {"probability": 0.05},
}
"""The domain that the default policy declares."""

OFFLOAD = 5e-4
SINGLE = {"table 3": TABLE_3, "table 3, to the end": {"lifetime": None}, "wide": WIDE}
DOMAINS = SINGLE | {f"{name}, offload": domain | {"offload": OFFLOAD} for name, domain in SINGLE.items()}
NOISE = 0.3
EPISODES = 16


def policy() -> Policy:
    """A network of the papers' size whose last layer is zero."""
    rng = np.random.default_rng(1)
    sizes = [25, 256, 128, 64, 1]
    layers = [(rng.normal(0, n_in**-0.5, (n_out, n_in)), np.zeros(n_out)) for n_in, n_out in pairwise(sizes)]
    layers[-1] = (np.zeros((1, 64)), np.zeros(1))
    return Policy.from_weights("guided", "relu", layers)


def round_of(runs: Rollout, seconds: float, clock: Callable[[], float], own_reward: bool = False) -> dict[str, float]:
    """Runs iterations for so long; speed, and what they consisted of."""
    network = policy()
    transitions = diverged = simulated = episodes = iteration = 0.0
    start = clock()
    while (elapsed := clock() - start) < seconds:
        batch = runs.run(network, int(iteration), EPISODES, NOISE, statistics=own_reward)
        rewards = reward(batch.statistics()) if own_reward else None
        transitions += len(batch.transitions(0.98, 5, rewards)["a"])
        diverged, simulated, episodes = diverged + batch.diverged, simulated + batch.seconds, episodes + batch.episodes
        iteration += 1
    return {
        "transitions_per_second": transitions / elapsed,
        "simulated_seconds_per_second": simulated / elapsed,
        "transitions_per_simulated_second": transitions / simulated,
        "diverged": diverged / episodes,
    }


def reward(statistics: dict[str, Any]) -> Any:
    """A reward of one's own: throughput, less what is unfair."""
    throughput, active = statistics["throughput"], statistics["active"]
    total = np.nansum(throughput, axis=1)
    mean = total / active.sum(axis=1)
    deviation = np.sqrt(np.nanmean((throughput - mean[:, None]) ** 2, axis=1))
    return (total / statistics["capacity"] - 0.2 * deviation / np.maximum(mean, 1.0)).astype(np.float64)


def measure(domain: dict[str, Any], seconds: float) -> dict[str, float]:
    """Everything about one domain, in turns, and the best of each."""
    one, two = (Rollout(json.dumps(domain), "guided", 0.1, threads=threads, seed=1) for threads in (1, 2))
    rounds, walls = [], []
    for _ in range(3):
        rounds.append((round_of(one, seconds, time.process_time), round_of(one, seconds, time.process_time, True)))
        walls.append([round_of(runs, seconds, time.perf_counter)["transitions_per_second"] for runs in (one, two)])
    plain = max((first for first, _ in rounds), key=lambda r: r["transitions_per_second"])
    own = max(second["transitions_per_second"] for _, second in rounds)
    alone, together = (max(speeds) for speeds in zip(*walls, strict=True))
    return {
        **{name: round(value, 3 if value < 10 else None) for name, value in plain.items()},
        "own_reward": round(own / plain["transitions_per_second"], 3),
        "efficiency": round(together / alone, 3),
    }


def main() -> None:
    """Measures all domains and prints the results."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    results = {name: measure(domain, seconds) for name, domain in DOMAINS.items()}
    columns = list(results["table 3"])
    print(f"{'domain':28}", *columns, sep="  ", file=sys.stderr)
    for name, row in results.items():
        cells = (f"{row[column]:>{len(column)}g}" for column in columns)
        print(f"{name:28}", *cells, sep="  ", file=sys.stderr)
    about = {
        "astraea": astraea.__version__,
        "build": build_profile,
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "network": "25-256-128-64-1",
        "domains": results,
    }
    json.dump(about, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
