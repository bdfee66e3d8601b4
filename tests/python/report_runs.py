"""Synthetic run directories for the tests of the report. Nothing here was measured or simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

SLOT = 0.01
LABELS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")


def staggered(flows: int = 3, apart: float = 40.0, each: float = 120.0) -> list[tuple[float, float]]:
    """Lives of flows that start one after the other."""
    return [(i * apart, i * apart + each) for i in range(flows)]


def write_run(
    directory: Path,
    *,
    title: str = "Three flows, 40 s apart",
    schemes: Sequence[str] = LABELS[:3],
    trials: int = 3,
    lives: Sequence[tuple[float, float]] = (),
    capacity: Callable[[np.ndarray], np.ndarray] | float = 100.0,
    scenario: dict[str, Any] | None = None,
    completions: bool = False,
    series: bool = True,
    links: bool = True,
    points: Sequence[tuple[str, dict[str, Any]]] = (("", {}),),
) -> Path:
    """Write results.json, series.parquet and links.parquet with invented but plausible curves."""
    directory.mkdir(parents=True, exist_ok=True)
    lives = list(lives) or staggered()
    t = np.arange(0, max(end for _, end in lives), SLOT)
    rate = capacity(t) if callable(capacity) else np.full_like(t, capacity)
    entries, rows, link_rows, done = [], [], [], []
    for number, cc in enumerate(schemes):
        for trial in range(trials * len(points)):
            rng = np.random.default_rng([number, trial])
            x, wait = _curves(t, rate, lives, number, rng)
            rows += [
                pl.DataFrame(
                    {
                        "trial": np.full(len(t), trial, np.int32),
                        "cc": [cc] * len(t),
                        "flow": np.full(len(t), flow, np.int32),
                        "t": t,
                        "throughput": x[flow],
                        "rtt": 30 + wait,
                        "cwnd": x[flow] / 4,
                        "pacing": x[flow] * 1.2,
                        "inflight": x[flow] / 5,
                        "loss": np.zeros_like(t),
                    }
                ).filter((pl.col("t") >= start) & (pl.col("t") < end))
                for flow, (start, end) in enumerate(lives)
            ]
            link_rows.append(
                pl.DataFrame(
                    {
                        "trial": np.full(len(t), trial, np.int32),
                        "cc": [cc] * len(t),
                        "link": ["bottleneck"] * len(t),
                        "t": t,
                        "queue_delay": wait,
                        "delivered": x.sum(axis=0),
                        "dropped": np.zeros_like(t),
                        "capacity": rate,
                    }
                )
            )
            if completions:
                done.append(_completions(rng, number, cc, trial))
            entries.append(
                {
                    "trial": trial,
                    "cc": cc,
                    "point": points[trial // trials][1],
                    "point_index": trial // trials,
                    "seed": trial % trials + 1,
                    "metrics": _metrics(number, rng, completions, len(lives)),
                    "flows": [
                        {
                            "cc": cc,
                            "start_ns": round(start * 1e9),
                            "end_ns": round(end * 1e9),
                            "path": ["bottleneck"],
                        }
                        for start, end in lives
                    ],
                    "links": [],
                }
            )
    if series:
        pl.concat(rows).write_parquet(directory / "series.parquet")
    if done:
        pl.concat(done).write_parquet(directory / "completions.parquet")
    if links:
        pl.concat(link_rows).write_parquet(directory / "links.parquet")
    results = {
        "schema": 1,
        "astraea_version": "0.0.0",
        "command": f"astraea run synthetic --cc {','.join(schemes)} --trials {trials}",
        "scenario": {"title": title, **(scenario or SCENARIO)},
        "backend": "synthetic",
        "host": {"os": "none", "cpus": 0},
        "trials": entries,
        "points": [
            {
                "label": label,
                "values": values,
                "summary": {
                    cc: _summary([e["metrics"] for e in entries if e["cc"] == cc and e["point_index"] == index])
                    for cc in schemes
                },
            }
            for index, (label, values) in enumerate(points)
        ],
        "summary": {cc: _summary([e["metrics"] for e in entries if e["cc"] == cc]) for cc in schemes},
    }
    (directory / "results.json").write_text(json.dumps(results))
    return directory


SCENARIO: dict[str, Any] = {
    "source": "no paper: synthetic",
    "link": {"bottleneck": {"rate": "100Mbps", "delay": "15ms", "buffer": "1bdp", "queue": {"kind": "droptail"}}},
    "flow": [
        {
            "count": 3,
            "start": {"every": "40s", "jitter": "30ms"},
            "duration": "120s",
            "source": {"kind": "bulk"},
        }
    ],
}


def _curves(
    t: np.ndarray, rate: np.ndarray, lives: Sequence[tuple[float, float]], number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Throughput of each flow (Mbit/s) and waiting time (ms): shares drift to fair ones, with a saw tooth."""
    tau, wobble = 0.5 + 2.2 * (number % 5), 0.04 + 0.07 * ((number * 3) % 5)
    weight = np.zeros((len(lives), len(t)))
    for flow, (start, end) in enumerate(lives):
        active = (t >= start) & (t < end)
        period = 4 + 3 * rng.random()
        saw = ((t - start) / period + rng.random()) % 1 - 0.5
        grown = 1 - np.exp(-(t - start).clip(0) / tau)
        weight[flow] = active * grown * (1 + wobble * 2 * saw + 0.1 * rng.standard_normal(len(t)))
    total = weight.sum(axis=0)
    share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    wait = (
        (total > 0)
        * rng.uniform(5, 7)
        * (number + 1)
        * (1 + 0.1 * (weight > 0).sum(axis=0))
        * (0.75 + 0.5 * ((t / (3 + number)) % 1))
    )
    return share * rate * (0.99 - 0.01 * number), wait + 0.3 * rng.random(len(t))


