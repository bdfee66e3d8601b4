"""Three-flows with a policy, beside the paper's figures: `python bench/train_demo.py SCHEME [UNTRAINED]`.

Ten trials of the shipped scenario with jittered starts; SCHEME is what `astraea run --cc` takes, and UNTRAINED another
one, of which the same is shown: what the form of the policy does before anything is learnt. `make train` ends so. The
paper measured over an emulated link and leaves open how; docs/metrics.md says what is measured here.
"""

import sys

import astraea
from astraea.errors import UserError

PAPER = (
    ("Jain's index", "jain", 0.991, True),
    ("first convergence, s", "convergence_first_s", 0.408, False),
    ("stability, Mbit/s", "stability_mbps", 2.12, False),
)
"""Label, the metric of docs/metrics.md that is nearest, the paper's figure (EuroSys 2024), whether more is better."""

OURS = (
    ("settling, s", "convergence_settle_s"),
    ("utilization", "utilization"),
    ("queueing delay, ms", "queue_delay_ms"),
)
"""Label and metric of what is shown without a figure of the paper's beside it."""


Means = dict[str, dict[str, float | None]]
"""A scheme's part of `Results.summary`; a metric that no trial defines is not in it."""


def lines(found: Means, untrained: Means | None = None) -> list[str]:
    """The table."""

    def row(label: str, metric: str) -> str:
        shown = [found] if untrained is None else [found, untrained]
        return f"{label:34}" + "".join(_number(_mean(means, metric)) for means in shown)

    heads = ["measured"] if untrained is None else ["trained", "untrained"]
    table = [f"{'three-flows, mean of the trials':34}" + "".join(f"{head:>10}" for head in heads) + f"{'paper':>8}"]
    for label, metric, paper, more in PAPER:
        value = _mean(found, metric)
        if value is None:  # no arrival settled, say
            verdict = "no figure"
        elif value == paper:
            verdict = "equal"
        else:
            verdict = "better" if (value > paper) == more else "worse"
        table.append(f"{row(label, metric)}{paper:8.3f}  {verdict}")
    return table + [row(label, metric) for label, metric in OURS]


def _mean(means: Means, metric: str) -> float | None:
    return means.get(metric, {}).get("mean")


def _number(value: float | None) -> str:
    return f"{'none':>10}" if value is None else f"{value:10.4f}"


def main() -> int:
    """The command line."""
    if not 2 <= len(sys.argv) <= 3:
        print("usage: python bench/train_demo.py SCHEME [UNTRAINED]", file=sys.stderr)
        return 2
    try:
        summaries = [astraea.run("three-flows", cc=scheme).summary for scheme in sys.argv[1:]]
    except UserError as error:
        print(f"train_demo: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines(*(found for summary in summaries for found in summary.values()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
