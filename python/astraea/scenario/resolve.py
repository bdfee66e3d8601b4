"""From a scenario, schemes and a seed to the numbers that the simulator takes.

Everything random that belongs to the experiment and not to a packet (start times, redrawn rates and delays) is drawn
here, from the seed: one stream of numbers per group of flows and per link, so that changing one of them does
not change the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from astraea.errors import UserError
from astraea.scenario import native_form, oracle
from astraea.scenario.flows import Flow
from astraea.scenario.links import Link, RandomDelay, RandomRate
from astraea.scenario.schema import Scenario
from astraea.scenario.units import MTU, NS, Buffer, format_time, parse_time

if TYPE_CHECKING:
    from astraea import _native, models


_CLOCK = 2**33

MAX_DRAWS = 10**7
"""Most draws of a link's rate or delay in a trial."""
"""Names the stream of the time of day, as smaller numbers name those of groups of flows and of links."""


SchemeFile: TypeAlias = "_native.Policy | _native.RemyTable | models.Rival"
"""What a file holds that stands for a scheme: a policy, a RemyCC's rules, or a policy of another paper's."""


@dataclass(frozen=True)
class SchemeSpec:
    """A congestion-control scheme with its parameters.

    `label` is how results name it, `name` how the simulator does, `params` are in SI units. A scheme written
    in Python has a `factory`, which makes one controller per flow, and one from a file a `policy`.
    """

    label: str
    name: str
    params: Mapping[str, float] = field(default_factory=dict)
    factory: Callable[[], Any] | None = None
    policy: SchemeFile | None = None


@dataclass(frozen=True)
class TraceFile:
    """A trace on disk and its mean rate in bit/s."""

    path: str
    mean_rate: float


@dataclass(frozen=True)
class FlowPlan:
    """One flow of a trial. Times in ns; `path` holds indices of links."""

    group: str
    scheme: SchemeSpec
    under_test: bool
    start_ns: int
    stop_ns: int | None
    path: tuple[int, ...]
    base_rtt_ns: int
    greedy: bool
    """Whether it always has data while it lives (bulk and sized sources)."""
    clock_ns: int
    """Time of day on its host when the trial begins, modulo an hour: learned schemes may go by it."""


@dataclass(frozen=True)
class Resolved:
    """One trial: `config` for the simulator, and what the metrics need to know about it."""

    config: dict[str, Any]
    seed: int
    flows: list[FlowPlan]
    links: list[str]


