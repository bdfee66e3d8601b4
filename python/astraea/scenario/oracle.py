"""What only a simulation knows: the base round-trip time of a path, for the scheme `fast-oracle`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from astraea.scenario.units import MTU, NS

SCHEME, PARAMETER = "fast-oracle", "base_rtt"

ACK = 52
"""Bytes of an acknowledgement on a link."""


def fill(config: dict[str, Any], base_rtts: Sequence[int]) -> None:
    """Give each flow that runs the oracle and was not told otherwise its base RTT.

    `config` is that of the simulator, `base_rtts` are propagation delays in ns, both ways. To these come the times that
    one packet takes on the wire of each link. On a path that changes it is the smallest that there can be.
    """
    for flow, base_rtt in zip(config["flows"], base_rtts, strict=True):
        scheme = flow["scheme"]
        if scheme["name"] == SCHEME and not scheme["params"].get(PARAMETER):
            wire = sum(_wire(config["links"][link], MTU) for link in flow["path"])
            wire += sum(_wire(config["links"][link], ACK) for link in flow["return_path"])
            scheme["params"][PARAMETER] = base_rtt / NS + wire


def _wire(link: dict[str, Any], size: int) -> float:
    """Seconds that so many bytes take at the link's highest rate; none on one that has opportunities instead."""
    match link["rate"]:
        case {"constant": rate}:
            return 8 * size / float(rate)
        case {"schedule": steps}:
            return 8 * size / float(max(rate for _, rate in steps))
        case _:
            return 0.0
