"""Series made by hand for the tests of metrics."""

from collections.abc import Sequence

import numpy as np

from astraea.eval.data import FlowData, QueueData, TrialData
from astraea.scenario.units import NS

SLOT_NS = NS // 100
"""10 ms."""


def rates(*pieces: tuple[float, float]) -> np.ndarray:
    """Bytes per slot of (seconds, Mbit/s) pieces."""
    return np.concatenate([np.full(round(s * 100), mbps * 1e6 / 8 / 100) for s, mbps in pieces])


def flow(start: float, end: float, path: Sequence[int] = (0,), **more: object) -> FlowData:
    """A flow that lives from `start` to `end`, in s."""
    return FlowData(round(start * NS), round(end * NS), tuple(path), **more)  # type: ignore[arg-type]


def trial(
    flows: Sequence[FlowData],
    delivered: Sequence[np.ndarray],
    capacity: Sequence[np.ndarray],
    queues: Sequence[QueueData] | None = None,
) -> TrialData:
    """A trial; all series have the same length."""
    return TrialData(
        SLOT_NS, list(flows), np.array(delivered), np.array(capacity), list(queues or [QueueData() for _ in capacity])
    )
