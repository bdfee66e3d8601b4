"""Many flows on one bottleneck, each of which asks for an action when its monitoring period has ended."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from astraea.envs.native import NativeEnv
from astraea.envs.settings import MultiFlowSettings


class MultiFlowEnv(NativeEnv):
    """`astraea/MultiFlow-v0`: the flow-driven view of many flows that share one policy (Astraea, EuroSys'24, §3).

    Each step answers the flow that asks and goes on until the next one does, which is mostly another one.

    Action, shape (1,): `a` in ±1 changes the flow's window to `cwnd * (1 + alpha a)`, or `cwnd / (1 - alpha a)` if it
    is negative; the flow is paced at `cwnd / srtt`.

    Observation, shape (40,): local state of the flow that asks, eight features of each of its last 5 monitoring
    periods, oldest first.

    Reward: the shared reward (eq. 8) at the moment of the next decision, of the last period of every active flow.

    Info: flow (index of the flow that the observation belongs to), time (s), global_state (float32, shape (12,), for a
    central critic).

    Args:
        settings: See `MultiFlowSettings`.

    Raises:
        ValueError: Names the setting that is unknown or out of range.
    """

    kind = "multi_flow"

    def __init__(self, **settings: Unpack[MultiFlowSettings]) -> None:
        super().__init__(settings)

    def _info(self) -> dict[str, Any]:
        info = self._native.info()
        return {"flow": int(info[0]), "time": float(info[1]), "global_state": info[2:].astype(np.float32)}

    def statistics(self) -> dict[str, NDArray[Any]]:
        """What the reward is made of, for rewards of one's own: arrays over the flows of the episode.

        Returns:
            active (bool), throughput, mean_throughput and deviation (over the last 5 periods), loss and pacing_rate
            (payload bit/s), latency and base_rtt (s), cwnd and in_flight (payload bytes), neighbour (bool: whether the
            flow has a scheme of its own).
        """
        statistics = self._native.statistics()
        assert statistics is not None, "there are many flows"
        return statistics
