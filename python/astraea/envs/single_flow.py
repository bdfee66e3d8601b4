"""One flow on one link, whose sending rate is set once a monitor interval (Aurora, ICML'19)."""

from __future__ import annotations

from typing import Unpack

from astraea.envs.native import NativeEnv
from astraea.envs.settings import SingleFlowSettings

LANDMARKS = tuple((i / 10, j / 10, (10 - i - j) / 10) for i in range(1, 9) for j in range(1, 10 - i))
"""The 36 preferences in whole tenths that MOCC is trained with: how much throughput, latency and losses weigh."""

MULTI_OBJECTIVE: SingleFlowSettings = {
    "preferences": LANDMARKS,
    "bandwidth": (83.0, 417.0),
    "delay": (0.01, 0.05),
    "queue": (2, 3000),
    "loss": (0.0, 0.03),
}
"""What `astraea/MultiObjective-v0` sets: the ranges that MOCC is trained with, 1 to 5 Mbit/s among them."""


class SingleFlowEnv(NativeEnv):
    """`astraea/SingleFlow-v0`: Aurora's set-up; `astraea/MultiObjective-v0`: MOCC's, with `MULTI_OBJECTIVE`.

    Action, shape (1,): `a` in ±`action_limit` changes the rate to `rate * (1 + alpha a)`, or `rate / (1 - alpha a)` if
    it is negative. The rate holds for one monitor interval.

    Observation, shape (30,): latency gradient, latency ratio and send ratio of each of the last 10 intervals, oldest
    first; intervals before the first show (0, 1, 1).

    Reward: `10 throughput - 1000 latency - 2000 loss` of the interval, in packets/s, s and as a share.

    With `preferences` each episode has one of them. The observation then ends with its three weights, which add up to
    1, and the reward is what they make of throughput over capacity, round-trip time of the idle link over the mean one,
    and the share of packets not lost.

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
