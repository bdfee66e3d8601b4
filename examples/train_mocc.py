"""Trains a policy of MOCC's (Ma et al., EuroSys 2022): one for all preferences. Needs the extra train.

python examples/train_mocc.py mine.mocc --steps 30000000 --seed 1
astraea run three-flows --cc mine.mocc:throughput=.8,latency=.1,loss=.1 --cc mine.mocc:throughput=.1,latency=.8,loss=.1
python examples/train_mocc.py --score mine.mocc

This is how the shipped policy was made, in twelve minutes on one core. Without options it shows that it runs, in
seconds. What one must know of MOCC is in docs/environments.md (MultiObjective) and in `crates/policy/src/mocc/mod.rs`.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from train_aurora import LINKS, PPO_OF_PCC_RL, Links, whole

from astraea._native import AuroraPolicy, MoccPolicy
from astraea.envs.single_flow import LANDMARKS

Preference = tuple[float, float, float]
"""How much throughput, latency and losses weigh."""

PIVOTS: tuple[Preference, ...] = ((0.6, 0.3, 0.1), (0.1, 0.6, 0.3), (0.3, 0.1, 0.6))
"""What the first phase is trained with; the second one has all landmarks."""

UNITS = 16
"""Of the layer for the preference."""

FIRST_PHASE = 0.25
"""Share of the steps."""

REWARD_SCALE = 0.02
"""Makes returns numbers of order one."""


class Joined(BaseFeaturesExtractor):
    """The intervals, and what a layer of its own makes of the preference."""

    def __init__(self, space: gymnasium.spaces.Box) -> None:
        self.intervals = space.shape[0] - 3
        super().__init__(space, self.intervals + UNITS)
        self.preference = torch.nn.Linear(3, UNITS)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Observations (n, intervals + 3) to features (n, intervals + units)."""
        intervals, weights = observations[:, : self.intervals], observations[:, self.intervals :]
        return torch.cat([intervals, torch.tanh(self.preference(weights))], dim=1)


def links(**settings: Any) -> Links:
    """Many links of MOCC's."""
    return Links("astraea/MultiObjective-v0", **settings)


def train(steps: int, seed: int, **settings: Any) -> PPO:
    """A learner after so many steps: in the first phase an episode draws one of the pivots, then one of the landmarks.

    Actor and critic have layers of 64 and 32 units, and each its own for the preference. What else PPO is told is as in
    `train_aurora.py`; the step size falls to 0 in the second phase.
    """
    torch.set_num_threads(1)
    scaled = {"reward_scale": REWARD_SCALE, **settings}
    learner = PPO(
        "MlpPolicy",
        links(preferences=PIVOTS, **scaled),
        policy_kwargs={
            "net_arch": [64, 32],
            "activation_fn": torch.nn.Tanh,
            "features_extractor_class": Joined,
            "share_features_extractor": False,
        },
        learning_rate=1e-3,
        **PPO_OF_PCC_RL,
        seed=seed,
        verbose=1,
        device="cpu",
    )
    first = int(FIRST_PHASE * steps)
    learner.learn(first, log_interval=10)
    second = links(preferences=LANDMARKS, **scaled)
    second.seed(seed + LINKS)
    learner.set_env(second)
    learner.lr_schedule = lambda left: 1e-3 * left / (1 - FIRST_PHASE)
    return learner.learn(steps - first, log_interval=10, reset_num_timesteps=False)


def policy(learner: PPO, **notes: str) -> MoccPolicy:
    """The mean action of a learner's policy."""
    joined = learner.policy.pi_features_extractor
    assert isinstance(joined, Joined)
    actor = [joined.preference, *learner.policy.mlp_extractor.policy_net, learner.policy.action_net]
    layers = [layer for layer in actor if isinstance(layer, torch.nn.Linear)]
    preference, *rest = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]
    assert isinstance(learner.action_space, gymnasium.spaces.Box)
    return MoccPolicy(preference, rest, action_limit=float(learner.action_space.high[0]), metadata=notes)


WIDER: dict[str, Any] = {
    "bandwidth": (83, 4170),
    "delay": (0.005, 0.1),
    "start": (0.05, 1.5),
    "rate_limits": (40, 10_000),
}
"""Links of up to 50 Mbit/s, and first rates far below: what a policy was not trained for."""


def score(policy: AuroraPolicy | None, preference: Preference, **settings: Any) -> np.ndarray:
    """What a policy reaches on 64 links that nothing was trained on, without noise; None keeps the first rate.

    Means over 400 intervals: reward, throughput over capacity, idle over mean round-trip time, share not lost.
    """
    tried = gymnasium.make_vec("astraea/MultiObjective-v0", num_envs=64, preferences=[preference], **settings)
    observations, _ = tried.reset(seed=2**40)
    total = np.zeros(4)
    for _ in range(400):
        seen = observations[:, : policy.inputs] if policy is not None else observations
        actions = np.zeros(64) if policy is None else policy.forward(seen)
        observations, rewards, _, _, info = tried.step(actions[:, None].astype(np.float32))
        idle = info["base_rtt"] + 1 / info["bandwidth"]
        reached = info["throughput"] / info["bandwidth"], idle / info["latency"], 1 - info["loss"]
        total += [rewards.mean(), *(share.mean() for share in reached)]
    return total / 400


def main() -> None:
    """Train and save, or score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default="mine.mocc", help="where to write the policy, NAME.mocc")
    parser.add_argument("--steps", type=whole, default=100_000, help="monitor intervals on all links together")
    parser.add_argument("--seed", type=whole, default=1)
    parser.add_argument("--score", metavar="FILE", help="train nothing; say what a policy reaches")
    options = parser.parse_args()
    if options.score:
        try:
            report(MoccPolicy.load(options.score))
        except ValueError as error:
            fail(str(error))
        return
    directory = Path(options.file).resolve().parent
    writable = os.access(directory, os.W_OK) and not Path(options.file).is_dir()
    if not options.file.endswith(".mocc") or not writable:
        fail(f"{options.file}: expected NAME.mocc in a directory that can be written to")
    learner = train(options.steps, options.seed)
    command = f"examples/train_mocc.py --steps {options.steps} --seed {options.seed}"
    trained = policy(learner, recipe=command)
    trained.save(options.file)
    report(trained)
    print(f"wrote {options.file}")


def report(policy: MoccPolicy) -> None:
    """Print what a policy reaches, beside Aurora's and a rate that is kept."""
    print("throughput, latency, loss weigh   policy   reward   throughput   idle/mean RTT   not lost")
    for preference in ((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8), (1 / 3, 1 / 3, 1 / 3)):
        for name, tried in (("this", policy.prefer(*preference)), ("aurora", AuroraPolicy.shipped()), ("none", None)):
            weights = ", ".join(f"{weight:.2f}" for weight in preference)
            reward, *reached = score(tried, preference)
            print(f"{weights:>31}   {name:6}   {reward:.4f}   " + "".join(f"{share:<13.4f}" for share in reached))
    for links, settings in (("mean of all 36 in whole tenths", {}), ("... on wider links", WIDER)):
        mean = np.mean([score(policy.prefer(*weights), weights, **settings)[0] for weights in LANDMARKS])
        print(f"{links:>31}   this     {mean:.4f}")


def fail(problem: str) -> NoReturn:
    """End with a line of what is wrong."""
    print(f"train_mocc.py: {problem}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
