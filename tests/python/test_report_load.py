"""Reading run directories: what is accepted, and the one line for everything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from report_runs import write_run

from astraea.errors import UserError
from astraea.report import ReportError, build, load

SHORT = [(0.0, 4.0), (1.0, 3.0)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", schemes=("alpha", "beta"), trials=2, lives=SHORT)


def edit(directory: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = directory / "results.json"
    results = json.loads(path.read_text())
    change(results)
    path.write_text(json.dumps(results))


def test_a_run_is_read(run: Path) -> None:
    found = load(run)
    assert found.schemes == ["alpha", "beta"]
    assert found.trial_numbers == [0, 1]
    assert [trial.seed for trial in found.of("beta")] == [1, 2]
    assert found.series is not None
    assert found.series.height == 2 * 2 * (400 + 200)


def test_a_point_has_only_its_own_trials(tmp_path: Path) -> None:
    points = [("rate 1", {"rate": 1}), ("rate 2", {"rate": 2})]
    found = load(write_run(tmp_path / "run", schemes=("alpha",), trials=2, lives=SHORT, points=points))
    second = found.at(found.points[1])
    assert second.trial_numbers == [2, 3]
    assert second.summary["alpha"]["utilization"]["n"] == 2
    assert second.links is not None
    assert sorted(second.links["trial"].unique()) == [2, 3]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda r: r.update(schema=9), "schema is 9; this version reads schema 1"),
        (lambda r: r.pop("trials"), "key `trials` is missing or wrong; expected a list"),
        (lambda r: r.update(trials=[]), "`trials` is empty; expected at least one finished trial"),
        (lambda r: r["trials"][1].pop("cc"), "trials[1]: expected an object with `cc`, a scheme's name"),
        (lambda r: r["trials"][0].pop("metrics"), "trials[0]: expected an object `metrics`"),
        (lambda r: r.update(scenario=None), "key `scenario` is missing or wrong; expected an object"),
    ],
)
def test_wrong_results_are_named(run: Path, change: Callable[[dict[str, Any]], Any], expected: str) -> None:
    edit(run, change)
    with pytest.raises(ReportError) as caught:
        load(run)
    assert str(caught.value).startswith(str(run / "results.json"))
    assert str(caught.value).endswith(expected)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, UserError)


def test_what_is_not_a_run_is_named(tmp_path: Path, run: Path) -> None:
    with pytest.raises(ReportError, match="no such directory"):
        load(tmp_path / "nowhere")
    (run / "results.json").write_text("{")
    with pytest.raises(ReportError, match="not valid JSON"):
        load(run)
    (run / "results.json").unlink()
    with pytest.raises(ReportError, match="not found"):
        load(run)


def test_broken_tables_are_named(run: Path) -> None:
    pl.DataFrame({"trial": [1]}).write_parquet(run / "links.parquet")
    with pytest.raises(ReportError, match=r"links\.parquet: no column 'cc'"):
        load(run)
    (run / "links.parquet").write_text("not parquet")
    with pytest.raises(ReportError, match=r"links\.parquet: not a readable Parquet file") as caught:
        load(run)
    assert "\n" not in str(caught.value)


def test_a_bad_run_leaves_the_old_report_as_it_is(tmp_path: Path, run: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")
    with pytest.raises(ReportError):
        build([run, tmp_path / "nowhere"], page)
    with pytest.raises(ReportError, match="no run directory given"):
        build([], page)
    assert page.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"run", "report.html"}


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path, run: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match=r"cannot be written") as caught:
        build([run], tmp_path / "file" / "report.html")
    assert "\n" not in str(caught.value)
