"""Reading run directories: what is accepted, and the one line for everything else."""

from __future__ import annotations

import json
import math
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


def test_equal_points_of_two_families_are_two(tmp_path: Path) -> None:
    points = [("A: rate 1", {"rate": 1}), ("A: rate 2", {"rate": 2}), ("B: rate 2", {"rate": 2})]
    directory = write_run(tmp_path / "run", schemes=("alpha",), trials=2, lives=SHORT, points=points)
    found = load(directory)
    assert [found.at(point).trial_numbers for point in found.points] == [[0, 1], [2, 3], [4, 5]]
    # Files of before have only values: the first of equal points has their trials.
    edit(directory, lambda r: [trial.pop("point_index") for trial in r["trials"]])
    found = load(directory)
    assert [(point.label, found.at(point).trial_numbers) for point in found.points] == [
        ("A: rate 1", [0, 1]),
        ("A: rate 2", [2, 3, 4, 5]),
    ]


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
        (lambda r: r.pop("trials"), "trials: this key is missing"),
        (lambda r: r.update(trials=[]), "trials: expected at least one"),
        (lambda r: r["trials"][1].pop("cc"), "trials.1.cc: this key is missing"),
        (lambda r: r["trials"][0].pop("metrics"), "trials.0.metrics: this key is missing"),
        (lambda r: r["trials"][0].update(seed="one"), "trials.0.seed: expected a valid integer"),
        (lambda r: r["trials"][0]["flows"][1].update(end_ns="x"), "trials.0.flows.1.end_ns: expected a valid number"),
        (lambda r: r["summary"]["beta"].update(jain=1), "summary.beta.jain: expected an object"),
        (
            lambda r: r["summary"]["beta"].update(jain={"mean": 1e308}),
            "expected less than or equal to 1000000000000000000",
        ),
        (lambda r: r.update(scenario=None), "scenario: expected an object"),
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
    pl.DataFrame(
        {"trial": [0], "cc": ["alpha"], "link": ["x"], "t": ["0"], "queue_delay": [1], "capacity": [1]}
    ).write_parquet(run / "links.parquet")
    with pytest.raises(ReportError, match=r"links\.parquet: column 't' has the type String; expected numbers"):
        load(run)
    (run / "links.parquet").write_text("not parquet")
    with pytest.raises(ReportError, match=r"links\.parquet: not a readable Parquet file") as caught:
        load(run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("t", [-1.0, math.nan, math.inf, 1e12, None])
def test_times_that_are_none_are_named(run: Path, t: float | None) -> None:
    table = pl.read_parquet(run / "series.parquet").with_columns(t=pl.lit(t, dtype=pl.Float64))
    table.write_parquet(run / "series.parquet")
    with pytest.raises(ReportError, match=r"series\.parquet: column 't' has a value that is no time"):
        load(run)


def test_a_recording_of_one_slot(run: Path, tmp_path: Path) -> None:
    pl.read_parquet(run / "series.parquet").head(1).write_parquet(run / "series.parquet")
    assert build([run], tmp_path / "report.html").is_file()


def test_names_of_directories_are_no_patterns(tmp_path: Path) -> None:
    assert load(write_run(tmp_path / "[x]*", trials=1, lives=SHORT)).series is not None


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
    with pytest.raises(UserError, match=r"cannot be written") as caught:
        build([run], tmp_path / "file" / "report.html")
    assert "\n" not in str(caught.value)
