"""Trace files: Mahimahi's format, and steps of rate over time as CSV or JSON."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from astraea import _native
from astraea.errors import UserError
from astraea.scenario.links import MAX_DURATION, MAX_PACKETS
from astraea.scenario.units import MTU, NS

Format = Literal["mahimahi", "csv", "json"]
Step = tuple[float, float]
"""A time in s and the rate in bit/s from then on."""

SLACK = 1e-6
"""Sums of fractions come out as much above or below a whole packet or millisecond as this."""


def format_of(path: Path) -> Format:
    """The format that a file's name stands for: .csv, .json, and Mahimahi for everything else."""
    match path.suffix.lower():
        case ".csv":
            return "csv"
        case ".json":
            return "json"
    return "mahimahi"


def read(path: Path) -> NDArray[np.int64]:
    """Opportunities of one period in ns, from a file of any format; the last is the length of the period.

    Raises `UserError` naming the file and, where there is one, the line.
    """
    kind = format_of(path)
    try:
        if kind == "mahimahi":
            return _native.read_trace(str(path))
        text = path.read_text(encoding="utf-8-sig")
        steps = _steps_of_csv(text) if kind == "csv" else _steps_of_json(text)
        return opportunities(steps) * 1_000_000
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text") from None
    except RecursionError:
        raise UserError(f'{path}: expected a list of {{"time_s": ..., "rate_bps": ...}}') from None
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path}: {error}") from None


def mahimahi(times_ms: Iterable[int]) -> str:
    """A Mahimahi file: the millisecond of one opportunity on each line."""
    return "".join(f"{time}\n" for time in times_ms)


def render(times_ns: NDArray[np.int64], kind: Format, window_s: float) -> str:
    """The text of a file. CSV and JSON have the mean rate over windows of `window_s` seconds.

    Mahimahi's format has no finer time than milliseconds.
    """
    if kind == "mahimahi":
        return mahimahi((-(-times_ns // 1_000_000)).tolist())
    steps = whole_steps(times_ns, window_s)
    if kind == "json":
        return json.dumps([{"time_s": time, "rate_bps": rate} for time, rate in steps], indent=0) + "\n"
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time_s", "rate_bps"])
    writer.writerows(steps)
    return out.getvalue()


def rate_steps(times_ns: NDArray[np.int64], window_s: float) -> list[Step]:
    """Mean rate over windows of `window_s` seconds, or over all of a shorter trace.

    A last window that is not full is left out.
    """
    window = min(round(window_s * NS), int(times_ns[-1]))
    return _means(times_ns, range(0, int(times_ns[-1]) + 1, window))


def whole_steps(times_ns: NDArray[np.int64], window_s: float) -> list[Step]:
    """Mean rates from which `opportunities` makes a trace of the same length.

    Windows have `window_s` seconds, but the last two share what is left: the last step of a file lasts as long as the
    one before it.
    """
    length, window = int(times_ns[-1]), round(window_s * NS)
    edges = list(range(0, length + 1, window))
    if edges[-1] < length or len(edges) < 3:
        begin = edges[max(len(edges) - 2, 0)]
        edges = [*range(0, begin, window), begin, (begin + length) // 2, length]
    return _means(times_ns, edges)


def _means(times_ns: NDArray[np.int64], edges: Sequence[int]) -> list[Step]:
    """The mean rate between each edge in ns and the next."""
    # An opportunity at t ends a transmission, so the window that ends at t has it.
    windows = np.clip(np.searchsorted(edges, times_ns) - 1, 0, None)
    packets = np.bincount(windows, minlength=len(edges))
    return [
        (begin / NS, int(n) * MTU * 8 / ((end - begin) / NS))
        for (begin, end), n in zip(itertools.pairwise(edges), packets, strict=False)
    ]


def opportunities(steps: Sequence[Step]) -> NDArray[np.int64]:
    """Times in ms of opportunities that deliver these rates; the last step lasts as long as the one before."""
    if len(steps) < 2:
        raise ValueError(f"has {len(steps)} rows; expected at least two")
    times = np.array([time for time, _ in steps])
    if times[0] != 0 or (np.diff(times) <= 0).any():
        raise ValueError("times must start at 0 and ascend")
    rates = np.array([rate for _, rate in steps])
    if (rates < 0).any():
        raise ValueError("rates must not be negative")
    if not (rates > 0).any():
        raise ValueError("every rate is zero; expected one above zero")
    edges = np.append(times, 2 * times[-1] - times[-2])
    sent = np.concatenate(([0.0], np.cumsum(rates * np.diff(edges)))) / (8 * MTU)
    if sent[-1] > MAX_PACKETS or edges[-1] * NS > MAX_DURATION:
        raise ValueError(f"{sent[-1]:.1e} packets in {edges[-1]:.1e} s; expected at most {MAX_PACKETS:.0e} in 24h")
    packets = np.arange(1, math.floor(sent[-1] + SLACK) + 1)
    # The step in which each packet ends: not a later one of no rate that begins with the same sum.
    step = np.searchsorted(sent, packets - SLACK) - 1
    ends = np.minimum(edges[step] + (packets - sent[step]) * 8 * MTU / rates[step], edges[step + 1])
    last = max(math.ceil(edges[-1] * 1000 - SLACK), 1)
    within = np.ceil(ends * 1000 - SLACK).astype(np.int64)
    return within if within.size and within[-1] == last else np.append(within, last)


def _steps_of_csv(text: str) -> list[Step]:
    rows = list(csv.reader(io.StringIO(text)))
    while rows and not rows[-1]:
        rows.pop()
    if not rows or rows[0] != ["time_s", "rate_bps"]:
        raise ValueError('line 1: expected the header "time_s,rate_bps"')
    return [_step(row, f"line {number}") for number, row in enumerate(rows[1:], start=2)]


def _steps_of_json(text: str) -> list[Step]:
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise ValueError('expected a list of {"time_s": ..., "rate_bps": ...}')
    return [
        _step([row.get("time_s"), row.get("rate_bps")] if isinstance(row, dict) else [], f"entry {number}")
        for number, row in enumerate(rows, start=1)
    ]


def _step(row: Sequence[Any], where: str) -> Step:
    try:
        time, rate = map(float, row)
    except (TypeError, ValueError, OverflowError):
        time = rate = math.nan
    if not (math.isfinite(time) and math.isfinite(rate)):
        raise ValueError(f"{where}: expected a time in s and a rate in bit/s")
    return time, rate
