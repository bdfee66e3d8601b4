"""The metrics of a trial. Their definitions, names and units are those of docs/metrics.md.

Throughput is goodput: payload bytes that left the last link, each counted once (on emulated links a packet that was
sent again for nothing counts twice). Capacity is counted the same way, so that a saturated link has the utilization 1.
"""

from __future__ import annotations

import numpy as np

from astraea.eval.convergence import TRAILING_NS, events, response
from astraea.eval.data import Floats, Mask, QueueData, TrialData, alive
from astraea.eval.fairshare import crossings, fair_shares
from astraea.scenario.units import NS

NAMES = (
    "jain",
    "jain_p10",
    "convergence_first_s",
    "convergence_settle_s",
    "unsettled_events",
    "stability_mbps",
    "utilization",
    "queue_delay_ms",
    "queue_delay_p95_ms",
    "rtt_inflation",
    "loss",
    "fct_s",
    "fct_p99_s",
    "throughput_ratio",
)
"""Every metric, in the order in which results have them."""

JAIN_NS = TRAILING_NS
"""Slot of Jain's index."""


def compute(data: TrialData) -> dict[str, float | None]:
    """All metrics of a trial, by name; None where one is not defined for it."""
    active = data.active()
    crosses = crossings([flow.path for flow in data.flows], len(data.capacity))
    shares, full = fair_shares(data.capacity, crosses, active)
    found: dict[str, float | None] = {}
    if all(flow.greedy for flow in data.flows):
        # A flow that pauses has no fair share that it should converge to.
        found |= _fairness(data, shares) | _convergence(data)
    found["utilization"] = utilization(data, crosses, active, full)
    found |= _queueing([queue for queue, links in zip(data.queues, full, strict=True) if links.any()])
    found |= _per_flow(data)
    found["throughput_ratio"] = throughput_ratio(data, active)
    return {name: found.get(name) for name in NAMES}


def jain_index(shares: Floats) -> float:
    """Jain's index of one or more shares: 1 when all are equal, 1/n when one of n has everything."""
    return float(shares.sum() ** 2 / (shares.size * (shares**2).sum()))


def jain_series(data: TrialData, shares: Floats) -> list[float]:
    """Jain's index of every 500 ms slot in which at least two flows live through all of it.

    Throughputs are divided by the fair shares [flows, slots in bytes], so that the index is 1 for the max-min fair
    allocation also where several bottlenecks make fair shares unequal. Slots in which nothing could be or was
    delivered are left out.
    """
    width = JAIN_NS // data.slot_ns
    count = data.slots // width
    living = alive(data.flows, np.arange(count + 1) * JAIN_NS)
    indices = []
    for slot in range(count):
        rows = living[:, slot]
        if rows.sum() < 2:
            continue
        columns = slice(slot * width, (slot + 1) * width)
        got, due = data.delivered[rows, columns].sum(axis=1), shares[rows, columns].sum(axis=1)
        if got.any() and due.all():
            indices.append(jain_index(got / due))
    return indices


def _fairness(data: TrialData, shares: Floats) -> dict[str, float | None]:
    indices = jain_series(data, shares)
    if not indices:
        return {}
    return {"jain": float(np.mean(indices)), "jain_p10": float(np.percentile(indices, 10))}


def _convergence(data: TrialData) -> dict[str, float | None]:
    found = [response(data, event) for event in events(data)]
    if not found:
        return {}
    deviations = [each.deviation_mbps for each in found if each.deviation_mbps is not None]
    return {
        "convergence_first_s": float(np.mean([each.first_s for each in found])),
        "convergence_settle_s": float(
            np.mean([each.interval_s if each.settle_s is None else each.settle_s for each in found])
        ),
        "unsettled_events": float(sum(each.settle_s is None for each in found)),
        "stability_mbps": float(np.mean(deviations)) if deviations else None,
    }


def utilization(data: TrialData, crosses: Mask, active: Mask, full: Mask) -> float | None:
    """Delivered / capacity while any flow is active.

    With several links, those count that the max-min fair allocation fills (`full` [links, slots]): what the flows
    across them delivered, over what they could carry.
    """
    counted = full & active.any(axis=0)
    capacity = data.capacity[counted].sum()
    carried = (crosses.astype(float) @ data.delivered)[counted].sum()
    return float(carried / capacity) if capacity > 0 else None


def percentile(queues: list[QueueData], share: float) -> float | None:
    """Waiting time in ns below which `share` of the packets of all `queues` waited, interpolated in its bucket."""
    buckets = sorted(bucket for queue in queues for bucket in queue.buckets)
    rank = share * sum(count for _, _, count in buckets)
    below = 0
    for low, high, count in buckets:
        if below + count >= rank:
            return low + (high - low) * (rank - below) / count
        below += count
    return None


def _queueing(queues: list[QueueData]) -> dict[str, float | None]:
    waited = [(queue.mean_ns, queue.packets) for queue in queues if queue.mean_ns is not None and queue.packets]
    if not waited:
        return {}
    mean = sum(mean * packets for mean, packets in waited) / sum(packets for _, packets in waited)
    p95 = percentile(queues, 0.95)
    return {"queue_delay_ms": mean / 1e6, "queue_delay_p95_ms": None if p95 is None else p95 / 1e6}


def _per_flow(data: TrialData) -> dict[str, float | None]:
    inflation = [
        flow.rtt_mean_ns / flow.base_rtt_ns
        for flow in data.flows
        if flow.rtt_mean_ns is not None and flow.base_rtt_ns > 0
    ]
    sent = sum(flow.sent for flow in data.flows)
    times = [(end - start) / NS for flow in data.flows for start, end in flow.completions]
    return {
        "rtt_inflation": float(np.mean(inflation)) if inflation else None,
        "loss": sum(flow.lost for flow in data.flows) / sent if sent else None,
        "fct_s": float(np.mean(times)) if times else None,
        "fct_p99_s": float(np.percentile(times, 99)) if times else None,
    }


def throughput_ratio(data: TrialData, active: Mask) -> float | None:
    """Mean throughput of the flows under test / that of their competitors, while both kinds are active."""
    tested = np.array([flow.under_test for flow in data.flows])
    if tested.all() or not tested.any():
        return None
    both = active[tested].any(axis=0) & active[~tested].any(axis=0)
    counted = active & both
    time, got = counted.sum(axis=1), (data.delivered * counted).sum(axis=1)
    lived = time > 0
    if not (lived & tested).any() or not got[~tested].any():
        return None
    rate = np.divide(got, time, out=np.zeros(len(got)), where=lived)
    return float(rate[tested & lived].mean() / rate[~tested & lived].mean())
