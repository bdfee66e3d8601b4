"""How good schemes are, against targets: `python bench/policies.py SCHEME[,SCHEME...] [--only GROUP,...]`.

A scheme is what `astraea run --cc` takes. For each, one table: measured, floor, goal and which of them is met. Metrics
are those of docs/metrics.md. Groups:

three-flows      the shipped scenario, 10 trials with jittered starts. "kept until next": share of events (arrivals and
                 departures) from whose settling on all flows stay within 10 % of their fair share until the next event;
                 "settled at the end": they are so during the last second before it at least, whatever was in between
training-range   32 settings drawn over Astraea's table 3: 40 to 160 Mbit/s, 10 to 140 ms, .1 to 16 BDP, 2 to 5 flows,
                 Poisson arrivals 4 s apart on average, half with different RTTs, in 30 % some flows depart; 120 s
test-grid        64 settings drawn over the declared domain: 5 to 1000 Mbit/s, 5 to 300 ms, 1 to 50 flows, buffers of .1
                 to 16 BDP (5 packets at least), all log-uniform; half with different RTTs, 30 % with random loss to
                 2 %, half with ACK jitter to 5 ms, a quarter with ACKs in bunches 1 to 10 ms apart, 20 % with CoDel;
                 Poisson arrivals, .3 to 8 s apart on average; in 30 % some flows depart; 60 s. Where path and buffer
                 hold fewer than four packets per flow the setting is drawn again. Only measured if named in --only
validation-grid  as test-grid from another seed: for choosing between policies. Only if named
rtt-fairness     the shipped scenario (five flows, 40 to 200 ms), 5 trials
many             600 Mbit/s, 20 ms, 10, 20 and 50 flows whose starts are 1 s apart and that stay until 30 s after the
                 last start; 5 trials
neighbours       one flow beside 1, 2, 4 CUBIC and 1, 2, 4 BBR flows for 100 s, 100 Mbit/s, 30 ms, 1 BDP: its
                 throughput / their mean, 10 trials; then the share of the link it has 5 to 25 s after they have left
deep-buffers     the same beside 1 and 4 of them with a buffer of 4 BDP, where a test finds it harder to tell who
                 fills the queue; 5 trials, no targets
small-buffers    2, 5 and 9 flows that start 2 s apart and last 40 s, on six links of 30 to 300 Mbit/s and 6 to 24 ms
                 with buffers of 9 to 40 kB; 3 trials, no targets
tiny-buffers     48 settings drawn over 20 to 300 Mbit/s, 4 to 20 ms (half mixed), 2 to 5 flows, buffers of 5 to 12
                 packets; 40 s, no targets
short-flows      the shipped scenario (two long flows, a new one of 100 kB every second): utilization; 5 trials
applications     a flow whose application sends now and then, alone and beside one that always does: messages (Poisson,
                 a fifth and a half of the link), chunks every 2 s (two fifths), a stream of small messages (two
                 fifths), 1 s on and 1 s off, on four links of 10 to 100 Mbit/s and 10 to 100 ms; 3 trials of 40 s, no
                 targets
uploads          a download on 20 Mbit/s and 30 ms whose acknowledgements share 20, 5 and 1 Mbit/s (100 packets of
                 buffer) with an upload under CUBIC or BBR from 5 s on: share of its link from 10 s on; 3 trials of
                 60 s, no targets
jitter           three-flows with ACKs delayed by up to 2 and 5 ms (ack-jitter): utilization; 5 trials
loss             three-flows, and its first flow alone, with 1 % random loss: utilization; 5 trials
changing         the shipped scenario changing-path (capacity and base RTT drawn anew together every 10 s, 5 to 100
                 Mbit/s, 20 to 200 ms, buffer 1 BDP of the means), 10 trials: utilization, and mean RTT over packets /
                 mean base RTT when they arrive ("over time": every 10 ms of every flow counts the same)
satellite        the shipped scenario (42 Mbit/s, 800 ms, .74 % loss), 5 trials

Utilization includes the start of the first flow. Means are over trials (grids: settings; one with a single flow has no
Jain's index). Trial k of a group has the seed OFFSET + k + 1; another offset also draws other grids.
"""

