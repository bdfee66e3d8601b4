"""Tables of a scenario file that describe links: capacity, queue, loss."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from astraea.scenario.fields import (
    LIST,
    TABLE,
    VALUE,
    BufferLimit,
    Interval,
    Loss,
    Quantum,
    Rate,
    Ratio,
    Span,
    Table,
    Time,
    ascending,
    by_shape,
    key,
    shorthand,
)
from astraea.scenario.units import MTU, NS

MAX_PACKETS, MAX_DURATION = 50_000_000, 24 * 3600 * NS
"""Most opportunities of a trace that is made here, and its greatest length in ns: minutes of work, a file of 500 MB."""


def _check_draws(low: float, high: float, every: int) -> None:
    if high < low:
        raise ValueError("high must not be below low")
    if every < NS // 1000:
        raise ValueError("every must be at least 1ms")


class RandomRate(Table):
    """A rate drawn anew, uniformly, at fixed intervals; every trial draws its own."""

    low: Rate = key(doc="Lowest rate.", unit="rate")
    high: Rate = key(doc="Highest rate.", unit="rate")
    every: Span = key(doc="Time between draws.", unit="time")

    @model_validator(mode="after")
    def _ordered(self) -> RandomRate:
        _check_draws(self.low, self.high, self.every)
        return self


class RandomDelay(Table):
    """A propagation delay drawn anew, uniformly, at fixed intervals, as where a path is switched."""

    low: Time = key(doc="Smallest delay.", unit="time")
    high: Time = key(doc="Greatest delay.", unit="time")
    every: Span = key(doc="Time between draws.", unit="time")

    @model_validator(mode="after")
    def _ordered(self) -> RandomDelay:
        _check_draws(self.low, self.high, self.every)
        return self


class GeneratedTrace(Table):
    """A cellular-like trace made on the fly by `astraea trace generate`'s model (see docs/traces.md)."""

    model: Literal["lte"] = key("lte", doc="The stochastic model.")
    mean: Rate = key("9Mbps", doc="Mean rate outside outages.", unit="rate")
    volatility: float = key(
        0.4, doc="Standard deviation of the rate's change in one second, as a share of the mean.", ge=0, le=10
    )
    outage: Time = key(
        "500ms", doc="Mean length of an outage, which begins when the rate has sunk to zero.", unit="time"
    )
    duration: Span = key("120s", doc="Length; the trace then repeats.", unit="time")
    seed: int = key(1, doc="Seed of the trace: the same seed gives the same trace in every trial.", ge=0)

    @model_validator(mode="after")
    def _bounded(self) -> GeneratedTrace:
        if self.duration > MAX_DURATION:
            raise ValueError("duration must be at most 24h")
        if (packets := self.mean / 8 / MTU * self.duration / NS) > MAX_PACKETS:
            raise ValueError(f"mean x duration come to {packets:.1e} packets; expected at most {MAX_PACKETS:.0e}")
        return self


class GilbertElliott(Table):
    """Loss in bursts: a two-state Markov chain that makes one step per packet."""

    enter: Ratio = key(doc="Probability of going from the good to the bad state.", unit="ratio")
    leave: Ratio = key(doc="Probability of going from the bad to the good state.", unit="ratio", gt=0)
    good: Loss = key(0.0, doc="Loss probability in the good state.", unit="ratio below 1")
    bad: Ratio = key(1.0, doc="Loss probability in the bad state.", unit="ratio")


class Reorder(Table):
    """Packets held back, which later ones may overtake."""

    probability: Ratio = key(doc="Share of packets held back.", unit="ratio")
    delay: Span = key(doc="How long they are held back.", unit="time")


class DropTail(Table):
    """First in, first out; a packet that does not fit is dropped."""

    kind: Literal["droptail"] = key("droptail", doc="Name of the discipline.")


class CoDel(Table):
    """CoDel (RFC 8289)."""

    kind: Literal["codel"] = key(doc="Name of the discipline.")
    target: Span = key("5ms", doc="Queueing delay that is tolerated for an interval.", unit="time")
    interval: Span = key("100ms", doc="Interval.", unit="time")
    ecn: bool = key(False, doc="Mark packets of ECN-capable flows instead of dropping them.")


class FqCoDel(Table):
    """Flow queueing with CoDel (RFC 8290)."""

    kind: Literal["fq_codel"] = key(doc="Name of the discipline.")
    target: Span = key("5ms", doc="Queueing delay that is tolerated for an interval.", unit="time")
    interval: Span = key("100ms", doc="Interval.", unit="time")
    flows: int = key(1024, doc="Number of queues.", ge=1, le=65_536)
    quantum: Quantum = key("1514B", doc="Bytes a queue may send per round.", unit="size")
    ecn: bool = key(False, doc="Mark packets of ECN-capable flows instead of dropping them.")


