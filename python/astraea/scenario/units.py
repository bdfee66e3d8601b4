"""Quantities as people write them: "100Mbps", "30ms", "1bdp", "4.8MB", "250packets", "1%".

Parsers take what TOML can hold and return SI numbers: rates in bit/s, times in integer nanoseconds, sizes
in bytes. They raise `ValueError` with the reason and an example. Formatters give a text that parses back to
exactly the same value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

MTU = 1500
"""Bytes that a full packet takes on a link."""

MSS = 1448
"""Bytes of payload in a full packet."""

NS = 1_000_000_000
"""Nanoseconds in a second."""

MAX_RATE, MAX_TIME, MAX_SIZE = 1e13, 10**16, 1e15
"""Largest rate in bit/s, time in ns and size in bytes: far beyond use, and well within the simulator's integers.

The time is the simulator's own bound, `LONGEST` of crates/sim/src/config.rs.
"""

MAX_QUANTUM = 2**32 - 1
"""Largest quantum of a queue in bytes: the simulator's integers have 32 bits there."""

MAX_BUFFER = 1e9
"""Largest buffer in bandwidth-delay products or packets."""

_QUANTITY = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([A-Za-zµμ%/]*)\s*")

_RATES = {
    "bps": 1.0,
    "kbps": 1e3,
    "mbps": 1e6,
    "gbps": 1e9,
    "bit/s": 1.0,
    "kbit/s": 1e3,
    "mbit/s": 1e6,
    "gbit/s": 1e9,
}
_TIMES = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NS,
    "min": 60 * NS,
    "h": 3600 * NS,
}
_SIZES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}


