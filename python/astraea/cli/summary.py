"""The table of metrics after a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.table import Table

from astraea.cli.output import out, table
from astraea.report.glossary import metric
from astraea.report.numbers import decimals, show

SHORT = ("jain", "convergence_settle_s", "utilization", "queue_delay_ms", "loss", "fct_s", "throughput_ratio")
"""Metrics that are shown for every point of a sweep, or of many schemes."""


Entry = dict[str, Any] | None
"""Mean, low, high and n of a metric, or None where it is not defined."""


def of(results: dict[str, Any]) -> Table:
    """Metrics per scheme; with a sweep, the main ones per point and scheme."""
    scenario = results["scenario"]
    title = scenario["title"] or scenario["name"]
    return _sweep(results, title) if len(results["points"]) > 1 else _single(results, title)


def _single(results: dict[str, Any], title: str) -> Table:
    wide = _compared(results, title, _interval, " [95 % interval]")
    narrow = _compared(results, title, _mean, " (intervals are in the report)")
    console = out()
    for made in (wide, narrow):
        if console.measure(made, options=console.options.update(width=10_000)).maximum <= console.width:
            return made
    return _listed(results, title)


def _compared(results: dict[str, Any], title: str, cell: Callable[[str, Entry], str], intervals: str) -> Table:
    summary = results["summary"]
    names = list(dict.fromkeys(name for entry in summary.values() for name in entry))
    rows = [[_heading(name), *(cell(name, entry.get(name)) for entry in summary.values())] for name in names]
    made = table(["", *summary], rows, numbers=len(summary), title=title)
    counts = {cc: sum(trial["cc"] == cc for trial in results["trials"]) for cc in summary}
    made.caption = _trials(counts) + ("; mean" if max(counts.values()) > 1 else "")
    if any(entry["low"] is not None for values in summary.values() for entry in values.values()):
        made.caption += intervals
    made.caption_justify = "left"
    return made


def _listed(results: dict[str, Any], title: str) -> Table:
    """A row for each scheme, for more of them than columns have room for."""
    summary = results["summary"]
    names = _main(results)
    rows = [[cc, *(_mean(name, entry.get(name)) for name in names)] for cc, entry in summary.items()]
    made = table(["scheme", *map(_heading, names)], rows, numbers=len(names), title=title)
    counts = {cc: sum(trial["cc"] == cc for trial in results["trials"]) for cc in summary}
    made.caption = f"{_trials(counts)}; mean (more is in the report)"
    made.caption_justify = "left"
    return made


def _main(results: dict[str, Any]) -> list[str]:
    present = {name for entry in results["summary"].values() for name in entry}
    return [name for name in SHORT if name in present]


def _trials(counts: dict[str, int]) -> str:
    if len(set(counts.values())) == 1:
        (count,) = set(counts.values())
        return f"{count} {'trial' if count == 1 else 'trials'}" + (" of each scheme" if len(counts) > 1 else "")
    return ", ".join(f"{count} {'trial' if count == 1 else 'trials'} of {cc}" for cc, count in counts.items())


def _sweep(results: dict[str, Any], title: str) -> Table:
    names = _main(results)
    rows = [
        [point["label"], cc, *(_mean(name, entry.get(name)) for name in names)]
        for point in results["points"]
        for cc, entry in point["summary"].items()
    ]
    return table(["point", "scheme", *map(_heading, names)], rows, numbers=len(names), title=title)


def _heading(name: str) -> str:
    known = metric(name)
    return f"{known.title}, {known.unit}" if known.unit else known.title


def _mean(name: str, entry: Entry) -> str:
    return show(None if entry is None else entry["mean"] * metric(name).scale)


def _interval(name: str, entry: Entry) -> str:
    if entry is None or entry["low"] is None:
        return _mean(name, entry)
    mean, low, high = (entry[key] * metric(name).scale for key in ("mean", "low", "high"))
    places = decimals(mean)
    return f"{show(mean, places)} [{show(low, places)}, {show(high, places)}]"
