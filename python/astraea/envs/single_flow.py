"""One flow on one link, whose sending rate is set once a monitor interval (Aurora, ICML'19)."""

from __future__ import annotations

from typing import Any, Unpack

from astraea.envs.native import NativeEnv
from astraea.envs.settings import SingleFlowSettings


class SingleFlowEnv(NativeEnv):
    """`astraea/SingleFlow-v0`: Aurora's set-up.

    Action, shape (1,): `a` in ±`action_limit` changes the rate to `rate * (1 + alpha a)`, or `rate / (1 - alpha a)` if
    it is negative. The rate holds for one monitor interval.

    Observation, shape (30,): latency gradient, latency ratio and send ratio of each of the last 10 intervals, oldest
    first; intervals before the first show (0, 1, 1).

    Reward: `10 throughput - 1000 latency - 2000 loss` of the interval, in packets/s, s and as a share.

    Info: time (s), rate and throughput (packets/s), latency (mean round-trip time of the interval, s), loss (share),
    and what was drawn for the episode: bandwidth (packets/s), base_rtt (s), queue (packets), loss_probability.

    Args:
        settings: See `SingleFlowSettings`.

    Raises:
        ValueError: Names the setting that is unknown or out of range.
    """

    kind = "single_flow"

    def __init__(self, **settings: Unpack[SingleFlowSettings]) -> None:
        super().__init__(settings)
        self._names = self._native.info_names

    def _info(self) -> dict[str, Any]:
        return dict(zip(self._names, self._native.info().tolist(), strict=True))
