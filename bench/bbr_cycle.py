"""BBR's ProbeBW cycle here and in this kernel, as JSON: `sudo python bench/bbr_cycle.py [--seconds S] [--json FILE]`.

One `bbr` flow alone on a link, in the simulator and as this kernel's own `bbr` over an emulated link (`--backend
kernel`), 40 s each. Its pacing rate, sampled every 10 ms (the kernel's by TCP_INFO), shows the cycle: a phase above the
rate of cruising, one below, six at it. Phases are averaged over all whole cycles without ProbeRTT. Target: throughput,
round-trip time and cycle within 5 % of the kernel's.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

SETTINGS = ((20, 60), (50, 40), (50, 100), (100, 30))
"""Rate in Mbit/s and round-trip time in ms."""

SLOT = 0.01
"""Between two samples, in s."""

WARM_UP = 5.0
"""What is left out at the beginning, in s."""

SCENARIO = """
duration = "{seconds}s"
record = "10ms"
[link.bottleneck]
rate = "{rate}Mbps"
delay = "{delay}ms"
buffer = "4bdp"
[[flow]]
path = ["bottleneck"]
"""


def cycle(series: pl.DataFrame) -> dict[str, float]:
    """What the samples of one flow say of its cycles."""
    late = series.filter(pl.col("t") >= WARM_UP)
    pacing, window = (late[name].to_numpy() for name in ("pacing", "cwnd"))
    # Six of eight phases cruise.
    gain = pacing / np.median(pacing)
    phase = np.where(gain > 1.1, 1, np.where(gain < 0.9, -1, 0))
    runs, start = [], 0
    for kind, run in groupby(phase.tolist()):
        length = len(list(run))
        runs.append((kind, start, length))
        start += length
    probes = [(at, length) for kind, at, length in runs if kind == 1]
    # A cycle with ProbeRTT is longer, and its window gives it away.
    small = window < np.median(window) / 2
    whole = [(at, length, end) for (at, length), (end, _) in pairwise(probes) if not small[at:end].any()]
    inside = {at for at, _, end in whole for at in range(at, end)}
    drains = [length for kind, at, length in runs if kind == -1 and at in inside]
    return {
        "throughput_mbps": float(late["throughput"].to_numpy().mean()),
        "rtt_ms": float(np.nanmean(late["rtt"].to_numpy())),
        "cycles": len(whole),
        "cycle_ms": 1e3 * SLOT * float(np.mean([end - at for at, _, end in whole])),
        "up_ms": 1e3 * SLOT * float(np.mean([length for _, length, _ in whole])),
        "down_ms": 1e3 * SLOT * float(np.mean(drains)),
        "up_gain": float(np.median(gain[phase == 1])),
        "down_gain": float(np.median(gain[phase == -1])),
    }


def measure(rate: int, rtt: int, seconds: int, backend: str) -> dict[str, float]:
    """One flow on one link."""
    with tempfile.TemporaryDirectory(prefix="astraea-") as scratch:
        scenario = Path(scratch, "bbr.toml")
        scenario.write_text(SCENARIO.format(seconds=seconds, rate=rate, delay=rtt / 2))
        program = Path(sys.executable).with_name("astraea")
        command: list[str | Path] = [program, "run", scenario, "--cc", "bbr", "--trials", "1"]
        subprocess.run([*command, "--backend", backend, "--no-report", "-q", "-o", scratch], check=True)
        return cycle(pl.read_parquet(Path(scratch, "series.parquet")))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=40, help="length of a trial")
    parser.add_argument("--json", type=Path, help="write JSON to this file as well")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for rate, rtt in SETTINGS:
        ours, theirs = (measure(rate, rtt, given.seconds, backend) for backend in ("sim", "kernel"))
        difference = {name: ours[name] / theirs[name] - 1 for name in ours if name != "cycles"}
        found[f"{rate} Mbit/s, {rtt} ms"] = {"simulator": ours, "kernel": theirs, "difference": difference}
    text = json.dumps({"kernel": platform.release(), "settings": found}, indent=1) + "\n"
    if given.json is not None:
        given.json.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
