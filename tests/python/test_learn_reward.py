"""A reward of one's own: what it is given, and what is said when it is wrong."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astraea.errors import UserError
from astraea.learn.config import ValidationSettings
from astraea.learn.reward import Reward
from astraea.learn.validation import score, values

STATISTICS: dict[str, Any] = {
    "throughput": np.array([[1e6, np.nan], [2e6, 3e6]], np.float32),
    "neighbour": np.array([[False, False], [False, True]]),
    "active": np.array([[True, False], [True, True]]),
    "capacity": np.array([1e7, 1e7], np.float32),
}


def write(path: Path, body: str) -> str:
    path.write_text(f"import numpy as np\n\ndef reward(flows, active, link):\n    {body}\n")
    return f"{path}:reward"


def test_it_sees_flows_and_link(tmp_path: Path) -> None:
    body = "return np.where(active, flows['throughput'], 0).sum(1) / link['capacity'] - flows['neighbour'].sum(1)"
    rewards = Reward(write(tmp_path / "mine.py", body))(STATISTICS)
    np.testing.assert_allclose(rewards, [0.1, -0.5])
    assert rewards.dtype == np.float64


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1.0", "mine.py:reward: returned an array of shape (), expected (2,): one reward for each decision"),
        ("return active", "mine.py:reward: returned an array of shape (2, 2), expected (2,)"),
        (
            "return flows['throughput'].sum(1)",
            "mine.py:reward: 1 of 2 rewards are not finite numbers, first that of decision 0: nan",
        ),
        ("return flows['thr']", "mine.py:reward: line 4: KeyError: 'thr'"),
        ("return np.full(2, 1e39)", "mine.py:reward: 2 of 2 rewards are not finite numbers, first that of decision 0"),
        ("return np.full(2, 1j)", "mine.py:reward: TypeError: rewards are real numbers, not complex ones"),
        ("raise SystemExit(0)", "mine.py:reward: line 4: SystemExit: 0"),
        ("return np.array(['a', 'b'])", "mine.py:reward: ValueError: could not convert string to float"),
    ],
)
def test_one_line_names_file_and_function(tmp_path: Path, body: str, message: str) -> None:
    reward = Reward(write(tmp_path / "mine.py", body))
    with pytest.raises(UserError) as error:
        reward(STATISTICS)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_it_prints_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Reward(write(tmp_path / "mine.py", "print('here'); return np.zeros(2)"))(STATISTICS)
    assert capsys.readouterr() == ("", "here\n")


def test_it_is_known_again_by_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    reward = Reward(write(tmp_path / "mine.py", "return active.sum(1)"))
    first = reward.identity
    digest = hashlib.sha256((tmp_path / "mine.py").read_bytes()).hexdigest()
    assert first == f"mine.py:reward {digest}", "as checkpoints have it"
    assert Reward(write(tmp_path / "elsewhere" / "mine.py", "return active.sum(1)")).identity == first
    assert Reward(write(tmp_path / "mine.py", "return -active.sum(1)")).identity != first
    assert reward.identity == first, "it is what was read"


def test_its_file_may_have_any_name(tmp_path: Path) -> None:
    for name in ("mine", "mine.txt", "mine.v2.py"):
        reward = Reward(write(tmp_path / name, "return np.ones(len(active))"))
        np.testing.assert_array_equal(reward(STATISTICS), [1, 1])
    with pytest.raises(UserError, match=r"mine\.txt:reward: line 4: KeyError: 'thr'"):
        Reward(write(tmp_path / "mine.txt", "return flows['thr']"))(STATISTICS)


@pytest.mark.parametrize(
    ("content", "reference", "message"),
    [
        (None, "mine.py:reward", "mine.py: no such file"),
        ("", "mine.py", 'expected "file.py:function", not "'),
        ("", "mine.py:1", 'expected "file.py:function", not "'),
        ("def rewards(): ...", "mine.py:reward", 'mine.py has no function "reward"; did you mean "rewards"?'),
        ("reward = 3", "mine.py:reward", 'mine.py has no function "reward"'),
        ("x = 1\ndef reward(:\n", "mine.py:reward", "mine.py: line 2: invalid syntax"),
        ("raise SystemExit(0)", "mine.py:reward", "mine.py: line 1: SystemExit: 0"),
        ("x = 1\nimport astraea.nothing", "mine.py:reward", "mine.py: line 2: ModuleNotFoundError: No module named"),
    ],
)
def test_function_that_cannot_be_had(tmp_path: Path, content: str | None, reference: str, message: str) -> None:
    if content is not None:
        (tmp_path / "mine.py").write_text(content)
    with pytest.raises(UserError) as error:
        Reward(f"{tmp_path}/{reference}")
    assert str(error.value).startswith("reward: ")
    assert message in str(error.value)


def test_what_is_there_but_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"reward: {tmp_path}: is no file"):
        Reward(f"{tmp_path}:f")


def measured(**changes: list[float]) -> dict[str, Any]:
    """Ten perfect episodes, changed."""
    names = ("jain", "utilization", "rtt_inflation", "settled", "loss", "diverged")
    perfect = {name: np.full(10, float(name not in ("loss", "diverged"))) for name in names}
    return perfect | {name: np.array(values) for name, values in changes.items()}


def test_validation_score_by_hand() -> None:
    settings = ValidationSettings(jain=2, utilization=1, settled=0.5, delay=0.1, loss=3, tail=0.25)
    assert score(settings, measured()).score == pytest.approx(settings.full()) == 3.5
    of_one = [0.9, *[1.0] * 9]
    assert values(settings, measured(jain=of_one))[0] == pytest.approx(3.3)
    assert values(settings, measured(utilization=of_one))[0] == pytest.approx(3.4)
    assert values(settings, measured(settled=of_one))[0] == pytest.approx(3.45)
    assert values(settings, measured(rtt_inflation=[1.5, *[1.0] * 9]))[0] == pytest.approx(3.45)
    assert values(settings, measured(rtt_inflation=[7.0, *[1.0] * 9]))[0] == pytest.approx(3.4)
    assert values(settings, measured(loss=[0.1, *[0.0] * 9]))[0] == pytest.approx(3.2)
    # Of ten values the 10th percentile lies nine tenths of the way from the lowest to the one above it.
    found = score(settings, measured(jain=of_one))
    assert found.score == pytest.approx(0.75 * (3.5 - 0.02) + 0.25 * (3.3 + 0.9 * 0.2))
    assert found.jain == pytest.approx(0.99)


def test_episodes_without_a_figure() -> None:
    settings = ValidationSettings()
    nothing = [float("nan"), *[1.0] * 9]
    assert values(settings, measured(settled=nothing))[0] == settings.full()
    assert settings.least() == pytest.approx(-1.05)
    assert values(settings, measured(utilization=nothing))[0] == settings.least()
    assert values(settings, measured(diverged=[1.0, *[0.0] * 9]))[0] == settings.least()
    assert score(settings, measured(settled=[float("nan")] * 10)).settled == 1
    found = score(settings, measured(**dict.fromkeys(("rtt_inflation", "loss", "jain", "utilization"), nothing)))
    assert all(math.isfinite(value) for value in found.as_dict().values())
    assert (found.rtt_inflation, found.loss, found.jain_p10, found.utilization_p10) == (1, 1, 1, 1)
    of_none = score(settings, measured(**{name: [float("nan")] * 10 for name in measured()}))
    assert of_none.score == pytest.approx(settings.least())
    assert (of_none.jain, of_none.utilization, of_none.rtt_inflation, of_none.loss) == (0, 0, 1, 0)


def test_no_episode_is_worse_than_one_that_diverged() -> None:
    """Not even with weights by which all scores are negative."""
    settings = ValidationSettings(jain=0, settled=0, utilization=0.1, delay=2, loss=20)
    poor = measured(rtt_inflation=[3.0] * 10, loss=[0.9] * 10)
    diverged = measured(diverged=[1.0] * 10)
    assert settings.least() == -22
    assert score(settings, diverged).score == pytest.approx(-22)
    assert -22 < score(settings, poor).score < 0
