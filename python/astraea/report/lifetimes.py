"""When each flow was active, and what it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astraea.report.run import Run, Trial
from astraea.report.sampling import floats

Span = tuple[float, float]
"""First and last second of a flow's life."""


def span(flow: Mapping[str, Any], duration_s: float) -> Span:
    """Life of a flow of results.json; one without an end lives until the trial's end."""
    start, end = flow.get("start_ns"), flow.get("end_ns")
    return (
        float(start) / 1e9 if start is not None else 0.0,
        float(end) / 1e9 if end is not None else duration_s,
    )


def spans(trial: Trial, duration_s: float) -> list[Span]:
    """Lives of all flows of a trial, by flow number."""
    return [span(flow, duration_s) for flow in trial.flows]


def duration(run: Run) -> float:
    """Length of the recording in seconds; zero if nothing was recorded."""
    recorded = [table for table in (run.series, run.links) if table is not None and table.height]
    return max((float(floats(table, "t").max()) for table in recorded), default=0.0)


def flow_labels(trials: Sequence[Trial]) -> list[str]:
    """A label per flow: its number from 1, and its scheme where that is not the one under test."""
    labels: list[str] = []
    for number in range(max((len(trial.flows) for trial in trials), default=0)):
        ran = {(trial.flows[number].get("cc"), trial.cc) for trial in trials if number < len(trial.flows)}
        others = sorted({str(scheme) for scheme, tested in ran if scheme not in (None, tested)})
        labels.append(" · ".join([str(number + 1), *others]))
    return labels
