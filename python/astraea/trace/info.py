"""What a trace is like: length, rates, gaps."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from astraea.scenario.units import MTU, NS
from astraea.trace.files import rate_steps


@dataclass(frozen=True)
class TraceInfo:
    """Summary of one period. Rates in Mbit/s, over windows of one second; gaps are times without opportunity."""

    duration_s: float
    opportunities: int
    mean_mbps: float
    min_mbps: float
    max_mbps: float
    longest_gap_s: float
    gap_share: float
    """Share of the time in gaps of more than 100 ms."""

    def as_dict(self) -> dict[str, float]:
        """The same as a plain dictionary."""
        return asdict(self)


def mean_rate(times_ns: NDArray[np.int64]) -> float:
    """Mean rate in bit/s of a trace given as opportunities in ns."""
    return times_ns.size * MTU * 8 / (int(times_ns[-1]) / NS)


def describe(times_ns: NDArray[np.int64]) -> TraceInfo:
    """Summarise a trace given as opportunities in ns."""
    rates = [rate / 1e6 for _, rate in rate_steps(times_ns, 1.0)]
    gaps = np.diff(times_ns, prepend=0)
    end = int(times_ns[-1])
    return TraceInfo(
        duration_s=end / NS,
        opportunities=times_ns.size,
        mean_mbps=mean_rate(times_ns) / 1e6,
        min_mbps=min(rates),
        max_mbps=max(rates),
        longest_gap_s=int(gaps.max()) / NS,
        gap_share=int(gaps[gaps > NS // 10].sum()) / end,
    )
