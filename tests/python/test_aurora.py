"""Aurora's policies: in Python, and trained by the example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from astraea import _native

ROOT = Path(__file__).parents[2]


def test_a_file_gives_back_the_policy(tmp_path: Path) -> None:
    shipped = _native.AuroraPolicy.shipped()
    shipped.save(tmp_path / "mine.aurora")
    assert (tmp_path / "mine.aurora").read_bytes() == (ROOT / "crates/policy/src/aurora/shipped.aurora").read_bytes()
    assert _native.AuroraPolicy.load(tmp_path / "mine.aurora").metadata == shipped.metadata


def test_wrong_weights_are_refused() -> None:
    one = np.zeros((1, 3)), np.zeros(1)
    with pytest.raises(ValueError, match=r"^4 inputs, expected 6 for the form \"aurora\"$"):
        _native.AuroraPolicy([(np.zeros((1, 4)), np.zeros(1))])
    with pytest.raises(ValueError, match=r"^action_limit is \"0\", expected 0\.001 to"):
        _native.AuroraPolicy([one], action_limit=0.0)
    for wrong, found in ((np.zeros((2, 4)), r"shape \(2, 4\)"), (np.zeros(3), "no table"), ("x", "no table")):
        with pytest.raises(ValueError, match=rf"^observations: {found}.*, expected numbers of shape \(n, 3\)$"):
            _native.AuroraPolicy([one]).forward(wrong)


@pytest.fixture(scope="module")
def trainer(example: Callable[[str], ModuleType]) -> ModuleType:
    """The example that trains a policy."""
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    return example("train_aurora")


# Wider links take minutes to learn.
LINKS: dict[str, Any] = {"bandwidth": (200, 400), "delay": (0.05, 0.1), "queue": (100, 500), "loss": 0.0}


def test_training_improves_on_the_start(trainer: ModuleType) -> None:
    # Without a change the first rate is kept. Three seeds came to 1.48 to 1.53 times what that is worth.
    learners = [trainer.train(steps, seed=1, **LINKS) for steps in (0, 200_000)]
    scores = [score(trainer, trainer.policy(learner)) for learner in learners]
    assert scores[1] > 1.25 * scores[0], scores


def test_native_policy_is_the_network(trainer: ModuleType) -> None:
    learner = trainer.train(0, seed=3)
    policy = trainer.policy(learner)
    observations = np.random.default_rng(1).uniform(0.0, 3.0, (10_000, 30)).astype(np.float32)
    expected, _ = learner.predict(observations, deterministic=True)
    assert np.abs(policy.forward(observations) - expected[:, 0]).max() < 1e-5


def test_what_cannot_be_written_is_found_before_training(
    trainer: ModuleType, refusal: Callable[..., tuple[object, str, str]]
) -> None:
    expected = "train_aurora.py: nowhere/mine.aurora: expected NAME.aurora in a directory that can be written to\n"
    assert refusal(trainer, "nowhere/mine.aurora") == (2, "", expected)


def score(trainer: ModuleType, policy: _native.AuroraPolicy) -> float:
    """Mean reward of an interval over 64 links that were not trained on, without noise."""
    links = trainer.Links(**LINKS)
    links.seed(2**40)
    observations, total = links.reset(), 0.0
    for _ in range(400):
        links.step_async(policy.forward(observations)[:, None])
        observations, rewards, _, _ = links.step_wait()
        total += float(rewards.mean()) / 400
    return total
