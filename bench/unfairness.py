"""What a scheme's unfairness on the grids of policies.py is made of.

`python bench/unfairness.py SCHEME [--group validation-grid] [--seed-offset N ...] [--jobs N]`

Where two flows and more are there, each slot of Jain's index J has an unfairness 1/J - 1: the mean of (x - 1)^2 over
its flows, where x is a flow's throughput over the mean of all. The table says how much of it flows have in their first
second, the next one and so on, and how much those have that send more than twice the mean. What flows of five seconds
and more have is taken apart further: the mean of a flow over its life, what changes over more than three seconds, and
what changes faster; and the slope of those means over the logarithm of the round-trip time. Rows are the settings by
number of flows, and by packets of a fair share in a slot.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import arguments
import numpy as np
import policy_measures as measures
import policy_settings as settings
from ceiling import seconds

from astraea.eval.data import Floats, Mask, TrialData, alive
from astraea.eval.measured import trial_data
from astraea.eval.metrics import JAIN_NS

AGES = (0, 1, 2, 5)
"""Ages in s, of a flow at the beginning of a slot."""

OLD = AGES[-1]
SLOW = 6
"""Slots over which an average is taken to tell what changes slowly."""

FLOWS = (2, 5, 9, 17, 51)
PACKETS = (0, 20, 50, 200, 10**9)
"""Bounds of the rows."""


@dataclass(frozen=True)
class Parts:
    """Unfairness of one trial: averages over its slots with two flows and more."""

    flows: int
    packets: float
    """Of a fair share of all flows, in a slot."""
    jain: float
    ages: tuple[float, ...]
    greedy: float
    """Of flows that have more than twice the mean."""
    mean: float
    slow: float
    fast: float
    slope: float
    """Of the means over the logarithm of the round-trip time, NaN for fewer than four flows."""


def relative(data: TrialData) -> Floats:
    """Throughput over the mean of all, less 1 [flows, slots]; NaN where a flow is not there or there is no other."""
    width = JAIN_NS // data.slot_ns
    count = data.slots // width
    got = data.delivered[:, : count * width].reshape(len(data.flows), count, width).sum(axis=2).astype(float)
    there = alive(data.flows, np.arange(count + 1) * JAIN_NS)
    total, flows = np.where(there, got, 0).sum(axis=0), there.sum(axis=0)
    compared = there & (flows >= 2) & (total > 0)
    over: Floats = np.divide(got * flows, total, out=np.full_like(got, np.nan), where=compared)
    return over - 1


def parts(setting: settings.Setting, scheme: str) -> Parts | None:
    """The unfairness of a setting, None where no two flows meet."""
    data = trial_data(*measures.simulated(setting, scheme))
    x = relative(data)
    known = np.isfinite(x)
    slots = known.any(axis=0).sum()
    if not slots:
        return None
    weight = known / np.maximum(known.sum(axis=0), 1) / slots
    square = np.where(known, x, 0) ** 2 * weight
    start = np.array([flow.start_ns for flow in data.flows])[:, None] / 1e9
    age = np.arange(x.shape[1]) * JAIN_NS / 1e9 - start
    bounds = [*AGES, np.inf]
    ages = tuple(float(square[(age >= low) & (age < high)].sum()) for low, high in pairwise(bounds))
    link = setting.raw["link"]["bottleneck"]
    share = float(link["rate"].removesuffix("bps")) / 8 / settings.PACKET / len(data.flows)
    rtt = [2 * (seconds(link["delay"]) + seconds(flow["extra_delay"])) for flow in setting.raw["flow"]]
    mean, slow, fast, slope = _of_old_flows(x, weight, known & (age >= OLD), np.log(rtt))
    return Parts(
        flows=len(data.flows),
        packets=share * JAIN_NS / 1e9,
        jain=float(np.mean([1 / (1 + np.mean(column[np.isfinite(column)] ** 2)) for column in x.T[known.any(axis=0)]])),
        ages=ages,
        greedy=float(square[np.where(known, x, 0) > 1].sum()),
        mean=mean,
        slow=slow,
        fast=fast,
        slope=slope,
    )


def _of_old_flows(x: Floats, weight: Floats, old: Mask, log_rtt: Floats) -> tuple[float, float, float, float]:
    """Of flows that are old: the part of their means, of slow and of fast changes, and the slope of the means."""
    mean = slow = fast = 0.0
    means, places = [], []
    for flow, there in enumerate(old):
        if there.sum() < SLOW:
            continue
        own, part = x[flow, there], weight[flow, there].sum()
        rest = own - own.mean()
        slowly = np.mean(rest[: rest.size // SLOW * SLOW].reshape(-1, SLOW).mean(axis=1) ** 2)
        mean += part * own.mean() ** 2
        slow += part * slowly
        fast += part * max(np.mean(rest**2) - slowly, 0.0)
        means.append(own.mean())
        places.append(log_rtt[flow])
    slope = np.polyfit(places, means, 1)[0] if len(means) > 3 and np.ptp(places) > 0 else np.nan
    return float(mean), float(slow), float(fast), float(slope)


def rows(found: list[Parts]) -> Iterator[tuple[str, list[Parts]]]:
    """The lines of the table: what they are called, and whose averages they are."""
    yield "all", found
    for low, high in pairwise(FLOWS):
        yield f"{low} to {high - 1} flows", [each for each in found if low <= each.flows < high]
    for low, high in pairwise(PACKETS):
        name = f"{low} to {high} packets" if high < PACKETS[-1] else f"{low} packets and more"
        yield name, [each for each in found if low <= each.packets < high]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a scheme's unfairness on the grids is made of.")
    parser.add_argument("scheme")
    parser.add_argument("--group", choices=settings.GRIDS, default="validation-grid")
    parser.add_argument("--seed-offset", type=int, nargs="+", default=[0], metavar="N", help="other random draws")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="trials at the same time (default 2)")
    options = parser.parse_args()
    if min(options.seed_offset) < 0 or options.jobs < 1:
        parser.error("--seed-offset and --jobs: expected at least 0 and 1")
    arguments.scheme(parser, options.scheme)
    work = [setting for offset in options.seed_offset for setting in settings.GROUPS[options.group](offset)]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = [each for each in pool.map(partial(parts, scheme=options.scheme), work, chunksize=4) if each]
    ages = [f"{low}-{high} s" for low, high in pairwise(AGES)] + [f"{OLD} s on"]
    heads = ["settings", "Jain", *ages, "> twice", "means", "slow", "fast", "by RTT"]
    print(f"{'':22}" + "".join(f"{head:>9}" for head in heads))
    for name, some in rows(found):
        if not some:
            continue
        columns = np.array([[p.jain, *p.ages, p.greedy, p.mean, p.slow, p.fast] for p in some]).mean(axis=0)
        slopes = [p.slope for p in some if np.isfinite(p.slope)]
        slope = f"{np.mean(slopes):9.3f}" if slopes else f"{'':9}"
        print(f"{name:22}{len(some):9}" + "".join(f"{value:9.4f}" for value in columns) + slope)


if __name__ == "__main__":
    main()
