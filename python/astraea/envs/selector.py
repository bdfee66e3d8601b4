"""One flow on one link whose scheme is chosen anew with each interval (Antelope, ICNP'21; HACC)."""

from __future__ import annotations

from typing import Unpack

from astraea.envs.native import NativeEnv
from astraea.envs.settings import SelectorSettings


class SelectorEnv(NativeEnv):
    """`astraea/Selector-v0`: the set-up of Antelope and of HACC, in the packet simulator.

    Action: which scheme goes on with the connection, an index into `SelectorPolicy.candidates` (BBR, CUBIC, Illinois,
    C2TCP, Westwood, Vegas). Another one than before finds window and slow-start threshold as they are, and nothing
    else. The flow begins with CUBIC; the step ends with the next interval, of 21 acknowledgements (Antelope) or a round
    trip (HACC), or after 60 s without one (the same observation again, and a reward of 0).

    Observation, shape (7,): of the interval, Antelope's form: smallest round-trip time, its mean deviation, mean of the
    smoothed one, delay that the reward counts (all ms), throughput (Mbit/s), packets lost, mean pacing rate (Mbit/s).
    Shape (6,), HACC's: mean of the smoothed round-trip time (ms), acknowledgements, packets lost, throughput (Mbit/s),
    smallest round-trip time (ms), largest pacing rate so far (Mbit/s). Times and rates are on a logarithmic scale of 0
    to 1, from 0.1 ms to 10 s and 10 kbit/s to 10 Gbit/s.

    Reward of the interval, at most 1, Antelope's form: `(throughput - lost) / pacing * min_rtt / delay`, in packets a
    second and packets, by the largest pacing rate of the interval; HACC's (equation 1): `(throughput - 5 loss) /
    pacing_max * min_rtt / delay`, by the largest of the flow. `delay` is `min_rtt` for as long as the round-trip time
    is less than a multiple of it that begins with 1 (HACC: 2) and doubles with each of the first nine intervals.

    Info: time (s), scheme (index at work in the interval), throughput (payload bit/s), rtt (mean smoothed, s), lost
    (payload bytes), and what was drawn for the episode: bandwidth (bit/s on the wire), base_rtt (s), buffer (wire
    bytes), loss_probability.

    Args:
        settings: See `SelectorSettings`.

    Raises:
        ValueError: Names the setting that is unknown or out of range.
    """

    kind = "selector"

    def __init__(self, **settings: Unpack[SelectorSettings]) -> None:
        super().__init__(settings)
