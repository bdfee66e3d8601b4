"""The table of metrics after a run."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from astraea.cli.output import table
from astraea.report.glossary import metric
from astraea.report.numbers import decimals, show

SHORT = ("jain", "convergence_settle_s", "utilization", "queue_delay_ms", "loss", "fct_s", "throughput_ratio")
"""Metrics that are shown for every point of a sweep."""


def of(results: dict[str, Any]) -> Table:
    """Metrics per scheme; with a sweep, the main ones per point and scheme."""
    scenario = results["scenario"]
    title = scenario["title"] or scenario["name"]
    return _sweep(results, title) if len(results["points"]) > 1 else _single(results, title)


def _single(results: dict[str, Any], title: str) -> Table:
    summary = results["summary"]
    names = list(dict.fromkeys(name for entry in summary.values() for name in entry))
    rows = [[_heading(name), *(_interval(name, entry.get(name)) for entry in summary.values())] for name in names]
    counts = {cc: sum(trial["cc"] == cc for trial in results["trials"]) for cc in summary}
    caption = ", ".join(f"{count} {'trial' if count == 1 else 'trials'} of {cc}" for cc, count in counts.items())
    made = table(["", *summary], rows, numbers=len(summary), title=title)
    made.caption = f"{caption}; mean [95 % interval]" if max(counts.values()) > 1 else caption
    made.caption_justify = "left"
    return made


def _sweep(results: dict[str, Any], title: str) -> Table:
    present = {name for entry in results["summary"].values() for name in entry}
    names = [name for name in SHORT if name in present]
    rows = [
        [point["label"], cc, *(_mean(name, entry.get(name)) for name in names)]
        for point in results["points"]
        for cc, entry in point["summary"].items()
    ]
    return table(["point", "scheme", *map(_heading, names)], rows, numbers=len(names), title=title)


def _heading(name: str) -> str:
    known = metric(name)
    return f"{known.title}, {known.unit}" if known.unit else known.title


def _mean(name: str, entry: dict[str, Any] | None) -> str:
    return show(None if entry is None else entry["mean"] * metric(name).scale)


def _interval(name: str, entry: dict[str, Any] | None) -> str:
    if entry is None or entry["low"] is None:
        return _mean(name, entry)
    mean, low, high = (entry[key] * metric(name).scale for key in ("mean", "low", "high"))
    places = decimals(mean)
    return f"{show(mean, places)} [{show(low, places)}, {show(high, places)}]"
