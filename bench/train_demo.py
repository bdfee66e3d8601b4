"""Three-flows with a policy, beside what the paper reports for its own: `python bench/train_demo.py SCHEME`.

Ten trials of the shipped scenario with jittered starts; SCHEME is what `astraea run --cc` takes. `make train` ends so.
The paper measured over an emulated link and leaves open how; docs/metrics.md says what is measured here.
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


def lines(found: dict[str, dict[str, float | None]]) -> list[str]:
    """The table, from a scheme's part of `Results.summary`."""
    table = [f"{'three-flows, mean of the trials':34}{'measured':>10}{'paper':>8}"]
    for label, metric, paper, more in PAPER:
        value = found[metric]["mean"]
        if value is None:  # no arrival settled, say
            verdict = "no figure"
        elif value == paper:
            verdict = "equal"
        else:
            verdict = "better" if (value > paper) == more else "worse"
        table.append(f"{label:34}{_number(value)}{paper:8.3f}  {verdict}")
    return table + [f"{label:34}{_number(found[metric]['mean'])}" for label, metric in OURS]


def _number(value: float | None) -> str:
    return f"{'none':>10}" if value is None else f"{value:10.4f}"


def main() -> int:
    """The command line."""
    if len(sys.argv) != 2:
        print("usage: python bench/train_demo.py SCHEME", file=sys.stderr)
        return 2
    try:
        results = astraea.run("three-flows", cc=sys.argv[1])
    except UserError as error:
        print(f"train_demo: {error}", file=sys.stderr)
        return 2
    (found,) = results.summary.values()
    print("\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
