"""Reading a run directory: results.json and, where recorded, series, links and completions as Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from astraea.report.errors import ReportError

SCHEMA = 1
"""Version of results.json that is understood."""

Summary = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Scheme -> metric -> {mean, low, high, n}."""

SERIES_COLUMNS = ("trial", "cc", "flow", "t", "throughput", "rtt")
LINKS_COLUMNS = ("trial", "cc", "link", "t", "queue_delay", "capacity")
COMPLETIONS_COLUMNS = ("trial", "cc", "flow", "start", "time")


@dataclass(frozen=True)
class Trial:
    """One trial of one scheme.

    `number` is unique within the scheme and is the key `trial` of the Parquet files.
    `metrics` maps a metric's name to its value, or None where it is not defined.
    """

    cc: str
    number: int
    seed: int | None
    metrics: Mapping[str, float | None]
    flows: list[dict[str, Any]]
    point: Mapping[str, Any]
    """The swept keys and their values; empty where nothing is swept."""


@dataclass(frozen=True)
class Point:
    """One setting of a sweep. `values` are those of the swept keys, `summary` is that of its trials."""

    label: str
    values: Mapping[str, Any]
    summary: Summary


@dataclass(frozen=True)
class Run:
    """One run directory: one scenario, its points, one or several schemes, one or several trials."""

    path: Path
    title: str
    scenario: dict[str, Any]
    results: dict[str, Any]
    schemes: list[str]
    trials: list[Trial]
    summary: Summary
    """Over all points."""
    points: list[Point]
    series: pl.DataFrame | None
    links: pl.DataFrame | None
    completions: pl.DataFrame | None

    def of(self, cc: str) -> list[Trial]:
        """The trials of one scheme, in order."""
        return [trial for trial in self.trials if trial.cc == cc]

    def at(self, point: Point) -> Run:
        """The part of the run that belongs to one point."""
        if len(self.points) == 1:
            return self
        trials = [trial for trial in self.trials if trial.point == point.values]
        here = pl.col("trial").is_in([trial.number for trial in trials])
        return replace(
            self,
            trials=trials,
            schemes=[cc for cc in self.schemes if any(trial.cc == cc for trial in trials)],
            summary=point.summary,
            points=[point],
            series=None if self.series is None else self.series.filter(here),
            links=None if self.links is None else self.links.filter(here),
            completions=None if self.completions is None else self.completions.filter(here),
        )

    @property
    def trial_numbers(self) -> list[int]:
        """All trial numbers, ascending."""
        return sorted({trial.number for trial in self.trials})


def load(directory: Path | str) -> Run:
    """Read the run in `directory`; raises `ReportError` with one line if that is not possible.

    results.json is required. The Parquet files may be missing (nothing recorded); the charts that need them are
    then left out.
    """
    path = Path(directory)
    if not path.is_dir():
        raise ReportError(f"{path}: no such directory; expected one written by `astraea run --out`")
    results = _read_results(path / "results.json")
    where = path / "results.json"
    scenario = _expect(results, "scenario", dict, where)
    summary = _expect(results, "summary", dict, where)
    trials = _trials(_expect(results, "trials", list, where), where)
    schemes = list(dict.fromkeys(trial.cc for trial in trials))
    title = scenario.get("title") or scenario.get("name") or path.resolve().name
    return Run(
        path=path,
        title=str(title),
        scenario=scenario,
        results=results,
        schemes=schemes,
        trials=trials,
        summary=_summary(summary, schemes),
        points=_points(results, _summary(summary, schemes), schemes),
        series=_read_table(path / "series.parquet", SERIES_COLUMNS),
        links=_read_table(path / "links.parquet", LINKS_COLUMNS),
        completions=_read_table(path / "completions.parquet", COMPLETIONS_COLUMNS),
    )


def _read_results(path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReportError(f"{path}: not found; expected a directory written by `astraea run --out`") from None
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ReportError(f"{path}: not valid JSON: {_one_line(error)}") from None
    if not isinstance(results, dict):
        raise ReportError(f"{path}: expected a JSON object")
    if results.get("schema") != SCHEMA:
        found = results.get("schema")
        raise ReportError(f"{path}: schema is {found!r}; this version reads schema {SCHEMA}")
    return results


def _trials(entries: list[Any], where: Path) -> list[Trial]:
    if not entries:
        raise ReportError(f"{where}: `trials` is empty; expected at least one finished trial")
    counts: dict[str, int] = {}
    trials = []
    for position, entry in enumerate(entries):
        here = f"{where}: trials[{position}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("cc"), str):
            raise ReportError(f"{here}: expected an object with `cc`, a scheme's name")
        cc = entry["cc"]
        number = entry.get("trial", counts.get(cc, 0))
        counts[cc] = counts.get(cc, 0) + 1
        metrics = entry.get("metrics")
        if not isinstance(metrics, dict):
            raise ReportError(f"{here}: expected an object `metrics`")
        trials.append(
            Trial(
                cc=cc,
                number=int(number),
                seed=entry.get("seed"),
                metrics=metrics,
                flows=list(entry.get("flows") or []),
                point=entry.get("point") or {},
            )
        )
    return trials


def _summary(summary: Any, schemes: list[str]) -> Summary:
    known = summary if isinstance(summary, dict) else {}
    return {cc: known.get(cc) or {} for cc in schemes}


def _points(results: dict[str, Any], summary: Summary, schemes: list[str]) -> list[Point]:
    """The points that have trials; at least one."""
    given = [point for point in results.get("points") or [] if isinstance(point, dict)]
    points = [
        Point(str(point.get("label") or ""), point.get("values") or {}, _summary(point.get("summary"), schemes))
        for point in given
        if point.get("summary")
    ]
    return points if len(points) > 1 else [Point("", {}, summary)]


def _read_table(path: Path, columns: tuple[str, ...]) -> pl.DataFrame | None:
    if not path.exists():
        return None
    try:
        present = pl.read_parquet_schema(path)
        missing = [name for name in columns if name not in present]
        if missing:
            raise ReportError(f"{path}: no column {missing[0]!r}; expected {', '.join(columns)}")
        return pl.read_parquet(path, columns=list(columns))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ReportError(f"{path}: not a readable Parquet file: {_one_line(error)}") from None


def _expect(results: dict[str, Any], key: str, kind: type, where: Path) -> Any:
    value = results.get(key)
    if not isinstance(value, kind):
        word = "an object" if kind is dict else "a list"
        raise ReportError(f"{where}: key `{key}` is missing or wrong; expected {word}")
    return value


def _one_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
