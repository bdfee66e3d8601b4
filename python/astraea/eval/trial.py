"""One trial from its seed to its metrics and its entry in results.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from astraea.eval import metrics
from astraea.eval.backend import Backend
from astraea.eval.measured import trial_data
from astraea.eval.tables import completion_table, flow_table, link_table
from astraea.scenario.points import Point
from astraea.scenario.resolve import Resolved
from astraea.scenario.units import NS


@dataclass(frozen=True)
class TrialKey:
    """Which trial: scheme, point of the sweep, repetition. `number` is unique within the scheme."""

    cc: str
    point: Point
    repeat: int
    number: int


@dataclass(frozen=True)
class TrialResult:
    """What is kept of a trial: its entry in results.json, and its series where they are recorded."""

    key: TrialKey
    entry: dict[str, Any]
    series: pl.DataFrame | None
    links: pl.DataFrame | None
    completions: pl.DataFrame


def run(key: TrialKey, resolved: Resolved, backend: Backend, *, keep_series: bool) -> TrialResult:
    """Run one trial. Raises KeyboardInterrupt when the backend is cancelled."""
    result = backend.run(resolved)
    entry = {
        "trial": key.number,
        "cc": key.cc,
        "point": key.point.values,
        "point_index": key.point.index,
        "seed": resolved.seed,
        "duration_ns": resolved.config["duration_ns"],
        "metrics": metrics.compute(trial_data(resolved, result)),
        "flows": [_flow(resolved, index, flow) for index, flow in enumerate(result["flows"])],
        "links": [_link(resolved, index, link) for index, link in enumerate(result["links"])],
    }
    if "emulation" in result:
        entry["unfaithful"] = bool(result["emulation"]["problems"])
        entry["emulation"] = result["emulation"]
    if "decisions" in result:
        entry["decisions"] = result["decisions"]
    return TrialResult(
        key,
        entry,
        flow_table(resolved, result, key.cc, key.number) if keep_series else None,
        link_table(resolved, result, key.cc, key.number) if keep_series else None,
        completion_table(result, key.cc, key.number),
    )


def _flow(resolved: Resolved, index: int, flow: dict[str, Any]) -> dict[str, Any]:
    plan = resolved.flows[index]
    life = (flow["end_ns"] - plan.start_ns) / NS
    return {
        "flow": index,
        "group": plan.group,
        "cc": plan.scheme.label,
        "role": "test" if plan.under_test else "competitor",
        "path": [resolved.links[link] for link in plan.path],
        "start_ns": plan.start_ns,
        "end_ns": flow["end_ns"],
        "base_rtt_ns": plan.base_rtt_ns,
        "throughput_mbps": flow["delivered_bytes"] * 8 / life / 1e6 if life > 0 else None,
        "rtt_mean_ms": None if flow["rtt_mean_ns"] is None else flow["rtt_mean_ns"] / 1e6,
        "rtt_min_ms": None if flow["rtt_min_ns"] is None else flow["rtt_min_ns"] / 1e6,
        "delivered_bytes": flow["delivered_bytes"],
        "sent_packets": flow["sent_packets"],
        "retransmitted_packets": flow["retransmitted_packets"],
        "dropped_packets": flow["dropped_packets"],
        "completions": len(flow["completions"]),
        **({"failure": flow["failure"]} if flow.get("failure") else {}),
    }


def _link(resolved: Resolved, index: int, link: dict[str, Any]) -> dict[str, Any]:
    return {
        "link": link["name"],
        "limit": resolved.config["links"][index]["limit"],
        "capacity_bytes": link["capacity_bytes"],
        "offered_packets": link["offered_packets"],
        "served_packets": link["served_packets"],
        "served_bytes": link["served_bytes"],
        "dropped_packets": link["dropped_packets"],
        "lost_packets": link["lost_packets"],
        "marked_packets": link["marked_packets"],
        "queue_delay_mean_ms": None if link["queue_delay_mean_ns"] is None else link["queue_delay_mean_ns"] / 1e6,
        "queue_delay_p95_ms": None if link["queue_delay_p95_ns"] is None else link["queue_delay_p95_ns"] / 1e6,
    }
