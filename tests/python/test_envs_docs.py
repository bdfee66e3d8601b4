"""The settings in the guide: all of them, with the defaults that the environments have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from astraea.envs import MultiFlowEnv, OrcaEnv, SelectorEnv, SingleFlowEnv
from astraea.envs.settings import (
    MultiFlowSettings,
    OrcaSettings,
    RewardSettings,
    SelectorSettings,
    SingleFlowSettings,
)
from astraea.envs.single_flow import MULTI_OBJECTIVE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "environments.md"


def documented(kind: str) -> dict[str, Any]:
    """Names and defaults in the table whose head says `kind` setting."""
    table = PAGE.read_text(encoding="utf-8").split(f"| {kind} setting |")[1].split("\n\n")[0]
    return {name: json.loads(value) for name, value in re.findall(r"^\| `(\w+)` \| `(.+?)` \|", table, re.M)}


@pytest.mark.parametrize(
    ("env", "kind", "settings"),
    [
        (SingleFlowEnv, "SingleFlow", SingleFlowSettings),
        (OrcaEnv, "Orca", OrcaSettings),
        (SelectorEnv, "Selector", SelectorSettings),
        (MultiFlowEnv, "MultiFlow", MultiFlowSettings),
    ],
)
def test_documented_defaults_change_nothing(env: Any, kind: str, settings: Any) -> None:
    explicit = documented(kind)
    if kind == "MultiFlow":
        explicit["reward"] = documented("reward")
        assert set(explicit["reward"]) == set(RewardSettings.__annotations__)
    assert set(explicit) == set(settings.__annotations__)
    assert_alike(env(), env(**explicit))
    if kind == "MultiFlow":
        # What happens with a probability of 0 shows its other defaults only where it happens.
        merged = {
            name: {**explicit[name], **value} if isinstance(value, dict) else value for name, value in SURE.items()
        }
        assert_alike(env(**SURE), env(**explicit | merged))
    if kind in ("Orca", "Selector"):
        assert_alike(env(lossy=1), env(**explicit | {"lossy": 1}))


def test_documented_defaults_of_multi_objective() -> None:
    explicit = documented("MultiObjective")
    assert explicit.pop("preferences", 36) == len(MULTI_OBJECTIVE["preferences"])
    assert explicit == {name: list(value) for name, value in MULTI_OBJECTIVE.items() if name != "preferences"}


def test_rollouts_run_as_they_are_documented() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Roll-outs")[1]
    block = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(block, names)
    documented = re.findall(r"a mapping from (.*) and (\w+) to arrays", block)[0]
    assert set(names["transitions"]) == {*documented[0].split(", "), documented[1]}
    assert len({len(values) for values in names["transitions"].values()}) == 1
    assert names["scores"]["jain"].shape == (3,)


SURE = {
    "codel": 1,
    "jittered": 1,
    "aggregated": 1,
    "short_flows": {"probability": 1},
    "neighbours": {"probability": 1},
    "changes": {"bandwidth": 1, "rtt": 1},
    "outages": {"probability": 1},
}


def assert_alike(by_default: Any, by_hand: Any) -> None:
    """Two environments with the same spaces, states and rewards."""
    assert by_default.observation_space == by_hand.observation_space
    assert by_default.action_space == by_hand.action_space
    discrete = isinstance(by_default.action_space, Discrete)
    action = np.int64(2) if discrete else np.array([0.3], np.float32)
    for seed in range(5):
        first, _ = by_default.reset(seed=seed)
        second, _ = by_hand.reset(seed=seed)
        np.testing.assert_array_equal(first, second)
        truncated = False
        while not truncated:
            one, other = by_default.step(action), by_hand.step(action)
            np.testing.assert_array_equal(one[0], other[0])
            assert one[1:4] == other[1:4]
            truncated = one[3]