import argparse
import json
import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import arguments
import policy_measures as measures
import policy_settings as settings

from astraea import _native


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measures schemes against their targets.")
    parser.add_argument("schemes", help="schemes, separated by commas")
    parser.add_argument("--only", metavar="GROUP,...", help="groups to measure; without it all but the two grids")
    parser.add_argument("--seed-offset", type=int, default=0, metavar="N", help="other random draws")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured to a file")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="trials at the same time (default 2)")
    parser.add_argument(
        "--clock-error",
        type=float,
        default=0.0,
        metavar="S",
        help="hosts' clocks differ by random times up to so many s",
    )
    options = parser.parse_args()
    groups = options.only.split(",") if options.only else [g for g in settings.GROUPS if g not in settings.GRIDS]
    if unknown := [group for group in groups if group not in settings.GROUPS]:
        parser.error(f"unknown group {unknown[0]}; expected some of {', '.join(settings.GROUPS)}")
    if options.seed_offset < 0 or options.jobs < 1:
        parser.error("--seed-offset and --jobs: expected at least 0 and 1")
    if not 0 <= options.clock_error <= 60:
        parser.error("--clock-error: expected 0 to 60 s")
    schemes = arguments.schemes(parser, options.schemes)
    written = {
        "astraea_version": _native.__version__,
        "seed_offset": options.seed_offset,
        "clock_error": options.clock_error,
        "schemes": {scheme: _scheme(scheme, groups, options) for scheme in schemes},
    }
    if options.json:
        options.json.write_text(json.dumps(written, indent=1) + "\n")
    return 0


def _scheme(scheme: str, groups: list[str], options: argparse.Namespace) -> dict[str, object]:
    """Measure one scheme and print its table."""
    work = [setting for group in groups for setting in settings.GROUPS[group](options.seed_offset)]
    begun = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        measured = list(pool.map(lambda setting: measures.measure(setting, scheme, options.clock_error), work))
    taken = time.monotonic() - begun
    rows = []
    for row in measures.rows(pure="pure" in Path(scheme).stem):
        trials = [(s.case, found) for s, found in zip(work, measured, strict=True) if s.group == row.group]
        if trials:
            value = row.value(trials)
            rows.append((row, value, row.mark(value)))
    _print(f"{scheme} ({len(work)} trials, {taken:.0f} s)", rows)
    return {
        "rows": [
            {
                "group": row.group,
                "what": row.what,
                "value": None if math.isnan(value) else value,
                "floor": row.floor,
                "goal": row.goal,
                "met": mark,
            }
            for row, value, mark in rows
        ],
        "trials": [
            {"group": setting.group, "case": setting.case, "seed": setting.seed, **found}
            for setting, found in zip(work, measured, strict=True)
        ],
    }


def _print(title: str, rows: list[tuple[measures.Row, float, str]]) -> None:
    print(f"\n{title}\n  {'':52}{'measured':>9}{'floor':>11}{'goal':>10}")
    group = ""
    for row, value, mark in rows:
        shown = "" if row.group == group else row.group
        group = row.group
        print(f"  {shown:16}{row.what:36}{value:9.4f}{_bound(row.floor):>11}{_bound(row.goal):>10}  {mark}")
    marks = [mark for _, _, mark in rows]
    print(
        f"  goals {marks.count('goal')}, only floors {marks.count('floor')}, below {marks.count('BELOW')}", flush=True
    )


def _bound(bound: measures.Bound) -> str:
    if bound is None:
        return ""
    return f"{bound[0]:g}..{bound[1]:g}" if isinstance(bound, tuple) else f"{bound:g}"


if __name__ == "__main__":
    sys.exit(main())
