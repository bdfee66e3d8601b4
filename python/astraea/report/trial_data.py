"""Back from the recorded tables to what the metrics are computed from, so that each has one definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from astraea.eval.data import FlowData, TrialData
from astraea.report.lifetimes import spans
from astraea.report.run import Run, Trial
from astraea.report.sampling import Floats, floats, groups, slot_length

MBIT_PER_BYTE = 8e-6


def trial_data(run: Run, duration_s: float) -> Iterator[tuple[Trial, TrialData]]:
    """The trials whose series and links were recorded, without counters of packets and queues."""
    if run.series is None or run.links is None or not run.series.height or not run.links.height:
        return
    slot_s = slot_length(floats(run.series, "t"))
    links = link_names(run)
    capacities = dict(groups(run.links, "trial", "cc"))
    trials = {(trial.number, trial.cc): trial for trial in run.trials}
    for key, recorded in groups(run.series, "trial", "cc"):
        trial = trials.get(key)
        if trial is None or not trial.flows or key not in capacities:
            continue
        slots = round(max(_end(recorded), _end(capacities[key])) / slot_s) + 1
        part = recorded.filter(pl.col("flow").is_between(0, len(trial.flows) - 1))
        carried = capacities[key]
        order = carried["link"].replace_strict(links, range(len(links)), return_dtype=pl.Int64)
        delivered = _dense(part, part["flow"], (len(trial.flows), slots), slot_s, "throughput")
        capacity = _dense(carried, order, (len(links), slots), slot_s, "capacity")
        flows = [
            FlowData(
                start_ns=round(start * 1e9),
                end_ns=round(end * 1e9),
                path=_path(flow, links),
            )
            for flow, (start, end) in zip(trial.flows, spans(trial, duration_s), strict=True)
        ]
        bytes_per = slot_s / MBIT_PER_BYTE
        yield (
            trial,
            TrialData(round(slot_s * 1e9), flows, delivered * bytes_per, capacity * bytes_per, []),
        )


def link_names(run: Run) -> list[str]:
    """The recorded links, in the order of the scenario."""
    assert run.links is not None
    recorded = run.links["link"].unique(maintain_order=True).to_list()
    declared = run.scenario.get("link")
    order = list(declared) if isinstance(declared, Mapping) else []
    return sorted(recorded, key=lambda name: order.index(name) if name in order else len(order))


def _path(flow: Mapping[str, Any], links: list[str]) -> tuple[int, ...]:
    """Numbers of the links that a flow crosses; all of them where results.json does not tell."""
    path = flow.get("path")
    if not isinstance(path, list):
        return tuple(range(len(links)))
    numbers = [links.index(hop) if hop in links else hop for hop in path]
    return tuple(hop for hop in numbers if isinstance(hop, int) and 0 <= hop < len(links))


def _dense(part: pl.DataFrame, rows: pl.Series, size: tuple[int, int], slot_s: float, column: str) -> Floats:
    """[rows, slots] from a long table; zero where there is no row or no number."""
    dense = np.zeros(size)
    at = np.rint(floats(part, "t") / slot_s).astype(np.int64)
    dense[rows.to_numpy(), at] = np.nan_to_num(floats(part, column))
    return dense


def _end(part: pl.DataFrame) -> float:
    return float(floats(part, "t").max())