class Pie(Table):
    """PIE (RFC 8033)."""

    kind: Literal["pie"] = key(doc="Name of the discipline.")
    target: Span = key("15ms", doc="Reference queueing delay.", unit="time")
    tupdate: Interval = key("15ms", doc="Time between updates of the drop probability.", unit="time")
    alpha: float = key(0.125, doc="Weight of the delay's distance from the target, in Hz.", gt=0)
    beta: float = key(1.25, doc="Weight of the delay's change, in Hz.", gt=0)
    burst: Time = key("150ms", doc="Burst that passes undropped after an idle time.", unit="time")
    ecn: bool = key(False, doc="Mark packets of ECN-capable flows instead of dropping them.")


class Red(Table):
    """Random early detection (Floyd and Jacobson 1993)."""

    kind: Literal["red"] = key(doc="Name of the discipline.")
    min: Ratio = key("25%", doc="Average queue at which drops begin, as a share of the buffer.", unit="ratio", gt=0)
    max: Ratio = key(
        "75%",
        doc="Average queue at which the drop probability reaches max_p, as a share of the buffer.",
        unit="ratio",
    )
    max_p: Ratio = key("10%", doc="Drop probability at max.", unit="ratio", gt=0)
    weight: Ratio = key(0.002, doc="Weight of a new sample in the average queue.", unit="ratio", gt=0)
    gentle: bool = key(True, doc="Raise the probability from max_p to 1 between max and twice max.")
    ecn: bool = key(False, doc="Mark packets of ECN-capable flows instead of dropping them.")

    @model_validator(mode="after")
    def _ordered(self) -> Red:
        if self.max <= self.min:
            raise ValueError("max must be above min")
        return self


Queue = Annotated[Annotated[DropTail | CoDel | FqCoDel | Pie | Red, Field(discriminator="kind")], shorthand("kind")]
# TOML has lists only; strictness would ask for tuples.
RateStep = Annotated[tuple[Time, Rate], Field(strict=False)]
DelayStep = Annotated[tuple[Time, Time], Field(strict=False)]
RateSteps = Annotated[list[RateStep], AfterValidator(ascending("rates"))]
DelaySteps = Annotated[list[DelayStep], AfterValidator(ascending("delays"))]


class Link(Table):
    """`[link.NAME]`: a queue, a server and a wire, in one direction."""

    rate: Annotated[Annotated[Rate, VALUE] | Annotated[RandomRate, TABLE], by_shape] | None = key(
        None,
        doc='Capacity, or `{ low = "16Mbps", high = "32Mbps", every = "5s" }` to draw it anew. '
        "Counts whole packets of 1500 bytes. Exactly one of rate, schedule and trace is needed.",
        unit="rate",
    )
    schedule: RateSteps | None = key(
        None, doc='Capacity in steps, `[["0s", "20Mbps"], ["5s", "40Mbps"]]`.', unit="rate"
    )
    period: Interval | None = key(None, doc="Time after which the schedule begins again.", unit="time")
    trace: Annotated[Annotated[str, VALUE] | Annotated[GeneratedTrace, TABLE], by_shape] | None = key(
        None,
        doc="Capacity from a Mahimahi file (path relative to the scenario file), or a table "
        '`{ model = "lte", seed = 1 }` that generates one.',
        unit="file or table",
    )
    delay: Annotated[Annotated[Time, VALUE] | Annotated[DelaySteps, LIST] | Annotated[RandomDelay, TABLE], by_shape] = (
        key(
            "0ms",
            doc='Propagation delay one way, or steps `[["0s", "15ms"], ["15s", "40ms"]]`, or '
            '`{ low = "10ms", high = "100ms", every = "10s" }` to draw it anew.',
            unit="time",
        )
    )
    buffer: BufferLimit = key(
        "1bdp",
        doc='Limit of the queue, not counting the packet that is being sent: "1bdp", "375kB", '
        '"250packets", "100ms" or "infinite".',
        unit="buffer",
    )
    queue: Queue = key("droptail", doc="Queue discipline: its name, or a table with `kind` and its parameters.")
    loss: Annotated[Annotated[Loss, VALUE] | Annotated[GilbertElliott, TABLE], by_shape] = key(
        0.0,
        doc='Random loss in front of the queue, or `{ enter = "0.1%", leave = "30%" }` for bursts.',
        unit="ratio below 1",
    )
    jitter: Time = key(
        "0ms",
        doc="Each packet is delayed by a further time, uniform from zero to this; order is kept.",
        unit="time",
    )
    reorder: Reorder | None = key(None, doc='Reordering, e.g. `{ probability = "1%", delay = "5ms" }`.')
    ends: tuple[str, str] | None = key(
        None,
        doc="The two nodes it joins, from and to. Optional; when all links of a path have it, the path is "
        "checked to be connected.",
        strict=False,
    )

    @model_validator(mode="after")
    def _one_capacity(self) -> Link:
        given = [name for name in ("rate", "schedule", "trace") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of rate, schedule and trace, not {' and '.join(given) or 'none'}")
        if self.period is not None and (self.schedule is None or self.period <= self.schedule[-1][0]):
            raise ValueError("period needs a schedule that ends before it")
        return self