def _split(value: Any, example: str) -> tuple[float, str]:
    """Number and unit of `value`; a bare number has the unit ""."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{_shown(value)} is not a quantity; expected e.g. {example}")
    match = _QUANTITY.fullmatch(str(value))
    if match is None or not math.isfinite(number := float(match[1])):
        raise ValueError(f'cannot read "{_shown(value)}"; expected e.g. {example}')
    return number, match[2]


def _missing_unit(value: Any, example: str) -> ValueError:
    return ValueError(f'missing unit in "{value}"; expected e.g. {example}')


def _unknown_unit(unit: str, value: Any, example: str) -> ValueError:
    return ValueError(f'unknown unit "{unit}" in "{value}"; expected e.g. {example}')


def parse_rate(value: Any) -> float:
    """Rate above zero in bit/s, from e.g. "100Mbps", "1.5Gbit/s"."""
    example = '"100Mbps"'
    number, unit = _split(value, example)
    if not unit:
        raise _missing_unit(value, example)
    # A capital B means bytes; guessing would be wrong by a factor of eight.
    if "B" in unit or unit.lower() not in _RATES:
        raise _unknown_unit(unit, value, example)
    if number <= 0:
        raise ValueError(f'a rate must be above zero, not "{value}"')
    rate = number * _RATES[unit.lower()]
    if not 1 <= rate <= MAX_RATE:
        raise ValueError(f'a rate must lie between 1bps and 10000Gbps, not "{value}"')
    return rate


def parse_time(value: Any) -> int:
    """Time of zero or more in ns, from e.g. "30ms", "5min". A bare 0 needs no unit."""
    example = '"30ms"'
    number, unit = _split(value, example)
    if not unit and number != 0:
        raise _missing_unit(value, example)
    if unit and unit not in _TIMES:
        raise _unknown_unit(unit, value, example)
    if number < 0:
        raise ValueError(f'a time must not be negative: "{value}"')
    time = number * _TIMES[unit] if unit else 0
    if time > MAX_TIME:
        raise ValueError(f'a time must be at most 10000000s (115 days), not "{value}"')
    return round(time)


def parse_span(value: Any) -> int:
    """Time above zero in ns."""
    time = parse_time(value)
    if time == 0:
        raise ValueError(f'must be above zero, not "{value}"')
    return time


def check_interval(time: int) -> int:
    """`time`, in ns, if something may happen as often as that; a simulation would not come to an end otherwise."""
    if time < 1000:
        raise ValueError(f"must be at least 1us, not {format_time(time)}")
    return time


def parse_size(value: Any) -> int:
    """Size of at least one byte, from e.g. "10MB", "1448B"."""
    example = '"10MB"'
    number, unit = _split(value, example)
    if not unit:
        raise _missing_unit(value, example)
    if unit not in _SIZES:
        raise _unknown_unit(unit, value, example)
    size = number * _SIZES[unit]
    if size > MAX_SIZE:
        raise ValueError(f'a size must be at most 1000000GB, not "{value}"')
    if round(size) < 1:
        raise ValueError(f'a size must be at least one byte, not "{value}"')
    return round(size)


def parse_quantum(value: Any) -> int:
    """Size in bytes that a queue may send at a time."""
    size = parse_size(value)
    if size > MAX_QUANTUM:
        raise ValueError(f'must be at most {MAX_QUANTUM}B, not "{value}"')
    return size


def parse_ratio(value: Any, *, whole: bool = True) -> float:
    """Probability or share from 0 to 1, from e.g. 0.01 or "1%"; unless `whole`, 1 itself is too much."""
    example = '0.01 or "1%"'
    number, unit = _split(value, example)
    if unit not in ("", "%"):
        raise _unknown_unit(unit, value, example)
    ratio = number / 100 if unit else number
    if not 0 <= ratio <= 1 or (ratio == 1 and not whole):
        limits = "lie between 0 and 1 (or 0% and 100%)" if whole else "be at least 0 and less than 1 (or 100%)"
        raise ValueError(f'must {limits}, not "{value}"')
    return ratio


@dataclass(frozen=True)
class Buffer:
    """Limit of a queue, `amount` of `unit`: "bytes", "packets", "bdp", "ns", or "infinite"."""

    amount: float
    unit: str


def parse_buffer(value: Any) -> Buffer:
    """Queue limit, from e.g. "1bdp", "375kB", "250packets", "100ms" or "infinite"."""
    example = '"1bdp", "375kB", "250packets", "100ms" or "infinite"'
    if isinstance(value, Buffer):
        return value
    if isinstance(value, str) and value.strip() == "infinite":
        return Buffer(0, "infinite")
    number, unit = _split(value, example)
    if not unit:
        raise _missing_unit(value, example)
    if number <= 0:
        raise ValueError(f'a buffer must be above zero, not "{value}"')
    if unit in _TIMES:
        return Buffer(parse_span(value), "ns")
    if unit in _SIZES:
        return Buffer(parse_size(value), "bytes")
    if unit.lower() != "bdp" and unit not in ("packet", "packets"):
        raise _unknown_unit(unit, value, example)
    if number > MAX_BUFFER:
        raise ValueError(f'a buffer must be at most {MAX_BUFFER:.0e} bdp or packets, or "infinite", not "{value}"')
    if unit.lower() == "bdp":
        return Buffer(number, "bdp")
    if number != int(number):
        raise ValueError(f'expected a whole number of packets, not "{value}"')
    return Buffer(number, "packets")


def _format(value: float, units: dict[str, float]) -> str:
    """`value` in the largest of `units` (ascending) in which it is at least one, without losing a digit."""
    best = next(iter(units))
    for unit, factor in units.items():
        if abs(value) >= factor and float(f"{value / factor:.12g}") * factor == value:
            best = unit
    scaled = value / units[best]
    text = f"{scaled:.12g}"
    return (text if float(text) * units[best] == value else repr(scaled)) + best


def format_rate(value: float) -> str:
    """`value` in bit/s as text, e.g. "100Mbps"."""
    return _format(value, {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9})


def format_time(value: int) -> str:
    """`value` in ns as text, e.g. "30ms"; minutes and hours stay in seconds."""
    return "0s" if value == 0 else _format(value, {"ns": 1, "us": 1e3, "ms": 1e6, "s": NS})


def format_size(value: float) -> str:
    """`value` in bytes as text, e.g. "375kB"."""
    return _format(value, {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9})


def format_buffer(value: Buffer) -> str:
    """`value` as it would be written in a scenario."""
    if value.unit == "infinite":
        return "infinite"
    if value.unit == "bytes":
        return format_size(value.amount)
    if value.unit == "ns":
        return format_time(round(value.amount))
    return f"{value.amount:.12g}{value.unit}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."
