"""Rule tables of RemyCC in files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from astraea.cli import main

Run = Callable[..., tuple[int, str, str]]

SHIPPED = Path(__file__).parents[2] / "crates/cc/src/remy/shipped.dna"

SHORT = ["--set", "duration=3s", "--set", "flow.0.start.every=1s", "--trials", "1", "--no-report", "--out", "run"]


@pytest.fixture
def astraea(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in an empty directory: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return status, *capsys.readouterr()

    return run


def test_a_table_is_a_scheme(astraea: Run) -> None:
    Path("mine.dna").write_bytes(SHIPPED.read_bytes())
    status, _, err = astraea("run", "three-flows", "--cc", "mine.dna,remy", *SHORT)
    assert status == 0, err
    summary = json.loads(Path("run/results.json").read_text())["summary"]
    assert summary["mine.dna"] == summary["remy"], "the same rules"


@pytest.mark.parametrize(
    ("content", "text", "message"),
    [
        (None, "mine.dna", "mine.dna: No such file or directory"),
        (b"hello", "mine.dna", "mine.dna: not a RemyCC rule table: not a protocol buffer, or cut short"),
        (b"", "mine.dna", "mine.dna: not a RemyCC rule table: a domain has neither a rule nor children"),
        (b"x", "mine.dna:delta=1", 'mine.dna: a rule table takes no parameters, not ":delta=1"'),
    ],
)
def test_a_mistake_is_one_line(astraea: Run, content: bytes | None, text: str, message: str) -> None:
    if content is not None:
        Path("mine.dna").write_bytes(content)
    status, out, err = astraea("run", "three-flows", "--cc", text)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: {message}")


def test_more_schemes_than_columns_are_listed_in_rows(astraea: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    schemes = "cubic,newreno,vegas,compound,copa,bbr,bbr3,allegro,vivace,remy"
    status, out, err = astraea("run", "three-flows", "--cc", schemes, *SHORT)
    assert status == 0, err
    names = [line.split()[0] for line in out.splitlines() if line and line.split()[0] in schemes.split(",")]
    assert names == schemes.split(",")
