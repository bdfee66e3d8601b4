"""What Jain's index could be on the grids and the training range of policies.py.

`python bench/ceiling.py [--seed-offset N]`

A fluid sender that knows everything: a newcomer sends ten packets in its first round trip and doubles until it has its
fair share, and the others make room at once and share what is left. What a scheme lacks of it is a matter of control.
"""

import argparse

import numpy as np
import policy_settings as settings

from astraea.eval.metrics import JAIN_NS, jain_index

STEP = 0.01
"""Time step in s."""

WINDOW = 10
"""Packets in the first round trip (RFC 6928)."""


def seconds(value: str) -> float:
    """A time as the grids write it."""
    return float(value.removesuffix("ns")) / 1e9


def ceiling(raw: settings.Raw) -> float | None:
    """Jain's index of a setting, None where no two flows meet."""
    link = raw["link"]["bottleneck"]
    capacity = float(link["rate"].removesuffix("bps")) / 8 / settings.PACKET
    rtt = np.array([2 * (seconds(link["delay"]) + seconds(flow["extra_delay"])) for flow in raw["flow"]])
    start = np.array([seconds(flow["start"]) for flow in raw["flow"]])
    end = np.minimum(start + [seconds(flow["duration"]) for flow in raw["flow"]], seconds(raw["duration"]))
    times = np.arange(0, seconds(raw["duration"]), STEP)
    rates = np.stack([_shares(capacity, start, end, rtt, time + STEP / 2) for time in times], axis=1)
    width = round(JAIN_NS / 1e9 / STEP)
    indices = []
    for slot in range(len(times) // width):
        first = slot * width * STEP
        got = rates[(start <= first) & (end >= first + width * STEP), slot * width : (slot + 1) * width].sum(axis=1)
        if got.size >= 2 and got.any():
            indices.append(jain_index(got))
    return float(np.mean(indices)) if indices else None


def _shares(capacity: float, start: np.ndarray, end: np.ndarray, rtt: np.ndarray, time: float) -> np.ndarray:
    """Max-min fair rates (packets/s) at a time, with what slow start allows as the most that a flow can take."""
    rounds = np.clip((time - start) // rtt, 0, 60)
    most = np.where((start <= time) & (time < end), WINDOW * 2**rounds / rtt, 0.0)
    rates = np.zeros_like(most)
    active = np.flatnonzero(most)
    left = capacity
    for rank, flow in enumerate(active[np.argsort(most[active])]):
        rates[flow] = min(most[flow], left / (active.size - rank))
        left -= rates[flow]
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description="What Jain's index could be on the grids and the training range.")
    parser.add_argument("--seed-offset", type=int, default=0, metavar="N", help="other random draws")
    offset = parser.parse_args().seed_offset
    for name in ("training-range", *settings.GRIDS):
        found = [index for setting in settings.GROUPS[name](offset) if (index := ceiling(setting.raw)) is not None]
        tenth = np.percentile(found, 10)
        print(f"{name:16} mean {np.mean(found):.4f}  10th percentile {tenth:.4f}  min {np.min(found):.4f}")


if __name__ == "__main__":
    main()
