"""The simulator's figures, as JSON: `python bench/sim.py [ROUNDS]`.

Everything is measured in turns in one run, the best of ROUNDS rounds (default 5) each, in CPU seconds of one thread:
other work on the machine only ever takes away. ns-3 is left out, with a note, where it is not installed
(`bench/ns3/README.md`).
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from astraea import _native

NS3 = Path(__file__).parent / "ns3"
THREE_FLOWS_NS3 = ["--cc=cubic", "--rate=100", "--rtt-ms=30", "--buffer-packets=250", "--flows=3", "--stagger-s=40"]


def dumbbell(rate: float, rtt_ms: float, flows: list[dict[str, Any]], seconds: float, slot_ns: int = 0) -> str:
    """A drop-tail link with a buffer of one bandwidth-delay product, as the simulator's configuration."""
    link = {
        "name": "bottleneck",
        "rate": {"constant": rate},
        "delay": {"constant": round(rtt_ms * 5e5)},
        "limit": {"bytes": round(rate * rtt_ms / 8e3)},
    }
    flows = [{"path": [0], **flow} for flow in flows]
    return json.dumps({"duration_ns": round(seconds * 1e9), "slot_ns": slot_ns, "links": [link], "flows": flows})


def bulk(start_s: float = 0.0, duration_s: float | None = None, scheme: str = "cubic") -> dict[str, Any]:
    """A bulk flow."""
    stop = None if duration_s is None else round((start_s + duration_s) * 1e9)
    return {"scheme": {"name": scheme}, "start_ns": round(start_s * 1e9), "stop_ns": stop}


def many(flows: int, slot_ns: int = 0) -> str:
    """The scenario many-flows: 600 Mbit/s, 20 ms, starts spread over the first second."""
    return dumbbell(600e6, 20, [bulk(i / flows) for i in range(flows)], 30, slot_ns)


def three_flows(scheme: str = "cubic") -> str:
    """The scenario three-flows."""
    return dumbbell(100e6, 30, [bulk(40.0 * i, 120, scheme) for i in range(3)], 200)


PACED = {"scheme": {"name": "constant-rate", "params": {"rate": 95e6}}, "start_ns": 0}
WINDOW = {"scheme": {"name": "constant-window", "params": {"window": 400}}, "start_ns": 0}


def simulate(config: str) -> Callable[[], tuple[float, int]]:
    """A run of ours; returns CPU seconds and packets."""

    def run() -> tuple[float, int]:
        start = time.thread_time()
        _, _, packets, _ = _native.bench(config, 1)
        return time.thread_time() - start, packets

    return run


def simulate_ns3(*options: str) -> Callable[[], tuple[float, int]]:
    """A run of ns-3; returns CPU seconds of its event loop and no packets."""

    def run() -> tuple[float, int]:
        output = subprocess.run(
            [NS3 / "build" / "dumbbell", *THREE_FLOWS_NS3, *options], capture_output=True, check=True
        )
        return json.loads(output.stdout)["cost"]["user_cpu_s"], 0

    return run


def build_ns3() -> bool:
    """Builds the ns-3 program if ns-3 is installed."""
    return subprocess.run(["make", "-C", NS3], capture_output=True, check=False).returncode == 0


def peak_memory_mb(config: str) -> float:
    """Peak memory in MB that a run adds to a Python process with the native module alone."""
    code = (
        "import sys; from astraea import _native; config = sys.stdin.read();"
        "peak = lambda: next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM'));"
        "before = peak(); _native.bench(config, 1); print((peak() - before) / 1e3)"
    )
    output = subprocess.run([sys.executable, "-c", code], input=config, capture_output=True, text=True, check=True)
    return float(output.stdout)


def main() -> None:
    """Measures everything in turns and prints the best of each."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    work = {
        "three-flows": simulate(three_flows()),
        "one window-limited flow": simulate(dumbbell(100e6, 30, [WINDOW], 200)),
        "one paced flow": simulate(dumbbell(100e6, 30, [PACED], 200)),
        "10 flows": simulate(many(10)),
        "1000 flows": simulate(many(1000)),
    }
    if has_ns3 := build_ns3():
        work["ns-3"] = simulate_ns3("--duration-s=120")
        # Without access links its flows cannot stop early; the link carries the same packets.
        work["ns-3 without access links"] = simulate_ns3("--direct=true")
    schemes = [scheme["name"] for scheme in _native.schemes() if scheme["kind"] != "constant"]
    work |= {name: simulate(three_flows(name)) for name in schemes}
    taken = [{what: run() for what, run in work.items()} for _ in range(rounds)]
    best = {what: min(t[what] for t in taken) for what in work}
    cost = {what: seconds / packets * 1e9 for what, (seconds, packets) in best.items() if packets}
    speed = {what: 200 / best[what][0] for what in best if what.startswith(("three", "ns-3"))}
    result = {
        "astraea": _native.__version__,
        "build": _native.build_profile,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "rounds": rounds,
        "simulated_seconds_per_cpu_second": {what: round(value, 1) for what, value in speed.items()},
        "times_ns3": round(speed["three-flows"] / speed["ns-3"]) if has_ns3 else "ns-3 is not installed",
        "times_ns3_without_access_links": round(speed["three-flows"] / speed["ns-3 without access links"])
        if has_ns3
        else "ns-3 is not installed",
        "million_packets_per_cpu_second": {
            what: round(1e3 / value, 2) for what, value in cost.items() if what not in schemes
        },
        "three_flows_speed_over_cubic": {name: round(best["cubic"][0] / best[name][0], 2) for name in schemes},
        "cost_per_packet_1000_flows_over_10": round(cost["1000 flows"] / cost["10 flows"], 2),
        "peak_memory_mb_1000_flows": {
            "simulation": round(peak_memory_mb(many(1000)), 1),
            "with series of 10 ms for 30 s": round(peak_memory_mb(many(1000, 10_000_000)), 1),
        },
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
