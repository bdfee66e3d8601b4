"""The inference service on this machine: `python bench/serve.py [--seconds S] [--rounds N] [--json]`.

Everything but the comparison is `astraea bench serve`, which starts a service of the full network (40-256-128-64-1) in
a process of its own and loads it from another. CPU time is that of the service, from /proc; a "core" is a second of it.
Each figure is the median of some rounds: unlike throughput, latency has no one-sided error.

Against ONNX Runtime: the same network on the mean batches that the service had, both evaluations alone on one thread,
in turns.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from astraea import _native, models
from astraea.host import program

POLICY = "astraea-paper"
"""The shipped policy with the full network."""

FLOODS = ("busy", "answered", "requests", "garbage")
"""What shares the machine with the load: a thread that only takes the processor time, and floods."""

PERIODIC = ("--period", "30ms", "--max-wait", "1")


def load(*arguments: str) -> dict[str, Any]:
    """One load."""
    command = [str(program()), "bench-serve", "--policy", POLICY, "--json", *arguments]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def median(rounds: list[dict[str, Any]], *path: str) -> float:
    """The median of a figure over the rounds."""

    def value(found: Any) -> float:
        for key in path:
            found = found[key]
        return float(found)

    return statistics.median(map(value, rounds))


def onnx(batch: int, seconds: float) -> dict[str, float]:
    """Microseconds per evaluation of a batch, the best of some rounds in turns."""
    import onnxruntime as ort

    from astraea.export import export

    policy = models.load(POLICY)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(export(policy, POLICY).content, options, providers=["CPUExecutionProvider"])
    states = np.random.default_rng(1).normal(size=(batch, policy.inputs)).astype(np.float32)

    def theirs() -> float:
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            for _ in range(20):
                session.run(None, {"states": states})
            done += 20
        return elapsed / done

    rounds = [(policy.bench(batch, max(1, int(seconds / 1e-4))), theirs()) for _ in range(15)]
    ours, other = (1e6 * min(times) for times in zip(*rounds, strict=True))
    return {"batch": batch, "astraea_us": ours, "onnxruntime_us": other, "ratio": other / ours}


def measure(seconds: float, repeat: int) -> dict[str, Any]:
    """Everything."""
    duration = ("--duration", f"{seconds}s")

    def rounds(*arguments: str) -> list[dict[str, Any]]:
        return [load(*duration, *arguments) for _ in range(repeat)]

    found: dict[str, Any] = {}
    busy = rounds("--period", "0", "--flows", "1000")
    found["throughput"] = {
        "decisions_per_s": median(busy, "decisions_per_s"),
        "decisions_per_core_s": median(busy, "decisions_per_cpu_s"),
        "mean_batch": median(busy, "mean_batch"),
    }
    cases = {
        "unix": (),
        "unix, 1000 connections": ("--connections", "1000"),
        "udp": ("--udp",),
        "unix, beside a flood": ("--flood",),
        "udp, service apart": ("--udp", "--apart"),
    }
    for kind in FLOODS:
        cases[f"udp, beside {kind}"] = ("--udp", "--flood", kind)
        cases[f"udp, service apart, beside {kind}"] = ("--udp", "--apart", "--flood", kind)
    for name, arguments in cases.items():
        periodic = rounds(*PERIODIC, "--flows", "1000", *arguments)
        found[f"1000 flows, {name}"] = {
            "p50_ms": median(periodic, "latency_ms", "p50"),
            "p99_ms": median(periodic, "latency_ms", "p99"),
            "p99_ms_of_rounds": [run["latency_ms"]["p99"] for run in periodic],
            "cpu_share": median(periodic, "cpu_share"),
            "mean_batch": median(periodic, "mean_batch"),
            "fallbacks": sum(run["fallbacks"] for run in periodic),
        }
        if "flood" in periodic[0]:
            found[f"1000 flows, {name}"]["flood_per_s"] = median(periodic, "flood", "sent") / seconds
    few = rounds(*PERIODIC, "--flows", "10")
    found["10 flows"] = {"p50_ms": median(few, "latency_ms", "p50"), "cpu_share": median(few, "cpu_share")}
    found["growth"] = found["1000 flows, unix"]["cpu_share"] / found["10 flows"]["cpu_share"]
    many = load("--flows", "100000", "--period", "5s", "--duration", "10s")
    found["100000 flows"] = {"memory_mb": many["memory_mb"], "memory_peak_mb": many["memory_peak_mb"]}
    if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        batches = (found["1000 flows, unix"]["mean_batch"], found["throughput"]["mean_batch"])
        found["onnxruntime"] = [onnx(round(batch), 0.05) for batch in batches]
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What was measured and what was aimed at (floor / goal)."""
    busy, flows = found["throughput"], found["1000 flows, unix"]
    table = [
        ("decisions/s per core", f"{busy['decisions_per_core_s']:.0f}", "200 000 / 500 000"),
        ("  at a mean batch of", f"{busy['mean_batch']:.0f}", ""),
        ("1000 flows at 30 ms: p50 / p99, ms", f"{flows['p50_ms']:.2f} / {flows['p99_ms']:.2f}", "1.5 / 4; 0.6 / 2"),
        ("  CPU, share of a core", f"{flows['cpu_share']:.3f}", "0.10 / 0.05"),
        ("  at a mean batch of", f"{flows['mean_batch']:.0f}", ""),
        ("growth of CPU from 10 to 1000 flows", f"{found['growth']:.1f}", "30 / 10"),
    ]
    for key, case in found.items():
        name = key.removeprefix("1000 flows, ")
        if name in (key, "unix"):
            continue
        figures = f"{case['p50_ms']:.2f} / {case['p99_ms']:.2f}; {case['cpu_share']:.3f}"
        table.append((f"1000 flows, {name}: p50 / p99, ms; CPU", figures, ""))
    table += [
        (
            f"network at a batch of {case['batch']}, onnxruntime / ours",
            f"{case['onnxruntime_us']:.1f} / {case['astraea_us']:.1f} us = {case['ratio']:.2f}",
            "0.8 / 1.2",
        )
        for case in found.get("onnxruntime", ())
    ]
    return [*table, ("memory at 100 000 flows, MB", f"{found['100000 flows']['memory_mb']:.0f}", "200 / 60")]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a load")
    parser.add_argument("--rounds", type=int, default=3, help="loads of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--out", type=Path, help="write JSON to this file as well")
    given = parser.parse_args()
    found = measure(given.seconds, given.rounds)
    facts = {"build": _native.build_profile, "cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    text = json.dumps(facts | {"python": platform.python_version(), "serve": found}, indent=2) + "\n"
    if given.out is not None:
        given.out.write_text(text)
    if given.json:
        sys.stdout.write(text)
        return
    table = Table("what", "measured", "floor / goal", box=None)
    for row in rows(found):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
