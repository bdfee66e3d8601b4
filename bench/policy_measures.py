"""What `bench/policies.py` measures in a trial, and the rows of its table with their targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from policy_settings import Setting

from astraea.eval import convergence, metrics, registry
from astraea.eval.data import Floats, Mask, TrialData
from astraea.eval.measured import trial_data
from astraea.eval.simulated import simulate
from astraea.scenario.document import Document
from astraea.scenario.resolve import Resolved, resolve

NS = 1_000_000_000

Measured = dict[str, float | None]


def measure(setting: Setting, cc: str, clock_error: float = 0.0) -> Measured:
    """Run one trial; the metrics of docs/metrics.md and what is added here.

    With a `clock_error` (s) the hosts' clocks are ahead by random times up to it.
    """
    trial, result = simulated(setting, cc, clock_error)
    data = trial_data(trial, result)
    found: Measured = dict(metrics.compute(data))
    sent = sum(flow["sent_packets"] for flow in result["flows"])
    found["overflow"] = result["links"][0]["dropped_packets"] / sent
    if setting.group in ("three-flows", "training-range"):
        found |= _kept(data)
    if setting.group == "uploads":
        found["download"] = _download(data)
    if setting.group == "neighbours":
        found["alone"] = _alone(data)
    if steps := trial.config["links"][0]["delay"].get("schedule"):
        found |= _inflation(steps, data, np.asarray(result["series"]["rtt"], dtype=float))
    return found


def simulated(setting: Setting, cc: str, clock_error: float = 0.0) -> tuple[Resolved, dict[str, Any]]:
    """Run one trial: what was run, and what the simulator says."""
    scenario = Document(setting.group, Path(f"{setting.group}.toml"), setting.raw).validate()
    fixed = {group: registry.scheme(flow.cc) for group, flow in enumerate(scenario.flow) if flow.cc is not None}
    trial = resolve(scenario, registry.scheme(cc), fixed, setting.seed, {})
    if clock_error:
        _set_clocks(trial, clock_error)
    return trial, simulate(trial)


def _set_clocks(trial: Resolved, error: float) -> None:
    rng = np.random.default_rng([trial.seed, 2**34])
    trial.flows[:] = [replace(flow, clock_ns=flow.clock_ns + int(rng.uniform(0, error) * NS)) for flow in trial.flows]


def _kept(data: TrialData) -> Measured:
    """How many events there are, after how many the flows settle for good, and when.

    `kept`: from the first settling (for 1 s) on, every trailing mean stays within 10 % until the next event.
    `at_end`: they are so during the last second before the next event at least. `until_next_s`: from when on they stay
    so until the next event; the time to the next event where they do not.
    """
    kept = at_end = 0
    times = []
    events = convergence.events(data)
    for event in events:
        good = _within(data, event)
        hold = convergence.HOLD_NS // data.slot_ns
        last_bad = np.flatnonzero(~good)
        since = int(last_bad[-1]) + 1 if last_bad.size else 0
        settled = convergence.response(data, event).settle_s
        first = (-(-event.time_ns // data.slot_ns) * data.slot_ns - event.time_ns) / NS
        stays = since + hold <= good.size
        at_end += stays
        until = first + since * data.slot_ns / NS
        kept += settled is not None and stays and until <= settled + 1e-9
        times.append(until if stays else (event.until_ns - event.time_ns) / NS)
    return {
        "events": len(events),
        "kept": kept,
        "at_end": at_end,
        "until_next_s": float(np.mean(times)) if times else None,
    }


def _within(data: TrialData, event: convergence.Event) -> Mask:
    """Whether all trailing 500 ms means are within 10 % of the fair share, for every slot edge from the event on."""
    width = convergence.TRAILING_NS // data.slot_ns
    first, last = -(-event.time_ns // data.slot_ns), event.until_ns // data.slot_ns
    start = max(first - width, 0)
    pad = width - (first - start)
    got = np.pad(data.delivered[list(event.active), start:last], ((0, 0), (pad, 0)))
    capacity = np.pad(data.capacity[0, start:last], (pad, 0), mode="edge")
    sums = [np.cumsum(np.pad(each, [(0, 0)] * (each.ndim - 1) + [(1, 0)]), axis=-1) for each in (got, capacity)]
    have, share = (each[..., width:] - each[..., :-width] for each in sums)
    share = share / len(event.active)
    good: Mask = np.all(np.abs(have - share) <= convergence.TOLERANCE * share, axis=0)
    return good


def _alone(data: TrialData) -> float:
    """Share of the link that the flow under test has from 5 to 25 s after the others have left."""
    left = max(flow.end_ns for flow in data.flows if not flow.under_test)
    slots = slice((left + 5 * NS) // data.slot_ns, (left + 25 * NS) // data.slot_ns)
    return float(data.delivered[:, slots].sum() / data.capacity[0, slots].sum())


def _download(data: TrialData) -> float:
    """Share of the first link that the flows under test have from 10 s on."""
    tested = np.array([flow.under_test for flow in data.flows])
    slots = slice(10 * NS // data.slot_ns, None)
    return float(data.delivered[tested, slots].sum() / data.capacity[0, slots].sum())


def _inflation(steps: list[list[int]], data: TrialData, rtt: Floats) -> Measured:
    """Mean RTT / mean base RTT, where the base changes: over packets, and over time. `steps`: times, one-way delays."""
    times = (np.arange(data.slots) + 0.5) * data.slot_ns
    starts, delays = np.array(steps).T
    bases = 2 * delays / NS
    base = np.broadcast_to(bases[np.searchsorted(starts, times, side="right") - 1], rtt.shape)
    seen = np.isfinite(rtt)
    weights = data.delivered[seen]
    return {
        "rtt_inflation": float((weights * rtt[seen]).sum() / (weights * base[seen]).sum()),
        "rtt_inflation_time": float(rtt[seen].mean() / base[seen].mean()),
    }


Trials = Sequence[tuple[str, Measured]]
"""Case and measures of the trials of a group."""


def values(trials: Trials, name: str, case: str | None = None) -> list[float]:
    """A measure in all trials that have it."""
    found = [each[name] for key, each in trials if case is None or key == case]
    return [value for value in found if value is not None]


def mean(name: str, case: str | None = None) -> Callable[[Trials], float]:
    return lambda trials: float(np.mean(values(trials, name, case) or np.nan))


def least(name: str, case: str | None = None) -> Callable[[Trials], float]:
    return lambda trials: min(values(trials, name, case), default=np.nan)


def typical(name: str, case: str) -> Callable[[Trials], float]:
    """Geometric mean: of times that differ by orders of magnitude."""
    return lambda trials: float(np.exp(np.mean(np.log(values(trials, name, case) or np.nan))))


def tenth(name: str) -> Callable[[Trials], float]:
    return lambda trials: float(np.percentile(values(trials, name) or np.nan, 10))


def percent(measure: Callable[[Trials], float]) -> Callable[[Trials], float]:
    return lambda trials: 100 * measure(trials)


def share(name: str) -> Callable[[Trials], float]:
    return lambda trials: sum(values(trials, name)) / sum(values(trials, "events"))


Bound = float | tuple[float, float] | None
"""What a value should reach: at least it, or at most it, or within it."""


@dataclass(frozen=True)
class Row:
    """A line of the table. `floor` and `goal` are bounds, from above if the goal is the lower, or intervals."""

    group: str
    what: str
    value: Callable[[Trials], float]
    floor: Bound = None
    goal: Bound = None

    def mark(self, value: float) -> str:
        """Which target is met."""
        if self.floor is None or self.goal is None:
            return ""
        upper = not isinstance(self.goal, tuple) and not isinstance(self.floor, tuple) and self.goal < self.floor
        for name, bound in (("goal", self.goal), ("floor", self.floor)):
            if isinstance(bound, tuple):
                met = bound[0] <= value <= bound[1]
            else:
                met = value <= bound if upper else value >= bound
            if met:
                return name
        return "BELOW"


def _grid(group: str) -> list[Row]:
    return [
        Row(group, "mean Jain", mean("jain"), 0.97, 0.99),
        Row(group, "10th percentile of Jain", tenth("jain"), 0.94, 0.97),
        Row(group, "min Jain", least("jain"), 0.80, 0.93),
        Row(group, "mean utilization", mean("utilization"), 0.97, 0.985),
        Row(group, "min utilization", least("utilization")),
        Row(group, "mean loss beyond random, %", percent(mean("overflow")), 0.5, 0.1),
        Row(group, "mean RTT inflation", mean("rtt_inflation")),
    ]


def _neighbours() -> list[Row]:
    rows = []
    for other, floor in (("cubic", (0.3, 3.0)), ("bbr", (0.1, 3.0))):
        for count in (1, 2, 4):
            case = f"{count} {other}"
            rows.append(Row("neighbours", f"ratio, {case}", mean("throughput_ratio", case), floor, (0.6, 1.6)))
    rows.append(Row("neighbours", "share of link when they left, min", least("alone")))
    deep = ("1 cubic", "4 cubic", "1 bbr", "4 bbr")
    return rows + [Row("deep-buffers", f"ratio, {case}", mean("throughput_ratio", case)) for case in deep]


ROWS: list[Row] = [
    Row("three-flows", "Jain", mean("jain"), 0.997, 0.9995),
    Row("three-flows", "first, s", mean("convergence_first_s")),
    Row("three-flows", "settle, s", mean("convergence_settle_s"), 1.0, 0.6),
    Row("three-flows", "stability, Mbit/s", mean("stability_mbps"), 0.5, 0.2),
    Row("three-flows", "utilization", mean("utilization"), 0.995, 0.998),
    Row("three-flows", "queue, ms", mean("queue_delay_ms"), 4, 2),
    Row("three-flows", "settle kept until next, %", percent(share("kept")), 90, 99),
    Row("three-flows", "settled at the end, %", percent(share("at_end"))),
    Row("three-flows", "until_next, s", mean("until_next_s")),
    Row("training-range", "mean Jain", mean("jain"), 0.99, 0.997),
    Row("training-range", "min Jain", least("jain"), 0.97, 0.985),
    Row("training-range", "mean utilization", mean("utilization"), 0.985, 0.992),
    Row("training-range", "settled at the end, %", percent(share("at_end"))),
    *_grid("test-grid"),
    *_grid("validation-grid"),
    Row("rtt-fairness", "Jain", mean("jain"), 0.985, 0.998),
    *(Row("many", f"Jain, {n} flows", mean("jain", n), 0.95, 0.99) for n in ("10", "20", "50")),
    *_neighbours(),
    Row("small-buffers", "mean Jain", mean("jain")),
    Row("small-buffers", "min Jain", least("jain")),
    Row("small-buffers", "mean loss, %", percent(mean("overflow"))),
    Row("tiny-buffers", "mean Jain", mean("jain")),
    Row("tiny-buffers", "10th percentile of Jain", tenth("jain")),
    Row("tiny-buffers", "mean loss, %", percent(mean("overflow"))),
    Row("short-flows", "utilization", mean("utilization"), 0.97, 0.99),
    *(
        row
        for case in ("alone", "beside")
        for row in (
            Row("applications", f"loss {case}, %", percent(mean("overflow", case))),
            Row("applications", f"time for a message {case}, s", typical("fct_s", case)),
        )
    ),
    *(Row("uploads", f"share beside {name}", mean("download", name)) for name in ("cubic", "bbr")),
    *(Row("uploads", f"least share beside {name}", least("download", name)) for name in ("cubic", "bbr")),
    Row("jitter", "utilization, 2 ms", mean("utilization", "2ms"), 0.98, 0.99),
    Row("jitter", "utilization, 5 ms", mean("utilization", "5ms"), 0.90, 0.97),
    Row("loss", "utilization, 1 flow", mean("utilization", "1"), 0.96, 0.985),
    Row("loss", "utilization, 3 flows", mean("utilization", "3"), 0.96, 0.985),
    Row("changing", "utilization, 1 flow", mean("utilization", "1"), 0.85, 0.93),
    Row("changing", "utilization, 3 flows", mean("utilization", "3"), 0.85, 0.93),
    Row("changing", "RTT inflation, 1 flow", mean("rtt_inflation", "1"), 1.5, 1.2),
    Row("changing", "RTT inflation, 3 flows", mean("rtt_inflation", "3"), 1.5, 1.2),
    Row("changing", "RTT inflation over time", mean("rtt_inflation_time")),
    Row("changing", "Jain, 3 flows", mean("jain", "3")),
    Row("satellite", "utilization", mean("utilization"), 0.85, 0.95),
    Row("satellite", "RTT inflation", mean("rtt_inflation"), 1.3, 1.1),
]

PURE: dict[str, tuple[float, float]] = {
    "Jain": (0.991, 0.998),
    "settle, s": (2.0, 0.7),
    "stability, Mbit/s": (2.0, 0.3),
    "utilization": (0.99, 0.998),
    "queue, ms": (8.0, 3.0),
}
"""Targets of `astraea-pure` on three-flows, in place of the default policy's."""


def rows(*, pure: bool) -> list[Row]:
    """The table's rows, with the targets of `astraea-pure` or of the default policy."""
    found = []
    for row in ROWS:
        if pure and row.group == "three-flows" and row.what in PURE:
            floor, goal = PURE[row.what]
            found.append(replace(row, floor=floor, goal=goal))
        else:
            found.append(row)
    return found
