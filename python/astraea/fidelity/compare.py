"""The differences between the two backends, and what share of the settings is close."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from astraea.fidelity.measure import Measured, Pair

RELATIVE = ("throughput_mbps", "queue_delay_ms", "queue_delay_p95_ms")
"""Compared as a share of what the kernel did."""

ABSOLUTE = ("loss", "jain")
"""Compared as a difference."""

BOUNDS = {"throughput_mbps": (0.03, 0.05), "queue_delay_ms": (0.10, 0.15), "queue_delay_p95_ms": (0.10, 0.15)}
"""Shares within which a setting counts as close."""


def compare(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Every pair's values and differences, and a summary over all settings and for each scheme."""
    entries = [_entry(pair) for pair in pairs]
    schemes = list(dict.fromkeys(entry["cc"] for entry in entries))
    return {
        "pairs": entries,
        "summary": {
            "all": _summary(entries),
            **{cc: _summary([entry for entry in entries if entry["cc"] == cc]) for cc in schemes},
        },
    }


def _entry(pair: Pair) -> dict[str, Any]:
    sim, kernel = _means(pair.sim), _means(pair.kernel)
    difference: dict[str, float | None] = {name: _relative(sim[name], kernel[name]) for name in RELATIVE}
    difference |= {name: _minus(sim[name], kernel[name]) for name in ABSOLUTE}
    late = [trial["emulation"]["lateness_p999_ns"] or 0 for trial in pair.kernel.trials]
    return {
        "setting": pair.setting.name,
        "cc": pair.cc,
        "sim": sim,
        pair.backend: kernel,
        "difference": difference,
        "trials": {"sim": len(pair.sim.trials), pair.backend: len(pair.kernel.trials)},
        "unfaithful": sum(trial["unfaithful"] for trial in pair.kernel.trials),
        "lateness_p999_ms": max(late) / 1e6,
    }


def _means(measured: Measured) -> dict[str, float | None]:
    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    trials = measured.trials
    found = {"throughput_mbps": mean(_throughput(trial) for trial in trials)}
    for name in ("queue_delay_ms", "queue_delay_p95_ms", "loss", "jain"):
        found[name] = mean(trial["metrics"][name] for trial in trials)
    return found


def _throughput(trial: dict[str, Any]) -> float:
    """Payload in Mbit/s that all flows together delivered over the whole trial."""
    delivered = sum(flow["delivered_bytes"] for flow in trial["flows"])
    return float(delivered * 8 / (trial["duration_ns"] / 1e9) / 1e6)


def _relative(sim: float | None, kernel: float | None) -> float | None:
    return None if sim is None or not kernel else sim / kernel - 1


def _minus(sim: float | None, kernel: float | None) -> float | None:
    return None if sim is None or kernel is None else sim - kernel


def _summary(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"pairs": len(entries), "unfaithful": sum(entry["unfaithful"] > 0 for entry in entries)}
    for name, bounds in BOUNDS.items():
        sizes = [abs(value) for entry in entries if (value := entry["difference"][name]) is not None]
        if sizes:
            summary[name] = {
                "median": float(np.median(sizes)),
                "largest": max(sizes),
                "within": {f"{bound:g}": float(np.mean([size <= bound for size in sizes])) for bound in bounds},
            }
    return summary
