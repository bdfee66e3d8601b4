"""Trains Aurora's policy (Jay et al., ICML 2019) with PPO, nearly as its authors did: needs the extra train.

python examples/train_aurora.py mine.aurora --steps 4000000 --seed 1
astraea run three-flows --cc mine.aurora,aurora,cubic

This is how the shipped policy was made, in two minutes on one core. Without options a few seconds show that it runs; a
policy that is worth something takes a million steps and more. What one must know of Aurora is in docs/environments.md
(SingleFlow) and in `crates/policy/src/aurora/sender.rs`.
"""

# ruff: noqa: ARG002  the interface is that of Stable-Baselines3

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import astraea.envs  # noqa: F401  registers the environments
from astraea._native import AuroraPolicy

REWARD_SCALE = 1e-5
"""Makes returns numbers of order one. With PCC-RL's 0.001 the gradient of the value, which is clipped together with the
policy's, leaves little of the latter: one of two trainings ended with a third of its packets lost."""

LINKS = 64
"""Links at once. With 128 steps on each between two updates that makes the 8192 steps of PCC-RL's `stable_solve.py`."""

PPO_OF_PCC_RL: dict[str, Any] = {
    "n_steps": 8192 // LINKS,
    "batch_size": 2048,
    "n_epochs": 4,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.01,
}
"""The hyper-parameters of PCC-RL's `stable_solve.py` and of the PPO1 that it uses."""


class Links(VecEnv):
    """Many links of an environment as Stable-Baselines3 wants them. All episodes have the same length."""

    def __init__(self, environment: str = "astraea/SingleFlow-v0", **settings: Any) -> None:
        self.links = gymnasium.make_vec(environment, num_envs=LINKS, **settings)
        super().__init__(LINKS, self.links.single_observation_space, self.links.single_action_space)
        self.actions: np.ndarray | None = None

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Takes the seed of the first link; the others have the numbers that follow."""
        self.links.reset(seed=seed)
        return [seed] * LINKS

    def reset(self) -> np.ndarray:
        """New episodes on all links."""
        observations: np.ndarray = self.links.reset()[0]
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Takes the actions, shape (links, 1)."""
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """An interval on each link."""
        observations, rewards, _, over, _ = self.links.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(LINKS)]
        if over.all():
            infos = [{"terminal_observation": last, "TimeLimit.truncated": True} for last in observations]
            observations = self.reset()
        return observations, rewards, over, infos

    def close(self) -> None:
        """Ends the environments."""
        self.links.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, which all links have in common."""
        return [getattr(self.links, attr_name, None)] * LINKS

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Links have no attributes to be set."""
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Links have no methods of their own."""
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """They are not."""
        return [False] * LINKS


def train(steps: int, seed: int, **settings: Any) -> PPO:
    """A learner after so many steps.

    What differs from PCC-RL: the step size falls to 0, which was constant there; rewards have another scale; actions
    end at 1.
    """
    torch.set_num_threads(1)
    learner = PPO(
        "MlpPolicy",
        Links(reward_scale=REWARD_SCALE, **settings),
        policy_kwargs={"net_arch": [32, 16], "activation_fn": torch.nn.Tanh},
        learning_rate=lambda left: 1e-3 * left,
        **PPO_OF_PCC_RL,
        seed=seed,
        verbose=1,
        device="cpu",
    )
    return learner.learn(steps, log_interval=10)


def policy(learner: PPO, **notes: str) -> AuroraPolicy:
    """The mean action of a learner's policy."""
    actor = [*learner.policy.mlp_extractor.policy_net, learner.policy.action_net]
    layers = [layer for layer in actor if isinstance(layer, torch.nn.Linear)]
    arrays = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]
    assert isinstance(learner.action_space, gymnasium.spaces.Box)
    return AuroraPolicy(arrays, action_limit=float(learner.action_space.high[0]), metadata=notes)


def whole(text: str) -> int:
    """A whole number of the command line, from 1 to 2^32 - 1: what Stable-Baselines3 takes for a seed."""
    if not text.isdecimal() or not 1 <= int(text) < 2**32:
        raise argparse.ArgumentTypeError(f"is {text}, expected a whole number from 1 to 2^32 - 1")
    return int(text)


def main() -> None:
    """Train and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default="mine.aurora", help="where to write the policy, NAME.aurora")
    parser.add_argument("--steps", type=whole, default=100_000, help="monitor intervals on all links together")
    parser.add_argument("--seed", type=whole, default=1)
    options = parser.parse_args()
    directory = Path(options.file).resolve().parent
    writable = os.access(directory, os.W_OK) and not Path(options.file).is_dir()
    if not options.file.endswith(".aurora") or not writable:
        print(
            f"train_aurora.py: {options.file}: expected NAME.aurora in a directory that can be written to",
            file=sys.stderr,
        )
        raise SystemExit(2)
    learner = train(options.steps, options.seed)
    command = f"examples/train_aurora.py --steps {options.steps} --seed {options.seed}"
    policy(learner, recipe=command).save(options.file)
    print(f"wrote {options.file}")


if __name__ == "__main__":
    main()
