"""How much of a link schemes fill where packets are lost at random: 2 %, the most that the default policy was made for,
and more.

`python bench/random_loss.py SCHEME[,SCHEME...] [--loss PERCENT ...] [--jobs N]`

One flow, and three that begin 2 s apart, on 20, 100 and 500 Mbit/s with round trips of 20 and 80 ms and one
bandwidth-delay product of buffer; utilization of 60 s, mean of three seeds. A row for each scheme, share and number.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import arguments
import policy_measures as measures
from policy_settings import Setting

from astraea.eval import metrics
from astraea.eval.measured import trial_data

LINKS = [(rate, rtt) for rate in (20, 100, 500) for rtt in (20, 80)]
"""Mbit/s and ms."""

FLOWS = (1, 3)
SEEDS = (1, 2, 3)


def setting(link: tuple[int, int], flows: int, loss: float, seed: int) -> Setting:
    """One trial; `loss` in per cent."""
    rate, rtt = link
    bottleneck = {"rate": f"{rate}Mbps", "delay": f"{rtt / 2}ms", "buffer": "1bdp", "loss": loss / 100}
    flow = {"count": flows, "start": {"every": "2s"}, "path": ["bottleneck"]}
    return Setting("random-loss", "", {"duration": "60s", "link": {"bottleneck": bottleneck}, "flow": [flow]}, seed)


def utilization(trial: Setting, cc: str) -> float:
    """Of the link, from the first flow's start on."""
    used = metrics.compute(trial_data(*measures.simulated(trial, cc)))["utilization"]
    assert used is not None, "there is a link"
    return used


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description="How much of a lossy link schemes fill.")
    parser.add_argument("schemes", help="schemes, separated by commas")
    parser.add_argument("--loss", type=float, nargs="+", default=[2, 3, 5, 10], metavar="PERCENT")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="trials at the same time (default 2)")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs: expected at least 1")
    if not all(0 <= loss <= 50 for loss in options.loss):
        parser.error("--loss: expected 0 to 50")
    schemes = arguments.schemes(parser, options.schemes)
    print("| scheme | lost, % | flows | " + " | ".join(f"{rate} Mbit/s, {rtt} ms" for rate, rtt in LINKS) + " |")
    print("| --- " * (3 + len(LINKS)) + "|")
    with ProcessPoolExecutor(options.jobs) as pool:
        for scheme in schemes:
            for loss in options.loss:
                for flows in FLOWS:
                    trials = [setting(link, flows, loss, seed) for link in LINKS for seed in SEEDS]
                    used = list(pool.map(partial(utilization, cc=scheme), trials))
                    means = [sum(used[k : k + len(SEEDS)]) / len(SEEDS) for k in range(0, len(used), len(SEEDS))]
                    row = [scheme, f"{loss:g}", str(flows), *(f"{mean:.3f}" for mean in means)]
                    print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
