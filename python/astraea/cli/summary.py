"""The table of metrics after a run."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.table import Table

from astraea.cli.output import fitting, table
from astraea.report.glossary import metric
from astraea.report.numbers import interval, show

SHORT = ("jain", "convergence_settle_s", "utilization", "queue_delay_ms", "loss", "fct_s", "throughput_ratio")
"""Metrics that are shown for every point of a sweep, or of many schemes."""

DISPENSABLE = ("loss", "convergence_settle_s", "queue_delay_ms", "utilization", "jain", "fct_s")
"""The order in which they give way where room is short: what only some scenarios have is what those are about."""

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
    return fitting([wide, narrow, _listed(results, title)])


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
    rows = [([cc], entry) for cc, entry in results["summary"].items()]
    counts = {cc: sum(trial["cc"] == cc for trial in results["trials"]) for cc in results["summary"]}
    return fitting(_rows(results, title, ["scheme"], rows, f"{_trials(counts)}; mean"))


def _sweep(results: dict[str, Any], title: str) -> Table:
    """A row for each scheme at each point."""
    rows = [([point["label"], cc], entry) for point in results["points"] for cc, entry in point["summary"].items()]
    counts = Counter((trial["cc"], trial["point_index"]) for trial in results["trials"]).values()
    least, most = min(counts), max(counts)
    trials = f"{most if least == most else f'{least} to {most}'} {'trial' if most == 1 else 'trials'}"
    schemes = " of each scheme" if len(results["summary"]) > 1 else ""
    caption = f"{trials}{schemes} at each point" + ("; mean" if most > 1 else "")
    return fitting(_rows(results, title, ["point", "scheme"], rows, caption))


def _rows(
    results: dict[str, Any],
    title: str,
    labels: Sequence[str],
    rows: Sequence[tuple[list[str], dict[str, Entry]]],
    caption: str,
) -> Iterator[Table]:
    """Tables of labels and main metrics, narrower and narrower: lower headings first, then fewer metrics."""

    def made(names: Sequence[str], heading: Callable[[str, Sequence[str]], str]) -> Table:
        columns = [[_mean(name, entry.get(name)) for _, entry in rows] for name in names]
        cells = [[*given, *values] for (given, _), *values in zip(rows, *columns, strict=True)]
        headings = [heading(name, column) for name, column in zip(names, columns, strict=True)]
        found = table([*labels, *headings], cells, numbers=len(names), title=title)
        found.caption = f"{caption} (more is in the report)"
        found.caption_justify = "left"
        return found

    names = _main(results)
    yield made(names, lambda name, _: _heading(name))
    yield made(names, _low_heading)
    for dropped in DISPENSABLE:
        if dropped in names and len(names) > 1:
            names = [name for name in names if name != dropped]
            yield made(names, _low_heading)


def _main(results: dict[str, Any]) -> list[str]:
    present = {name for entry in results["summary"].values() for name in entry}
    return [name for name in SHORT if name in present]


def _trials(counts: dict[str, int]) -> str:
    if len(set(counts.values())) == 1:
        (count,) = set(counts.values())
        return f"{count} {'trial' if count == 1 else 'trials'}" + (" of each scheme" if len(counts) > 1 else "")
    return ", ".join(f"{count} {'trial' if count == 1 else 'trials'} of {cc}" for cc, count in counts.items())


def _heading(name: str) -> str:
    known = metric(name)
    return f"{known.title}, {known.unit}" if known.unit else known.title


def _low_heading(name: str, cells: Sequence[str]) -> str:
    """A heading in lines that make a column no wider than its cells, but break no word."""
    known = metric(name)
    width = max(map(len, [*cells, *known.title.split()]))
    return "\n".join([*textwrap.wrap(known.title, width, break_long_words=False, break_on_hyphens=False), known.unit])


def _mean(name: str, entry: Entry) -> str:
    return show(None if entry is None else entry["mean"] * metric(name).scale)


def _interval(name: str, entry: Entry) -> str:
    if entry is None or entry["low"] is None:
        return _mean(name, entry)
    mean, low, high = (entry[key] * metric(name).scale for key in ("mean", "low", "high"))
    return f"{show(mean)} {interval(mean, low, high)}"
