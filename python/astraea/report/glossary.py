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

    @property
    def recorded_unit(self) -> str:
        """The unit in results.json, where shares and ratios are plain numbers."""
        return "1" if self.unit in ("", "%", "×") else self.unit


METRICS: tuple[Metric, ...] = (
    Metric(
        "jain",
        "Jain's index",
        "",
        "high",
        "Jain's index of throughput / max-min fair share: 1 = all flows have their share, 1/n = one of n has "
        "everything. Mean over the 500 ms slots in which at least two flows live through the whole slot.",
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
        "After an event, an arrival or a departure: time to the end of the first 100 ms slot in which a flow's "
        "throughput is within ±10 % of its fair share. Arrival: the new flow. Departure: mean over the flows that "
        "remain. A flow that never gets there counts the time to the next event. Mean over events.",
    ),
    Metric(
        "convergence_settle_s",
        "Settled",
        "s",
        "low",
        "After an event: first time from which the trailing 500 ms mean of every active flow stays within ±10 % of its "
        "fair share for 1 s. An event that never settles counts the time to the next one. Mean over events.",
    ),
    Metric(
        "unsettled_events",
        "Unsettled events",
        "",
        "low",
        "Events after which the flows did not settle before the next one, per trial.",
    ),
    Metric(
        "stability_mbps",
        "Stability",
        "Mbit/s",
        "low",
        "Standard deviation of the new flow's 100 ms throughput from settling to the next event, mean over the "
        "arrivals that settled. Lower is steadier.",
    ),
    Metric(
        "utilization",
        "Utilization",
        "%",
        "high",
        "Delivered / capacity while any flow is active, both in goodput (of a link with a trace: delivered / delivery "
        "opportunities).",
        scale=100.0,
    ),
    Metric(
        "queue_delay_ms",
        "Queueing delay",
        "ms",
        "low",
        "Waiting time in the bottleneck's queue (on emulated links: in the emulated one), mean over packets.",
    ),
    Metric(
        "queue_delay_p95_ms",
        "Queueing delay, 95th pct.",
        "ms",
        "low",
        "95th percentile over packets of the same waiting time.",
    ),
    Metric(
        "rtt_inflation",
        "RTT inflation",
        "×",
        "low",
        "A flow's mean round-trip time / its base round-trip time, mean over flows.",
    ),
    Metric("loss", "Loss", "%", "low", "Packets lost or dropped in the network / packets sent.", scale=100.0),
    Metric(
        "fct_s",
        "Completion",
        "s",
        "low",
        "Completion time of messages and of flows of a given size, mean.",
    ),
    Metric(
        "fct_p99_s",
        "Completion, 99th pct.",
        "s",
        "low",
        "99th percentile of the same completion times.",
    ),
    Metric(
        "throughput_ratio",
        "Throughput ratio",
        "×",
        "one",
        "Friendliness: mean throughput of the flows under test / that of their competitors, while both are active; 1 "
        "is ideal.",
    ),
)
"""Every metric. docs/metrics.md is generated from this: after a change, `python -m astraea.report.docs` writes it."""

BY_NAME = {metric.name: metric for metric in METRICS}


def metric(name: str) -> Metric:
    """The entry for `name`; metrics unknown to this version are shown under their own name."""
    return BY_NAME.get(name) or Metric(name, name, "", "unknown", "")
