"""What the metrics of results.json mean, for readers: heading, unit, direction and definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["high", "low", "one", "unknown"]
"""Which value is best: the highest, the lowest, or the nearest to one."""


@dataclass(frozen=True)
class Metric:
    """One metric as it is shown. Shown value = `scale` times the recorded value, in `unit`."""

    name: str
    title: str
    unit: str
    better: Better
    definition: str
    scale: float = 1.0


METRICS: tuple[Metric, ...] = (
    Metric(
        "jain",
        "Jain's index",
        "",
        "high",
        "Fairness of the flows that are active together, mean over 500 ms slots. Throughputs are "
        "taken relative to the max-min fair shares: 1 = all fair, 1/n = one of n flows has everything.",
    ),
    Metric(
        "jain_p10",
        "Jain's index, worst tenth",
        "",
        "high",
        "10th percentile of Jain's index over the same 500 ms slots.",
    ),
    Metric(
        "convergence_first_s",
        "First at fair share",
        "s",
        "low",
        "After a flow arrives or leaves: time until a flow's 100 ms throughput is first within "
        "±10 % of its max-min fair share (arrival: the new flow; departure: mean over the others).",
    ),
    Metric(
        "convergence_settle_s",
        "Settled",
        "s",
        "low",
        "After a flow arrives or leaves: time from which the trailing 500 ms mean of every active "
        "flow stays within ±10 % of its fair share for 1 s. An event that never settles counts the "
        "time to the next event.",
    ),
    Metric(
        "unsettled_events",
        "Unsettled events",
        "",
        "low",
        "Arrivals and departures after which the flows never settled, per trial.",
    ),
    Metric(
        "stability_mbps",
        "Stability",
        "Mbit/s",
        "low",
        "Standard deviation of the new flow's 100 ms throughput from settling to the next event, "
        "mean over arrivals. Lower is steadier.",
    ),
    Metric(
        "utilization",
        "Utilization",
        "%",
        "high",
        "Delivered / capacity while any flow is active, both in goodput.",
        scale=100.0,
    ),
    Metric(
        "queue_delay_ms",
        "Queueing delay",
        "ms",
        "low",
        "Waiting time in the bottleneck's queue, mean over packets.",
    ),
    Metric(
        "queue_delay_p95_ms",
        "Queueing delay, 95th pct.",
        "ms",
        "low",
        "95th percentile over packets of the waiting time in the bottleneck's queue.",
    ),
    Metric(
        "rtt_inflation",
        "RTT inflation",
        "×",
        "low",
        "Mean round-trip time / base round-trip time.",
    ),
    Metric("loss", "Loss", "%", "low", "Packets lost / packets sent.", scale=100.0),
    Metric("fct_s", "Completion", "s", "low", "Mean completion time of messages and sized flows."),
    Metric(
        "fct_p99_s",
        "Completion, 99th pct.",
        "s",
        "low",
        "99th percentile of the completion time of messages and sized flows.",
    ),
    Metric(
        "throughput_ratio",
        "Throughput ratio",
        "×",
        "one",
        "Friendliness: throughput of the flow under test / mean of its competitors; 1 is ideal.",
    ),
)

BY_NAME = {metric.name: metric for metric in METRICS}


def metric(name: str) -> Metric:
    """The entry for `name`; metrics unknown to this version are shown under their own name."""
    return BY_NAME.get(name) or Metric(name, name, "", "unknown", "")
