"""The settings that are compared: one bottleneck, one or three flows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from astraea.errors import UserError
from astraea.scenario.document import Document
from astraea.scenario.units import format_time, parse_time

RATES, RTTS, BUFFERS, FLOWS, LOSSES = (12, 50, 100, 500), (10, 30, 100), (0.5, 1, 4), (1, 3), (0, 0.001)
"""The whole product: Mbit/s, ms, bandwidth-delay products, flows, share of packets lost at random."""

SCHEMES = ("cubic", "newreno", "bbr")
"""What a kernel and the simulator both have."""

RECORD = "10ms"
"""Length of the slots in which series are recorded."""

APART = "1s"
"""Time between two flows' starts."""

LONGEST = "24h"
"""Longest trial: more would not fit into memory."""

JITTER = "20ms"
"""By which starts differ from trial to trial, so that a simulation has trials at all."""


@dataclass(frozen=True)
class Setting:
    """One setting. `rate` is in Mbit/s, None for a generated LTE trace; `rtt` in ms; `buffer` in BDPs."""

    rate: float | None
    rtt: float
    buffer: float
    flows: int = 1
    loss: float = 0

    @property
    def name(self) -> str:
        """Such as "100 Mbit/s, 30 ms, 1 BDP, 3 flows, 0.1 % loss"."""
        parts = ["LTE trace" if self.rate is None else f"{self.rate:g} Mbit/s", f"{self.rtt:g} ms"]
        parts.append(f"{self.buffer:g} BDP")
        if self.flows > 1:
            parts.append(f"{self.flows} flows")
        if self.loss:
            parts.append(f"{100 * self.loss:g} % loss")
        return ", ".join(parts)

    def document(self, duration: str) -> Document:
        """The setting as a scenario whose senders and receivers bunch packets and acknowledgements as Linux's do."""
        capacity: dict[str, Any] = {"trace": {"model": "lte", "mean": "9Mbps", "seed": 1}}
        if self.rate is not None:
            capacity = {"rate": f"{self.rate:g}Mbps"}
        link = {**capacity, "delay": f"{self.rtt / 2:g}ms", "buffer": f"{self.buffer:g}bdp", "loss": self.loss}
        flow = {
            "count": self.flows,
            "start": {"every": APART, "jitter": JITTER},
            "path": ["bottleneck"],
            "ack": {"every": 2, "timeout": "40ms"},
            "burst": "1ms",
        }
        raw = {
            "title": self.name,
            "duration": duration,
            "record": RECORD,
            "link": {"bottleneck": link},
            "flow": [flow],
        }
        return Document(self.name, Path("fidelity.toml"), raw)


def check_duration(text: str, settings: Sequence[Setting]) -> None:
    """Raise `UserError` unless `text` is a length for trials of all `settings`: every flow has to start in it."""
    try:
        length = parse_time(text)
    except ValueError as error:
        raise UserError(f"--duration: {error}") from None
    least = (max(setting.flows for setting in settings) - 1) * parse_time(APART) + parse_time(JITTER)
    if not least <= length <= parse_time(LONGEST):
        limits = f"{format_time(least)}, by when every flow has started, to {LONGEST}"
        raise UserError(f'--duration: expected {limits}, not "{text}"')


DEFAULT = (
    Setting(12, 30, 1),
    Setting(12, 100, 4),
    Setting(12, 10, 4, flows=3),
    Setting(50, 10, 1),
    Setting(50, 30, 4, flows=3),
    Setting(50, 100, 0.5),
    Setting(100, 30, 0.5),
    Setting(100, 30, 1),
    Setting(100, 30, 4),
    Setting(100, 30, 1, flows=3),
    Setting(100, 100, 1),
    Setting(100, 10, 1, flows=3),
    Setting(500, 10, 1),
    Setting(500, 30, 1),
    Setting(500, 30, 4, flows=3),
    Setting(12, 30, 1, loss=0.001),
    Setting(100, 30, 1, loss=0.001),
    Setting(50, 30, 1, flows=3, loss=0.001),
    Setting(None, 40, 4),
)
"""Every value of the product at least once, and each kind of setting in which the two may differ."""

QUICK = (Setting(12, 30, 1), Setting(50, 10, 1), Setting(100, 30, 1, flows=3), Setting(100, 30, 1, loss=0.001))
"""Enough to see that both work."""


def full() -> tuple[Setting, ...]:
    """The whole product, and the trace."""
    product = itertools.product(RATES, RTTS, BUFFERS, FLOWS, LOSSES)
    return (*(Setting(*values) for values in product), Setting(None, 40, 4))
