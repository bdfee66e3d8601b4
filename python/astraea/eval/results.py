"""What a run leaves behind: results.json and tables as Parquet."""

from __future__ import annotations

import json
import os
import platform
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from astraea import _native
from astraea.errors import UserError, check_text
from astraea.eval import metrics
from astraea.eval.interval import interval
from astraea.eval.layout import COMPLETIONS_FILE, FILES, LINKS_FILE, PAGE, RESULTS, SCHEMA, SERIES_FILE
from astraea.eval.runner import Outcome, Plan
from astraea.eval.tables import COMPLETIONS, LINKS, SERIES
from astraea.eval.trial import TrialResult


def build(laid: Plan, outcome: Outcome, command: Sequence[str]) -> dict[str, Any]:
    """The object of results.json. Equal simulations give the same: it holds no time of day."""
    base = laid.document.validate()
    return {
        "schema": SCHEMA,
        "astraea_version": _native.__version__,
        "command": shlex.join(command),
        "scenario": {
            "name": laid.document.name,
            **base.model_dump(mode="json"),
            "trials": laid.trials,
            "seed": laid.seed,
        },
        "inputs": laid.inputs,
        "backend": laid.backend.name,
        "host": {
            "system": platform.system(),
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            **laid.backend.facts(),
        },
        "interrupted": outcome.interrupted,
        "trials": [result.entry for result in outcome.results],
        "points": [
            {
                "label": point.label,
                "values": point.values,
                "summary": _summary([r for r in outcome.results if r.key.point.index == point.index]),
            }
            for point in laid.points
        ],
        "summary": _summary(outcome.results),
    }


def _summary(results: Sequence[TrialResult]) -> dict[str, dict[str, dict[str, Any]]]:
    """Mean over trials of every metric, and its interval, by scheme; metrics without a value are left out."""
    summary: dict[str, dict[str, dict[str, Any]]] = {}
    for cc in dict.fromkeys(result.key.cc for result in results):
        own = [result for result in results if result.key.cc == cc]
        summary[cc] = {}
        for name in metrics.NAMES:
            by_point: dict[int, list[float]] = {}
            for result in own:
                if (value := result.entry["metrics"][name]) is not None:
                    by_point.setdefault(result.key.point.index, []).append(value)
            values = [value for point in by_point.values() for value in point]
            if values:
                low, high = interval(*by_point.values()) or (None, None)
                summary[cc][name] = {"mean": sum(values) / len(values), "low": low, "high": high, "n": len(values)}
    return summary


def text(results: dict[str, Any]) -> str:
    """results.json as it is written; numbers that are not finite would be an error."""
    return json.dumps(results, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def check_writable(directory: Path, names: Sequence[str] = FILES) -> None:
    """Raise `UserError` before any work is done if files of these names could not be written to `directory`."""
    check_text("--out", str(directory))
    if os.path.lexists(directory) and not directory.is_dir():
        raise UserError(f"--out {directory}: exists and is not a directory")
    try:
        for name in names:
            if (directory / name).is_dir():
                raise UserError(f"--out {directory}: {name} in it is a directory; expected a file, or none")
        parent = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        # Rights alone do not tell: some file systems refuse even root.
        tempfile.TemporaryDirectory(prefix=".try-", dir=parent).cleanup()
    except OSError as error:
        raise UserError(f"--out {directory}: cannot be written: {error.strerror}") from error


def tables(outcome: Outcome) -> dict[str, pl.DataFrame]:
    """The tables of a run by the names of their files."""
    return {
        SERIES_FILE: _table([result.series for result in outcome.results], SERIES),
        LINKS_FILE: _table([result.links for result in outcome.results], LINKS),
        COMPLETIONS_FILE: _table([result.completions for result in outcome.results], COMPLETIONS),
    }


def write(directory: Path, results: dict[str, Any], outcome: Outcome) -> None:
    """Write the files of a run; results.json comes last, so that a directory that has it is complete.

    Files of an earlier run in `directory` are replaced, its report is removed; others are left alone. Raises
    `UserError` if that is not possible.
    """
    made = not directory.exists()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=directory) as staging:
            _replace(directory, Path(staging), tables(outcome), text(results))
    except (OSError, pl.exceptions.PolarsError) as error:
        if made and directory.is_dir():
            directory.rmdir()
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{directory}: results cannot be written: {reason}") from None


def _replace(directory: Path, staging: Path, parts: dict[str, pl.DataFrame], content: str) -> None:
    """Put new files into `directory`; until all are complete in `staging`, nothing changes."""
    for name, table in parts.items():
        table.write_parquet(staging / name)
    (staging / RESULTS).write_text(content, encoding="utf-8")
    for name in (RESULTS, PAGE):
        (directory / name).unlink(missing_ok=True)
    for name in (*parts, RESULTS):
        (staging / name).replace(directory / name)


def _table(parts: Sequence[pl.DataFrame | None], schema: dict[str, Any]) -> pl.DataFrame:
    kept = [part for part in parts if part is not None]
    return pl.concat(kept) if kept else pl.DataFrame(schema=schema)
