"""Reading a run directory: results.json and, where recorded, series, links and completions as Parquet."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from astraea.errors import check_text
from astraea.eval.layout import COMPLETIONS_FILE, LINKS_FILE, RESULTS, SCHEMA, SERIES_FILE
from astraea.report import layout
from astraea.report.errors import ReportError

FILES = (RESULTS, SERIES_FILE, LINKS_FILE, COMPLETIONS_FILE)
"""Files of a run that are read."""

Summary = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Scheme -> metric -> {mean, low, high, n}."""

SERIES_COLUMNS = ("trial", "cc", "flow", "t", "throughput", "rtt")
LINKS_COLUMNS = ("trial", "cc", "link", "t", "queue_delay", "capacity")
COMPLETIONS_COLUMNS = ("trial", "cc", "flow", "start", "time")
TEXTS = ("cc", "link")
"""Columns that are not numbers."""
MAX_TIME_S = 1e8
"""Later than any recording goes on."""


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
    point: int
    """Index of its point; 0 where nothing is swept."""
    problems: tuple[str, ...] = ()
    """Why its links were not emulated faithfully."""
    lateness_ms: float | None = None
    """What one packet in a thousand was late on emulated links."""


@dataclass(frozen=True)
class Point:
    """One setting of a sweep. `values` are those of the swept keys, `summary` is that of its trials.

    Two families may have a point with the same values: `index`, its place in results.json, tells them apart.
    """

    index: int
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
        trials = [trial for trial in self.trials if trial.point == point.index]
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
    check_text("DIR", str(path))
    if not path.is_dir():
        raise ReportError(f"{path}: no such directory; expected one written by `astraea run --out`")
    results = _read_results(path / RESULTS)
    scenario = results["scenario"]
    trials = _trials(results)
    schemes = list(dict.fromkeys(trial.cc for trial in trials))
    title = scenario.get("title") or scenario.get("name") or path.resolve().name
    return Run(
        path=path,
        title=str(title),
        scenario=scenario,
        results=results,
        schemes=schemes,
        trials=trials,
        summary=_summary(results["summary"], schemes),
        points=_points(results, trials, schemes),
        series=_read_table(path / SERIES_FILE, SERIES_COLUMNS),
        links=_read_table(path / LINKS_FILE, LINKS_COLUMNS),
        completions=_read_table(path / COMPLETIONS_FILE, COMPLETIONS_COLUMNS),
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
    if reason := layout.mistake(results):
        raise ReportError(f"{path}: {reason}")
    return results


def _trials(results: dict[str, Any]) -> list[Trial]:
    counts: dict[str, int] = {}
    trials = []
    settings = [point.get("values", {}) for point in results.get("points", [])]
    for entry in results["trials"]:
        cc = entry["cc"]
        emulation = entry.get("emulation", {})
        late = emulation.get("lateness_p999_ns")
        trials.append(
            Trial(
                cc=cc,
                number=entry.get("trial", counts.get(cc, 0)),
                seed=entry.get("seed"),
                metrics=entry["metrics"],
                flows=entry.get("flows", []),
                point=_place(entry, settings),
                problems=tuple(emulation.get("problems", ())),
                lateness_ms=None if late is None else late / 1e6,
            )
        )
        counts[cc] = counts.get(cc, 0) + 1
    return trials


def _place(entry: dict[str, Any], settings: list[dict[str, Any]]) -> int:
    """Index of a trial's point, of which older files have the values alone."""
    index, values = entry.get("point_index"), entry.get("point", {})
    if index is None:
        return settings.index(values) if values in settings else 0
    return int(index)


def _summary(summary: Summary, schemes: list[str]) -> Summary:
    return {cc: summary.get(cc, {}) for cc in schemes}


def _points(results: dict[str, Any], trials: list[Trial], schemes: list[str]) -> list[Point]:
    """The points that have trials; at least one. A single one needs no label."""
    points = [
        Point(
            index, str(point.get("label") or ""), point.get("values", {}), _summary(point.get("summary", {}), schemes)
        )
        for index, point in enumerate(results.get("points", []))
        if any(trial.point == index for trial in trials)
    ]
    if len(points) > 1:
        return points
    return [Point(0, "", points[0].values if points else {}, _summary(results["summary"], schemes))]


def _read_table(path: Path, columns: tuple[str, ...]) -> pl.DataFrame | None:
    if not path.exists():
        return None
    try:
        present = pl.scan_parquet(path, glob=False).collect_schema()
        missing = [name for name in columns if name not in present]
        if missing:
            raise ReportError(f"{path}: no column {missing[0]!r}; expected {', '.join(columns)}")
        table = pl.read_parquet(path, columns=list(columns), glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ReportError(f"{path}: not a readable Parquet file: {_one_line(error)}") from None
    for name, kind in table.schema.items():
        if name not in TEXTS and not kind.is_numeric():
            raise ReportError(f"{path}: column {name!r} has the type {kind}; expected numbers")
    if "t" in columns and not table["t"].fill_null(math.nan).is_between(0, MAX_TIME_S).all():
        raise ReportError(
            f"{path}: column 't' has a value that is no time; expected seconds from 0 to {MAX_TIME_S:.0e}"
        )
    return table


def _one_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
