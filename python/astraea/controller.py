"""Congestion controllers written in Python, for prototypes.

A controller decides once per monitoring period (`period` of a flow in the scenario, 30 ms by default). In a run,
`--cc file.py:ClassName` uses the class for every flow under test, one object per flow. See
docs/python-controller.md for a complete example and for what it costs in speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Stats:
    """What a sender measured in the monitoring period that has just ended."""

    now: float
    """Time since the start of the simulation in s."""
    period: float
    """Length of the period in s."""
    sent_bytes: int
    """Payload bytes sent, retransmissions included."""
    acked_bytes: int
    """Payload bytes newly acknowledged."""
    lost_bytes: int
    """Payload bytes declared lost."""
    throughput: float
    """Payload acknowledged per time, in bit/s."""
    rtt_mean: float | None
    """Mean of the period's RTT samples in s; None without a sample."""
    rtt_min: float | None
    """Smallest of the period's RTT samples in s; None without a sample."""
    srtt: float | None
    """Smoothed RTT in s (RFC 6298); None before the first sample."""
    min_rtt: float | None
    """Smallest RTT of the flow's life in s; None before the first sample."""
    cwnd: float
    """Congestion window in packets."""
    inflight: float
    """Packets in flight."""
    pacing: float | None
    """Pacing rate in bit/s; None when not paced."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a controller wants until the next period; None leaves the window as it is, or does not pace."""

    cwnd: float | None = None
    """Congestion window in packets."""
    pacing: float | None = None
    """Pacing rate in bit/s."""


class Controller:
    """Base class of controllers in Python; any class with a method `decide` will do."""

    def start(self, mss: int) -> None:
        """Prepare for a flow whose packets carry `mss` bytes. Until the first decision its window is 10 packets."""

    def decide(self, stats: Stats) -> Decision | Mapping[str, float] | tuple[float, float] | None:
        """Window and pacing rate for the next period, from what was measured in the last one.

        The answer is a `Decision`, a dictionary with "cwnd" and/or "pacing", a pair (cwnd, pacing), or None for no
        change.
        """
        raise NotImplementedError


class Bridge:
    """Joins a controller to the simulator, which speaks in dictionaries."""

    def __init__(self, controller: Any, mss: int) -> None:
        self._controller = controller
        if hasattr(controller, "start"):
            controller.start(mss)

    def decide(self, stats: dict[str, Any]) -> dict[str, float] | None:
        """Pass a period's measurements on and the answer back."""
        answer = self._controller.decide(Stats(**stats))
        if answer is None:
            return None
        if isinstance(answer, Decision):
            answer = {"cwnd": answer.cwnd, "pacing": answer.pacing}
        elif isinstance(answer, tuple):
            answer = dict(zip(("cwnd", "pacing"), answer, strict=True))
        if not isinstance(answer, Mapping) or not answer.keys() <= {"cwnd", "pacing"}:
            raise TypeError(f"decide() returned {answer!r}; expected a Decision, a dict with cwnd and pacing, or None")
        return {key: float(value) for key, value in answer.items() if value is not None}
