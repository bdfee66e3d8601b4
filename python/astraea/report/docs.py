"""Writes docs/metrics.md from the glossary: `python -m astraea.report.docs > docs/metrics.md`."""

from __future__ import annotations

import sys

from astraea.report.glossary import METRICS

BEFORE = """\
# Metrics

<!-- Generated from the glossary of reports by `python -m astraea.report.docs`; do not edit. -->

Every backend is measured with the same code, `python/astraea/eval/metrics.py`, whose tests work each answer out by
hand.

The throughput of a flow is goodput: payload bytes that leave the last queue of its path, each counted once. (On
emulated links, which cannot tell, a packet that TCP sent again for nothing counts twice.) Capacities are counted the
same way, 1448 of 1500 bytes, so that a saturated link has the utilization 1. Series are recorded in slots of 10 ms,
or of what the scenario's `record` says.

The fair share of a flow is max-min fair over the topology: computed from the capacities and from which flows are
active, anew whenever a flow comes or goes or a capacity changes.

Units are those of results.json; tables and reports show shares in percent.

"""

AFTER = """
What the definitions leave open is settled like this:

* Jain's index is taken of throughput / fair share. With one bottleneck this is the usual index; with several it is 1
  for the fair allocation, whose shares are not equal there. Slots in which nothing could be sent, or nothing
  was, are left out.
* Arrivals and departures less than 100 ms after the first of a group are one event, at the time of the last: the
  slots in which convergence is seen are no finer, and flows that start together do so within a jitter. The departure
  of the last flow is no event, nor is the end of the scenario.
* The slots of an event are counted from the first whole slot after it. A flow that does not reach its fair share
  before the next event counts the time to that event, in `convergence_first_s` as in `convergence_settle_s`. Before
  the start of the scenario nothing was delivered, which matters to the trailing means of its first half second.
* Where flows pause (sources `on_off`, `poisson`, `periodic`) nobody has a fair share to converge to: no fairness,
  convergence or stability is reported.
* With several links, `utilization` and the queueing delays are those of the bottlenecks, the links which the max-min
  fair allocation fills: what the flows across them delivered, summed, over their capacity, summed.
* The base RTT is defined in [the scenario format](scenario-format.md): propagation alone.

A metric that a trial does not define (Jain's index of one flow, the completion time of a flow without end) is null in
results.json. Means over trials come with a 95 % interval by Student's t and the number of trials that define the
metric. Fewer than three have no interval. Few trials that differ much give a wide one, which may reach beyond what
the metric can be.

Over the points of a sweep the mean is that of all trials of all points, and the interval is of this mean. Each point
has a variance of its own, from which the degrees of freedom follow (Welch 1947), and all points need three trials.
Differences between points do not widen the interval.
"""

BEST = {"high": "high", "low": "low", "one": "near 1", "unknown": ""}
"""Which value is best, in words."""


def text() -> str:
    """The whole page."""
    lines = ["| name | unit | best | definition |", "| --- | --- | --- | --- |"]
    lines += [f"| `{item.name}` | {item.recorded_unit} | {BEST[item.better]} | {item.definition} |" for item in METRICS]
    return BEFORE + "\n".join(lines) + "\n" + AFTER


if __name__ == "__main__":
    sys.stdout.write(text())
