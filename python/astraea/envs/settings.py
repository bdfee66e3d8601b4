"""Settings of the environments. Their defaults and limits are checked by the native module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import numpy as np

Range = float | tuple[float, float]
"""What a parameter is drawn from in each episode: a number, or the lowest and the highest value."""


class SingleFlowSettings(TypedDict, total=False):
    """Settings of `astraea/SingleFlow-v0`; the defaults are those that Aurora was trained with (ICML'19, §3 and §4)."""

    bandwidth: Range
    """Capacity in packets of 1500 bytes per second. Default 100 to 500."""
    delay: Range
    """Delay of the link in s. Default 0.05 to 0.5."""
    delay_is: Literal["one_way", "round_trip"]
    """Whether the base round-trip time is twice the delay (default) or the delay itself."""
    queue: Range
    """Room for waiting packets; log-uniform. Default 2 to 2981."""
    loss: Range
    """Share of packets lost at random. Default 0 to 0.05."""
    start: Range
    """First sending rate as a multiple of the capacity. Default 0.3 to 1.5."""
    rate_limits: tuple[float, float]
    """Smallest and largest sending rate in packets/s. Default 40 to 1000."""
    interval: float
    """Length of a monitor interval as a multiple of the mean round-trip time of the one before. Default 0.5."""
    steps: int
    """Steps of an episode. Default 400."""
    history: int
    """Intervals in an observation. Default 10."""
    alpha: float
    """Change of the rate by a full action. Default 0.025."""
    action_limit: float
    """Largest magnitude of an action. Default 1."""
    throughput_weight: float
    """Reward for each packet/s acknowledged. Default 10."""
    latency_weight: float
    """Penalty for each second of mean round-trip time. Default 1000."""
    loss_weight: float
    """Penalty for losing everything. Default 2000."""
    reward_scale: float
    """Factor of the whole reward. Default 1."""


class RewardSettings(TypedDict, total=False):
    """Coefficients of the shared reward (Astraea, EuroSys'24, eq. 4 to 8 and table 4)."""

    throughput: float
    """Weight of the sum of the throughputs over the capacity, c0. Default 0.1."""
    latency: float
    """Weight of the latency beyond the tolerance, c1. Default 0.02."""
    loss: float
    """Weight of loss over throughput, c2. Default 1."""
    fairness: float
    """Weight of unfairness, c3. Default 0.02."""
    stability: float
    """Weight of the throughputs' variation in time, c4. Default 0.01."""
    tolerance: float
    """Queueing delay that costs nothing, as a share of the base round-trip time (beta of eq. 5). Default 0.2."""
    bound: float
    """The reward is clipped to plus or minus this. Default 0.1."""
    fairness_measure: Literal["paper", "relative"]
    """Standard deviation of the throughputs over their sum (eq. 6, default) or over their mean."""


class MultiFlowSettings(TypedDict, total=False):
    """Settings of `astraea/MultiFlow-v0` and `multi_flow_v0`; the ranges are those of table 3 in Astraea's paper."""

    bandwidth: Range
    """Rate of the bottleneck in bit/s on the wire. Default 40e6 to 160e6."""
    rtt: Range
    """Base round-trip time in s. Default 0.01 to 0.14."""
    buffer: Range
    """Buffer as a multiple of the bandwidth-delay product; log-uniform. Default 0.1 to 16."""
    loss: Range
    """Share of packets lost at random. Default 0."""
    flows: int | tuple[int, int]
    """Number of flows of an episode. Default 2 to 5."""
    heterogeneous: float
    """Probability that each flow has its own base round-trip time. Default 0.5."""
    arrival_gap: float
    """Mean time between arrivals in s, exponentially distributed; the first flow starts at once. Default 4."""
    lifetime: float | None
    """Mean life of a flow in s, exponentially distributed; None: to the end of the episode. Default 20."""
    duration: float
    """Length of an episode in s. Default 30."""
    period: float
    """Monitoring period in s. Default 0.03."""
    alpha: float
    """Change of the window by a full action. Default 0.025."""
    window_limit: float
    """Largest window as a multiple of the flow's bandwidth-delay product. Default 20."""
    reward: RewardSettings
    """The reward."""


def _plain(value: Any) -> Any:
    """What json cannot write: numbers and arrays of NumPy."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ValueError(f"settings: cannot use a value of type {type(value).__name__}")


def to_json(settings: Mapping[str, Any]) -> str:
    """The settings as the native module reads them."""
    return json.dumps(settings, default=_plain)
