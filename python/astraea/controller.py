"""Congestion controllers written in Python, for prototypes.

A controller decides once per monitoring period (`period` of a flow in the scenario, 30 ms by default). In a run,
`--cc file.py:ClassName` uses the class for every flow under test, one object per flow. See
docs/python-controller.md for a complete example and for what it costs in speed.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from astraea.errors import UserError, said

LIMITS = {"cwnd": 1e7, "pacing": 1e15}
"""Largest answers, in packets and bit/s. A window is sent at once where nothing paces it, and must fit into memory."""


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
    """What a controller wants until the next period; None leaves the window as it is, or does not pace.

    When a packet leaves, the pacing rate sets the time of the next one. A higher rate in a later period shortens what
    is left of that wait only where it is more than a second.
    """

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
    """Joins a controller to the simulator, which speaks in dictionaries. What goes wrong in it is a `UserError`."""

    def __init__(self, make: Callable[[], Any], mss: int) -> None:
        self._made_by = getattr(make, "func", make)
        try:
            self._controller = make()
            if hasattr(self._controller, "start"):
                self._controller.start(mss)
        except (Exception, SystemExit) as error:
            raise self._blame(error) from None

    def decide(self, stats: dict[str, Any]) -> dict[str, float] | None:
        """Pass a period's measurements on and the answer back."""
        try:
            answer = self._controller.decide(Stats(**stats))
        except (Exception, SystemExit) as error:
            raise self._blame(error) from None
        if answer is None:
            return None
        try:
            return _read(answer)
        except Exception:  # an answer's own methods may raise anything
            returned = f"{type(self._controller).__name__}.decide() returned {said(answer, repr)}"
            raise UserError(
                f"{self._file()}: {returned}; expected a Decision, a dict or "
                f"a pair with cwnd (packets, up to {LIMITS['cwnd']:.0e}) and pacing (bit/s), or None"
            ) from None

    def _file(self) -> str:
        return str(getattr(sys.modules.get(self._made_by.__module__), "__file__", self._made_by.__module__))

    def _blame(self, error: BaseException) -> UserError:
        """The error with the line of the controller's file that led to it."""
        file = self._file()
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        where = f"{file}: line {lines[-1]}" if lines else file
        return UserError(f"{where}: {type(error).__name__}: {said(error)}")


def _read(answer: Any) -> dict[str, float]:
    """The numbers of an answer; an exception if it is none."""
    if isinstance(answer, Decision):
        answer = {"cwnd": answer.cwnd, "pacing": answer.pacing}
    elif isinstance(answer, tuple):
        answer = dict(zip(LIMITS, answer, strict=True))
    found = {key: float(value) for key, value in answer.items() if value is not None}
    if not all(0 < value <= LIMITS.get(key, 0) for key, value in found.items()):
        raise ValueError
    return found
