"""How fast flows come to their fair shares after one arrives or leaves, and how steady they then are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from astraea.eval.data import Floats, TrialData
from astraea.eval.fairshare import crossings, fair_shares
from astraea.scenario.units import NS

TOLERANCE = 0.1
"""A flow is at its fair share when it is within this part of it."""

FIRST_NS = NS // 10
"""Slot of `convergence_first_s` and `stability_mbps`."""

TRAILING_NS = NS // 2
"""Window of the trailing mean of `convergence_settle_s`."""

HOLD_NS = NS
"""How long the trailing means must stay at the fair shares."""


@dataclass(frozen=True)
class Event:
    """Arrivals or departures at `time_ns`; `until_ns` is when the next ones come, or the end.

    `arrived` are the new flows, `active` all that live from then on.
    """

    time_ns: int
    until_ns: int
    arrived: tuple[int, ...]
    active: tuple[int, ...]


@dataclass(frozen=True)
class Response:
    """What followed one event. Times in s; `settle_s` is None if the flows never settled."""

    interval_s: float
    first_s: float
    settle_s: float | None
    deviation_mbps: float | None


def events(data: TrialData) -> list[Event]:
    """Arrivals and departures, in order.

    Those less than 100 ms after the first of a group count as one event, at the time of the last: the slots in which
    convergence is seen are no finer, and flows meant to start together do so within a jitter. After the last
    departure nothing is left to converge: that is no event, and neither is the end of the trial.
    """
    end = data.slots * data.slot_ns
    times = sorted({time for flow in data.flows for time in (flow.start_ns, flow.end_ns) if time < end})
    groups: list[list[int]] = []
    for time in times:
        if groups and time - groups[-1][0] < FIRST_NS:
            groups[-1].append(time)
        else:
            groups.append([time])
    found = []
    for group, later in zip(groups, [*groups[1:], [end]], strict=True):
        active = tuple(index for index, flow in enumerate(data.flows) if flow.start_ns <= group[-1] < flow.end_ns)
        arrived = tuple(index for index in active if data.flows[index].start_ns >= group[0])
        if active:
            found.append(Event(group[-1], later[0], arrived, active))
    return found


def response(data: TrialData, event: Event) -> Response:
    """Measure what followed an event."""
    first, last = -(-event.time_ns // data.slot_ns), event.until_ns // data.slot_ns
    back = TRAILING_NS // data.slot_ns
    rows = list(event.active)
    # Both with `back` slots before the event. Before the trial nothing was delivered; capacity was as at its start.
    delivered = _columns(data.delivered[rows], first - back, last, 0.0)
    capacity = _columns(data.capacity, first - back, last, None)
    crosses = crossings([data.flows[row].path for row in rows], len(capacity))
    shares, _ = fair_shares(capacity, crosses, np.ones(delivered.shape, dtype=bool))

    watched = [rows.index(flow) for flow in event.arrived or event.active]
    interval_s = (event.until_ns - event.time_ns) / NS
    reached = [_first_reach(delivered[row, back:], shares[row, back:], data.slot_ns) for row in watched]
    offset_s = (first * data.slot_ns - event.time_ns) / NS
    settled = _settled(delivered, shares, data.slot_ns)
    deviation = None
    if settled is not None and event.arrived:
        deviation = _deviation(delivered[watched, back + settled :], data.slot_ns)
    return Response(
        interval_s=interval_s,
        first_s=float(
            np.mean([interval_s if slots is None else offset_s + slots * data.slot_ns / NS for slots in reached])
        ),
        settle_s=None if settled is None else offset_s + settled * data.slot_ns / NS,
        deviation_mbps=deviation,
    )


def _columns(series: Floats, first: int, last: int, before: float | None) -> Floats:
    """Slots `first` to `last`; those before the trial have the value `before`, None: that of slot 0."""
    missing = max(-first, 0)
    part = series[:, max(first, 0) : last]
    pad = np.repeat(series[:, :1], missing, axis=1) if before is None else np.full((len(series), missing), before)
    return np.hstack([pad, part])


def _first_reach(delivered: Floats, share: Floats, slot_ns: int) -> int | None:
    """Slots until the end of the first 100 ms in which a flow had its fair share."""
    width = FIRST_NS // slot_ns
    got, due = _chunks(delivered, width), _chunks(share, width)
    hits = np.flatnonzero((due > 0) & _near(got, due))
    return None if hits.size == 0 else (int(hits[0]) + 1) * width


def _settled(delivered: Floats, shares: Floats, slot_ns: int) -> int | None:
    """Slots from the event until every trailing mean is at its share and stays so; [flows, back + slots]."""
    back, hold = TRAILING_NS // slot_ns, HOLD_NS // slot_ns
    good = _near(_trailing(delivered, back), _trailing(shares, back)).all(axis=0)
    if good.size <= hold:
        return None
    run = np.convolve(good, np.ones(hold + 1), mode="valid")
    hits = np.flatnonzero(run > hold + 0.5)
    return None if hits.size == 0 else int(hits[0])


def _trailing(series: Floats, width: int) -> Floats:
    """Sums over the `width` slots before each slot edge, from the first edge that has so many."""
    total = np.cumsum(np.pad(series, ((0, 0), (1, 0))), axis=1)
    return total[:, width:] - total[:, :-width]


def _near(got: Floats, due: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.abs(got - due) <= TOLERANCE * (1 + 1e-9) * due


def _chunks(series: Floats, width: int) -> Floats:
    """Sums over whole groups of `width` slots along the last axis."""
    count = series.shape[-1] // width
    chunks: Floats = series[..., : count * width].reshape(*series.shape[:-1], count, width).sum(axis=-1)
    return chunks


def _deviation(delivered: Floats, slot_ns: int) -> float | None:
    """Standard deviation in Mbit/s of the flows' 100 ms throughput, mean over the flows."""
    mbps = _chunks(delivered, FIRST_NS // slot_ns) * 8 / (FIRST_NS / NS) / 1e6
    return float(mbps.std(axis=1).mean()) if mbps.shape[1] > 1 else None
