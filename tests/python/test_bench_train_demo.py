"""bench/train_demo.py: what is better and what is worse than the paper's figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import train_demo  # noqa: E402

EQUAL = {metric: paper for _, metric, paper, _ in train_demo.PAPER}


def verdicts(**changed: float | None) -> list[str]:
    """The last word of the lines that have a figure of the paper's."""
    means = EQUAL | dict.fromkeys((metric for _, metric in train_demo.OURS), 0.5) | changed
    table = train_demo.lines({metric: {"mean": value} for metric, value in means.items() if value is not None})
    return [line.split()[-1] for line in table[1 : 1 + len(EQUAL)]]


@pytest.mark.parametrize(("sign", "expected"), [(1, ["better", "worse", "worse"]), (-1, ["worse", "better", "better"])])
def test_which_way_is_better(sign: int, expected: list[str]) -> None:
    assert verdicts() == ["equal"] * 3
    assert verdicts(**{metric: paper + sign * 0.001 for metric, paper in EQUAL.items()}) == expected


def test_what_was_there_before_stands_beside_it() -> None:
    found = {metric: {"mean": paper} for metric, paper in EQUAL.items()}
    table = train_demo.lines(found, {"jain": {"mean": 0.5}})
    assert table[0].split()[-3:] == ["trained", "untrained", "paper"]
    assert table[1].split()[-4:] == ["0.9910", "0.5000", "0.991", "equal"]
    assert table[2].split()[-4:] == ["0.4080", "none", "0.408", "equal"]


def test_a_policy_that_never_settles_has_no_figure() -> None:
    assert verdicts(stability_mbps=None) == ["equal", "equal", "figure"]


def test_bad_input_is_one_line() -> None:
    run = subprocess.run(
        [sys.executable, BENCH / "train_demo.py", "cubik"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("train_demo: ")
    assert run.stderr.count("\n") == 1
