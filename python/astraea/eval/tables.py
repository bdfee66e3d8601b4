"""What is recorded of a trial as tables: the columns of series.parquet, links.parquet and completions.parquet."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from astraea.eval.measured import GOODPUT
from astraea.scenario.resolve import Resolved
from astraea.scenario.units import NS

SERIES = {
    "trial": pl.Int32,
    "cc": pl.String,
    "flow": pl.Int32,
    "t": pl.Float64,
    "throughput": pl.Float32,
    "rtt": pl.Float32,
    "cwnd": pl.Float32,
    "pacing": pl.Float32,
    "inflight": pl.Float32,
    "loss": pl.Float32,
}
"""Columns of series.parquet: t is a slot's start in s, throughput and pacing in Mbit/s, rtt in ms, cwnd, inflight and
loss (declared in the slot) in packets. There are rows for the slots in which a flow lived or its packets still arrived.
NaN: no sample, or not paced."""

LINKS = {
    "trial": pl.Int32,
    "cc": pl.String,
    "link": pl.String,
    "t": pl.Float64,
    "queue_delay": pl.Float32,
    "delivered": pl.Float32,
    "capacity": pl.Float32,
    "dropped": pl.Float32,
}
"""Columns of links.parquet: queue_delay in ms (mean of the packets that began service in the slot; NaN: none),
delivered and capacity in Mbit/s of payload, dropped in packets: by the queue or at random."""

COMPLETIONS = {
    "trial": pl.Int32,
    "cc": pl.String,
    "flow": pl.Int32,
    "start": pl.Float64,
    "time": pl.Float64,
}
"""Columns of completions.parquet, a row for each message (or sized flow) that the receiver got in full: start is when
the sender's application had it, in s, and time is how long it took, in s."""


def flow_table(trial: Resolved, result: dict[str, Any], cc: str, number: int) -> pl.DataFrame:
    """Rows of series.parquet for one trial."""
    slot = trial.config["slot_ns"]
    series = result["series"]
    parts = []
    for index, (plan, flow) in enumerate(zip(trial.flows, result["flows"], strict=True)):
        delivered = np.asarray(series["delivered"][index], dtype=float)
        starts = np.arange(delivered.size) * slot
        rows = ((starts + slot > plan.start_ns) & (starts < flow["end_ns"])) | (delivered > 0)
        parts.append(
            pl.DataFrame(
                {
                    "flow": np.full(rows.sum(), index),
                    "t": starts[rows] / NS,
                    "throughput": _mbps(delivered[rows], slot),
                    "rtt": series["rtt"][index][rows] * 1e3,
                    "cwnd": series["cwnd"][index][rows],
                    "pacing": series["pacing"][index][rows] / 1e6,
                    "inflight": series["inflight"][index][rows],
                    "loss": series["lost"][index][rows],
                }
            )
        )
    return _labelled(pl.concat(parts), SERIES, cc, number)


def link_table(trial: Resolved, result: dict[str, Any], cc: str, number: int) -> pl.DataFrame:
    """Rows of links.parquet for one trial."""
    slot = trial.config["slot_ns"]
    parts = []
    for link in result["links"]:
        series = link["series"]
        delay = np.asarray(series["queue_delay"])
        parts.append(
            pl.DataFrame(
                {
                    "t": np.arange(delay.size) * slot / NS,
                    "queue_delay": delay * 1e3,
                    "delivered": _mbps(np.asarray(series["served"]) * GOODPUT, slot),
                    "capacity": _mbps(np.asarray(series["capacity"]) * GOODPUT, slot),
                    "dropped": np.asarray(series["dropped"], dtype=float),
                }
            ).with_columns(link=pl.lit(link["name"]))
        )
    return _labelled(pl.concat(parts), LINKS, cc, number)


def completion_table(result: dict[str, Any], cc: str, number: int) -> pl.DataFrame:
    """Rows of completions.parquet for one trial."""
    rows = [
        (index, start / NS, (end - start) / NS)
        for index, flow in enumerate(result["flows"])
        for start, end in flow["completions"]
    ]
    kinds = {"flow": pl.Int32, "start": pl.Float64, "time": pl.Float64}
    return _labelled(pl.DataFrame(rows, schema=kinds, orient="row"), COMPLETIONS, cc, number)


def _mbps(size: NDArray[np.float64], slot_ns: int) -> NDArray[np.float64]:
    """Bytes per slot as Mbit/s."""
    return size * 8 / (slot_ns / NS) / 1e6


def _labelled(table: pl.DataFrame, schema: dict[str, Any], cc: str, number: int) -> pl.DataFrame:
    return table.with_columns(trial=pl.lit(number), cc=pl.lit(cc)).select(
        pl.col(name).cast(kind) for name, kind in schema.items()
    )
