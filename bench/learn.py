"""How fast training goes: updates of the learner, roll-outs, and a reward of one's own beside the built-in one.

python bench/learn.py [--seconds 5]
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch

from astraea import _native
from astraea.learn import config, speed
from astraea.learn.forms import FORMS
from astraea.learn.replay import Layout, Replay
from astraea.learn.reward import Reward
from astraea.learn.td3 import Td3

GLOBAL = 13
"""Values of the global state, neighbours included."""

OWN = Path(__file__).resolve().parent.parent / "examples" / "own_reward.py"


def rate(work: Callable[[], int], seconds: float) -> float:
    """Units of work per second of processor time, after a warm-up."""
    work()
    done, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        done += work()
    return done / (time.process_time() - began)


def updates(settings: config.Config, seconds: float) -> float:
    """Updates per second, sampling included."""
    layout = Layout(GLOBAL, FORMS[settings.policy.form].inputs)
    generator = torch.Generator().manual_seed(1)
    learner = Td3(settings.td3, settings.policy, layout, generator)
    replay = Replay(200_000, layout, 1)
    replay.add(torch.randn(200_000, layout.width, generator=generator).numpy())
    batch = torch.empty(settings.td3.batch, layout.width)

    def twenty() -> int:
        for _ in range(20):
            replay.sample(batch.numpy())
            learner.update(batch)
        learner.progress()
        return 20

    return rate(twenty, seconds)


def decisions(settings: config.Config, seconds: float, own: Reward | None) -> float:
    """Decisions per second and core, from simulation to transitions."""
    policy = settings.policy
    rollout = _native.Rollout(json.dumps(settings.environment), policy.form, policy.alpha, threads=1, seed=1)
    layout = Layout(GLOBAL, FORMS[policy.form].inputs)
    learner = Td3(settings.td3, policy, layout, torch.Generator().manual_seed(1))
    network = _native.Policy.from_weights(policy.form, *learner.actor.weights(learner.average.value), policy.alpha)
    iteration = 0

    def episodes() -> int:
        nonlocal iteration
        iteration = (iteration + 1) % 4  # the same work for both rewards
        batch = rollout.run(network, iteration, 16, 0.3, statistics=own is not None)
        rewards = None if own is None else own(batch.statistics())
        batch.transitions(settings.td3.gamma, settings.td3.steps, rewards)
        return batch.decisions

    return rate(episodes, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="processor time for each figure")
    seconds = parser.parse_args().seconds
    settings = config.load(config.find("astraea-pure"))
    onednn = speed.choose(1, torch.device("cpu"))
    print(f"{platform.machine()}, PyTorch {torch.__version__}, one thread, oneDNN {'on' if onednn else 'off'}")
    print(f"updates, batch {settings.td3.batch}:            {updates(settings, seconds):9.0f} /s")
    if onednn:
        torch.set_float32_matmul_precision("highest")
        print(f"updates without oneDNN:        {updates(settings, seconds):9.0f} /s")
    built_in = decisions(settings, seconds, None)
    own = decisions(settings, seconds, Reward(f"{OWN}:proportional"))
    print(f"decisions, built-in reward:    {built_in:9.0f} /s")
    print(f"decisions, own reward:         {own:9.0f} /s, {own / built_in:.0%} of that")


if __name__ == "__main__":
    main()
