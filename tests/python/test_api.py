"""Running scenarios from a program."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import astraea
from astraea.cli import main
from astraea.eval import runner

SHORT = {"flow.0.start.every": "1s", "flow.0.duration": "3s"}


def test_the_same_as_the_command(tmp_path: Path) -> None:
    settings = SHORT | {"flow.count": 2, "flow.ecn": True, "link.bottleneck.loss": 0.001}
    results = astraea.run("three-flows", cc=["cubic:hystart=off", "newreno"], settings=settings, trials=2, seed=5)
    results.write(tmp_path / "program")
    command = results.content["command"].split()
    assert command[:3] == ["astraea", "run", "three-flows"]
    assert main([*command[1:], "--quiet", "--no-report", "--out", str(tmp_path / "command")]) == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "program").iterdir()}
    assert "results.json" in written
    assert written == {path.name: path.read_bytes() for path in (tmp_path / "command").iterdir()}


def test_results(tmp_path: Path) -> None:
    (tmp_path / "even.trace").write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    results = astraea.run("three-flows", settings=SHORT, trials=2, trace=tmp_path / "even.trace")
    assert [(trial["cc"], trial["seed"]) for trial in results.trials] == [("cubic", 1), ("cubic", 2)]
    assert results.content["scenario"]["title"].endswith("flow.0.duration=3s) (trace even.trace)")
    assert results.summary["cubic"]["utilization"]["n"] == 2
    # One packet of 1448 bytes of payload each millisecond.
    assert results.tables["links.parquet"]["capacity"].mean() == pytest.approx(1448 * 8e-3, rel=1e-3)
    assert results.series is results.series  # made once: a run may have millions of rows
    results.write(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results.content
    assert pl.read_parquet(tmp_path / "out" / "series.parquet").equals(results.series, null_equal=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("trials", value) for value in (0, 10**9, "2", 1.5)),
        *(("seed", value) for value in (-1, 2**32, None)),
        ("jobs", -1),
        ("jobs", True),
    ],
)
def test_numbers_that_the_command_refuses(name: str, value: object) -> None:
    with pytest.raises(astraea.UserError, match=f"^{name}: is {value!r}; expected a whole number"):
        astraea.run("three-flows", settings=SHORT, **{name: value})  # type: ignore[arg-type]


def test_settings_are_what_they_are_in_python() -> None:
    settings = {**SHORT, "title": "5", "flow.count": np.int64(2)}
    results = astraea.run("three-flows", settings=settings, trials=1)
    assert results.content["scenario"]["title"] == "5"
    assert len(results.trials[0]["flows"]) == 2
    with pytest.raises(astraea.UserError, match=r"--set flow.0.count: expected a valid integer, not \[1, 2\.5\]"):
        astraea.run("three-flows", settings={"flow.count": [np.int64(1), np.float64(2.5)]})
    with pytest.raises(astraea.UserError, match=r"settings: flow\.count is \[.*\]; expected text, a number"):
        astraea.run("three-flows", settings={"flow.count": [object()]})


def test_bad_input() -> None:
    with pytest.raises(astraea.UserError, match='unknown scheme "cubik"; did you mean "cubic"'):
        astraea.run("three-flows", cc="cubik")
    with pytest.raises(astraea.UserError, match=r"settings: flow\.count is None; expected text, a number"):
        astraea.run("three-flows", settings={"flow.count": None})
    with pytest.raises(AttributeError, match="no attribute 'rnu'"):
        astraea.rnu  # noqa: B018


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"link.bottleneck.rate": "5\r\nMbit"}}, 'unknown unit "Mbit" in "5 Mbit"; expected'),
        (
            {"settings": {"link.bottle\nneck.rate": "5Mbps"}},
            '--set link.bottle neck: no such link; did you mean "bottle',
        ),
        ({"cc": "cu\u2028bic"}, 'unknown scheme "cu bic"; did you mean "cubic"'),
        ({"backend": "si\nm"}, "si m"),
        ({"trace": "no\nsuch.trace"}, "--trace no such.trace: no such trace file"),
    ],
)
def test_lines_of_a_value_make_one(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(astraea.UserError) as caught:
        astraea.run("three-flows", **{"trials": 1, **arguments})  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_an_interrupt_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run", lambda *_, **__: runner.Outcome([], interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        astraea.run("three-flows", settings=SHORT, trials=1)
