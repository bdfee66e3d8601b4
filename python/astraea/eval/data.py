"""What the metrics are computed from: one trial, whatever ran it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class FlowData:
    """One flow. Times in ns, counts in packets."""

    start_ns: int
    end_ns: int
    path: tuple[int, ...]
    under_test: bool = True
    greedy: bool = True
    """Whether it always had data to send while it lived."""
    base_rtt_ns: int = 0
    rtt_mean_ns: float | None = None
    sent: int = 0
    lost: int = 0
    completions: tuple[tuple[int, int], ...] = ()
    """Start and end of each message or file that arrived."""


@dataclass(frozen=True)
class QueueData:
    """Waiting times in a link's queue: mean, and buckets (from ns, to ns, number of packets)."""

    packets: int = 0
    mean_ns: float | None = None
    buckets: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class TrialData:
    """Series in slots of `slot_ns`, all in goodput bytes: `delivered` by flow, `capacity` by link."""

    slot_ns: int
    flows: list[FlowData]
    delivered: Floats
    """[flows, slots]"""
    capacity: Floats
    """[links, slots]"""
    queues: list[QueueData]

    @property
    def slots(self) -> int:
        """Number of slots."""
        return int(self.delivered.shape[1])

    def active(self) -> Mask:
        """[flows, slots]: whether the flow lives through the whole slot."""
        return alive(self.flows, np.arange(self.slots + 1) * self.slot_ns)


def alive(flows: list[FlowData], edges_ns: NDArray[np.int64]) -> Mask:
    """[flows, intervals]: whether the flow lives through the whole interval between two neighbouring edges."""
    starts = np.array([flow.start_ns for flow in flows], dtype=np.int64)[:, None]
    ends = np.array([flow.end_ns for flow in flows], dtype=np.int64)[:, None]
    return (starts <= edges_ns[:-1]) & (ends >= edges_ns[1:])