def resolve(
    scenario: Scenario,
    scheme: SchemeSpec | None,
    fixed: Mapping[int, SchemeSpec],
    seed: int,
    traces: Mapping[str, TraceFile],
) -> Resolved:
    """Work out one trial.

    `scheme` is that of the flows under test, `fixed` has the schemes that the scenario itself names, by the
    number of the group, and `traces` the files of trace-driven links by the link's name. Raises `UserError` for
    flows that would never start and for a scenario without an end.
    """
    links = list(scenario.link)
    slot = parse_time(scenario.record)
    starts = [_starts(flow, np.random.default_rng([seed, group])) for group, flow in enumerate(scenario.flow)]
    end = scenario.duration or _last_stop(scenario.flow, starts)
    end = -(-end // slot) * slot
    # Hosts agree on the time of day, and a trial begins at any.
    clock = int(np.random.default_rng([seed, _CLOCK]).integers(3600 * NS))
    plans: list[FlowPlan] = []
    flows: list[dict[str, Any]] = []
    for group, flow in enumerate(scenario.flow):
        spec = scheme if flow.cc is None else fixed[group]
        assert spec is not None, "the runner gives a scheme when a flow needs one"
        for index, start in enumerate(starts[group]):
            if start >= end:
                if flow.start.poisson is not None and index > 0:
                    continue  # with jitter a later one may start sooner
                raise UserError(
                    f"flow.{group}.start: flow {index + 1} of {flow.count} never starts: its start at "
                    f"{format_time(start)} is not before the scenario's end at {format_time(end)}"
                )
            plan = _plan(scenario, group, index, start=start, end=end, spec=spec, clock=clock)
            plans.append(plan)
            flows.append(
                native_form.flow(flow, plan, _extra_delay(flow, index), [links.index(n) for n in flow.return_path])
            )
    config = {
        "duration_ns": end,
        "slot_ns": slot,
        "links": [_link(scenario, name, plans, seed=seed, end=end, trace=traces.get(name)) for name in links],
        "flows": flows,
    }
    oracle.fill(config, [plan.base_rtt_ns for plan in plans])
    return Resolved(config, seed, plans, links)


def _starts(flow: Flow, rng: np.random.Generator) -> list[int]:
    """Start times in ns of a group's flows."""
    rule, count = flow.start, flow.count
    if isinstance(rule.at, list):
        times = list(rule.at)
    elif rule.poisson is not None:
        gaps = rng.exponential(rule.poisson, count - 1)
        times = [rule.at + round(offset) for offset in (0.0, *np.cumsum(gaps).tolist())]
    else:
        times = [rule.at + index * rule.every for index in range(count)]
    return [time + int(rng.integers(rule.jitter)) if rule.jitter else time for time in times]


def _last_stop(flows: Sequence[Flow], starts: Sequence[Sequence[int]]) -> int:
    stops = [max(times) + flow.duration for flow, times in zip(flows, starts, strict=True) if flow.duration is not None]
    if not stops:
        raise UserError('duration: missing: no flow has one either; expected e.g. duration = "60s"')
    return max(stops)


def _extra_delay(flow: Flow, index: int) -> int:
    return flow.extra_delay[index] if isinstance(flow.extra_delay, list) else flow.extra_delay


def _one_way(link: Link) -> int:
    """Propagation delay in ns; of one that changes, the smallest that there may be."""
    if isinstance(link.delay, RandomDelay):
        return link.delay.low
    return min(delay for _, delay in link.delay) if isinstance(link.delay, list) else link.delay


def _plan(
    scenario: Scenario, group: int, index: int, *, start: int, end: int, spec: SchemeSpec, clock: int
) -> FlowPlan:
    flow = scenario.flow[group]
    forward = sum(_one_way(scenario.link[name]) for name in flow.path)
    back = sum(_one_way(scenario.link[name]) for name in flow.return_path) if flow.return_path else forward
    stop = None if flow.duration is None else start + flow.duration
    return FlowPlan(
        group=flow.name or str(group),
        scheme=spec,
        under_test=flow.cc is None,
        start_ns=start,
        stop_ns=None if stop is None or stop >= end else stop,
        path=tuple(list(scenario.link).index(name) for name in flow.path),
        base_rtt_ns=forward + back + 2 * _extra_delay(flow, index),
        greedy=flow.source.kind in ("bulk", "sized"),
        clock_ns=clock,
    )


def _link(
    scenario: Scenario, name: str, plans: Sequence[FlowPlan], *, seed: int, end: int, trace: TraceFile | None
) -> dict[str, Any]:
    link, index = scenario.link[name], list(scenario.link).index(name)
    if trace is not None:
        rate: dict[str, Any] = {"trace": trace.path}
        mean = trace.mean_rate
    elif isinstance(link.rate, RandomRate):
        rate = {"schedule": _redrawn(f"link.{name}.rate", link.rate, end, [seed, 2**31 + index]), "repeat_ns": 0}
        mean = (link.rate.low + link.rate.high) / 2
    elif link.schedule is not None:
        rate = {"schedule": [list(step) for step in link.schedule], "repeat_ns": link.period or 0}
        mean = _mean_rate(link.schedule, link.period or end)
    else:
        assert link.rate is not None, "the schema asks for one of the three"
        rate = {"constant": link.rate}
        mean = link.rate
    # A link crossed only by acknowledgements has no flow of its own; the longest RTT of all stands in.
    crossing = [plan.base_rtt_ns for plan in plans if index in plan.path] or [plan.base_rtt_ns for plan in plans]
    delay: dict[str, Any] = {"constant": link.delay}
    if isinstance(link.delay, list):
        delay = {"schedule": [list(step) for step in link.delay]}
    elif isinstance(link.delay, RandomDelay):
        steps = _redrawn(f"link.{name}.delay", link.delay, end, [seed, 2**32 + index])
        delay = {"schedule": [[time, round(drawn)] for time, drawn in steps]}
    return native_form.link(name, link, rate, delay, _limit(link.buffer, mean, max(crossing)))


def _redrawn(key: str, rule: RandomRate | RandomDelay, end: int, stream: Sequence[int]) -> list[tuple[int, float]]:
    """A rate or delay drawn anew until `end` ns: times and values. `UserError` if they are too many to be kept."""
    if end // rule.every > MAX_DRAWS:
        raise UserError(
            f"{key}: every {format_time(rule.every)} for {format_time(end)} makes {end / rule.every:.1e} draws; "
            f"expected at most {MAX_DRAWS:.0e}"
        )
    draws = np.random.default_rng(stream).uniform(rule.low, rule.high, -(-end // rule.every)).tolist()
    return [(step * rule.every, drawn) for step, drawn in enumerate(draws)]


def _mean_rate(steps: Sequence[tuple[int, float]], end: int) -> float:
    """Mean over time of a schedule, from 0 to `end` ns."""
    times = [min(time, end) for time, _ in steps] + [end]
    area = sum(rate * (times[i + 1] - times[i]) for i, (_, rate) in enumerate(steps))
    return area / end


def _limit(buffer: Buffer, rate: float, base_rtt_ns: int) -> Any:
    """The queue's limit as the simulator takes it; in bytes at least one packet."""
    match buffer.unit:
        case "infinite":
            return "infinite"
        case "packets":
            return {"packets": int(buffer.amount)}
        case "bytes":
            size = buffer.amount
        case "ns":
            size = rate / 8 * buffer.amount / NS
        case _:
            size = buffer.amount * rate / 8 * base_rtt_ns / NS
    return {"bytes": min(max(round(size), MTU), 2**62)}