def _completions(rng: np.random.Generator, number: int, cc: str, trial: int) -> pl.DataFrame:
    start, time = np.sort(rng.uniform(0, 100, 60)), 0.05 + rng.gamma(2, 0.1 + 0.05 * number, 60)
    table = pl.DataFrame({"start": start, "time": time})
    return table.with_columns(trial=pl.lit(trial, pl.Int32), cc=pl.lit(cc), flow=pl.lit(0, pl.Int32))


def _metrics(number: int, rng: np.random.Generator, completions: bool, flows: int) -> dict[str, float | None]:
    noise = lambda scale: float(rng.normal(0, scale))  # noqa: E731
    several = flows > 1
    return {
        "jain": 0.995 - 0.03 * number + noise(0.003) if several else None,
        "jain_p10": 0.97 - 0.06 * number + noise(0.01) if several else None,
        "convergence_first_s": 0.4 + 1.1 * number + abs(noise(0.1)) if several else None,
        "convergence_settle_s": 1.2 + 4.0 * number + abs(noise(0.5)) if several else None,
        "unsettled_events": float(max(0, number - 1)) if several else None,
        "stability_mbps": 2.0 + 3.0 * ((number * 3) % 5) + abs(noise(0.3)) if several else None,
        "utilization": 0.98 - 0.01 * number + noise(0.006),
        "queue_delay_ms": 6.0 * (number + 1) + noise(0.2),
        "queue_delay_p95_ms": 7.4 * (number + 1) + noise(0.3),
        "rtt_inflation": 1.2 + 0.2 * number + noise(0.01),
        "loss": 0.0001 * number,
        "fct_s": 0.3 + 0.1 * number + noise(0.01) if completions else None,
        "fct_p99_s": 1.0 + 0.2 * number + noise(0.03) if completions else None,
        "throughput_ratio": None,
    }


def _summary(metrics: list[dict[str, float | None]]) -> dict[str, dict[str, float | None]]:
    """Without a real bootstrap; metrics without values are left out, one value has no interval."""
    summary: dict[str, dict[str, float | None]] = {}
    for name in metrics[0]:
        values = [value for entry in metrics if (value := entry[name]) is not None]
        if values:
            mean, half = float(np.mean(values)), float(np.std(values)) if len(values) > 1 else None
            low, high = (None, None) if half is None else (mean - half, mean + half)
            summary[name] = {"mean": mean, "low": low, "high": high, "n": len(values)}
    return summary
