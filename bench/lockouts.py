"""Whom a full buffer locks out where nothing is noisy: crowds of equal flows in buffers of 10 to 30 packets.

`python bench/lockouts.py SCHEME [--jobs N]`

Sixty trials of 4 to 40 flows over 20 to 80 Mbit/s and 20 to 60 ms, drawn once, in two ways. Flows that begin at each
full second send their first packets when the timeouts of others end, of which no packet has arrived yet: after 1, 3, 7
and 15 s. The others begin .95 to 1.05 s after each other, the same time in a trial. A flow's share is its throughput
over its life, over the mean of all.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import arguments
import numpy as np
import policy_measures as measures
from policy_settings import Setting

from astraea.eval import metrics
from astraea.eval.measured import trial_data

TRIALS = 60
AFTER = 30
"""Seconds that a trial goes on after the last flow's turn."""

RATES_AND_RTTS = ([20, 40, 80], [20, 40, 60])
"""Mbit/s and ms."""


def _second(_: int) -> int:
    return 1000


def _about_a_second(seed: int) -> int:
    return 950 + seed * 37 % 100


STARTS = {"at each full second": _second, ".95 to 1.05 s apart": _about_a_second}
"""Time from one start to the next in ms, by the trial's seed."""


def settings(starts: str) -> list[Setting]:
    """The trials of one way to begin."""
    rng = np.random.default_rng(7)
    drawn = (
        rng.integers(4, 40, TRIALS),
        rng.integers(10, 30, TRIALS),
        *(rng.choice(x, TRIALS) for x in RATES_AND_RTTS),
    )
    found = []
    for seed, (count, buffer, rate, rtt) in enumerate(zip(*drawn, strict=True), start=1):
        life = f"{count + AFTER}s"
        link = {"rate": f"{rate}Mbps", "delay": f"{rtt / 2}ms", "buffer": f"{buffer}packets"}
        flow = {
            "count": int(count),
            "start": {"every": f"{STARTS[starts](seed)}ms"},
            "duration": life,
            "path": ["bottleneck"],
        }
        found.append(Setting("lockouts", "", {"duration": life, "link": {"bottleneck": link}, "flow": [flow]}, seed))
    return found


def trial(setting: Setting, cc: str) -> tuple[float, float, float]:
    """Jain's index, the share of packets dropped, and the least share of a flow."""
    resolved, result = measures.simulated(setting, cc)
    end = float(setting.raw["duration"].removesuffix("s")) * 1e9
    flows = result["flows"]
    rates = np.array([flow["delivered_bytes"] / (min(flow["end_ns"], end) - flow["start_ns"]) for flow in flows])
    lost = result["links"][0]["dropped_packets"] / sum(flow["sent_packets"] for flow in flows)
    jain = metrics.compute(trial_data(resolved, result))["jain"]
    assert jain is not None, "there are four flows at least"
    return jain, lost, float((rates / rates.mean()).min())


def main() -> None:
    """Print one line for each way to begin."""
    parser = argparse.ArgumentParser(description="Whom a full buffer locks out.")
    parser.add_argument("scheme")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="trials at the same time (default 2)")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs: expected at least 1")
    arguments.scheme(parser, options.scheme)
    with ProcessPoolExecutor(options.jobs) as pool:
        for starts in STARTS:
            found = np.array(list(pool.map(partial(trial, cc=options.scheme), settings(starts))))
            jain, lost, least = found.T
            print(
                f"{options.scheme}, starts {starts}: Jain {jain.mean():.3f}, least {jain.min():.3f}; "
                f"{100 * lost.mean():.1f} % lost; a flow with less than .05 of its share in {(least < 0.05).sum()} "
                f"trials, less than .2 in {(least < 0.2).sum()}"
            )


if __name__ == "__main__":
    main()
