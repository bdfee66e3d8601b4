"""Tables of a scenario file that describe flows: times, source, path."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from astraea.scenario.fields import LIST, VALUE, Interval, Loss, Size, Span, Table, Time, by_shape, key, shorthand


class Start(Table):
    """When the flows of a group start."""

    at: Annotated[Annotated[Time, VALUE] | Annotated[list[Time], LIST], by_shape] = key(
        "0s", doc="Start of the first flow, or a list with one time per flow.", unit="time"
    )
    every: Time = key("0s", doc="Time between one start and the next.", unit="time")
    jitter: Time = key("0ms", doc="Each start is delayed by a further time, uniform from zero to this.", unit="time")
    poisson: Span | None = key(
        None,
        doc="Mean time between starts, exponentially distributed, in place of `every`. Flows that would start after "
        "the scenario's end do not come; the first must.",
        unit="time",
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Start:
        rules = [isinstance(self.at, list), self.every > 0, self.poisson is not None]
        if sum(rules) > 1:
            raise ValueError("a list of times, every and poisson exclude each other")
        return self


class Bulk(Table):
    """Always has data."""

    kind: Literal["bulk"] = key("bulk", doc="Name of the source.")


class Sized(Table):
    """Sends one file and ends."""

    kind: Literal["sized"] = key(doc="Name of the source.")
    size: Size = key(doc="Payload of the file.", unit="size")


class OnOff(Table):
    """Sends for a time, is silent for a time, and so on."""

    kind: Literal["on_off"] = key(doc="Name of the source.")
    on: Interval = key(doc="Length of a sending time.", unit="time")
    off: Interval = key(doc="Length of a silence.", unit="time")
    exponential: bool = key(True, doc="Lengths are exponentially distributed with these means; false: fixed.")


class PoissonMessages(Table):
    """Messages at random times on one connection."""

    kind: Literal["poisson"] = key(doc="Name of the source.")
    every: Interval = key(doc="Mean time between messages, exponentially distributed.", unit="time")
    size: Size = key(doc="Payload of a message.", unit="size")


class PeriodicMessages(Table):
    """Messages at fixed intervals on one connection."""

    kind: Literal["periodic"] = key(doc="Name of the source.")
    every: Interval = key(doc="Time between messages.", unit="time")
    size: Size = key(doc="Payload of a message.", unit="size")


Source = Annotated[
    Annotated[Bulk | Sized | OnOff | PoissonMessages | PeriodicMessages, Field(discriminator="kind")],
    shorthand("kind"),
]


class Ack(Table):
    """How a receiver acknowledges."""

    every: int = key(1, doc="Packets per acknowledgement.", ge=1, le=1_000_000)
    timeout: Span = key("40ms", doc="Longest time an acknowledgement is held back.", unit="time")
    aggregate: Time = key(
        "0ms",
        doc="Acknowledgements leave in bunches, this far apart, stamped with when they were made; 0: at once.",
        unit="time",
    )
    loss: Loss = key(0.0, doc="Random loss of acknowledgements.", unit="ratio below 1")


class Flow(Table):
    """`[[flow]]`: a group of `count` flows that are alike."""

    name: str = key("", doc="Name of the group in results, and in `--set flow.NAME.key=value`.")
    cc: str | None = key(
        None,
        doc="Scheme that these flows always use. Without it they are under test and use the scheme of "
        "`--cc`; flows with it are their competitors. A `file.py:ClassName` is relative to the scenario file.",
    )
    count: int = key(1, doc="Number of flows.", ge=1, le=100_000)
    start: Annotated[Start, Field(), shorthand("at")] = key(
        "0s",
        doc='When they start: a time, `{ every = "40s", jitter = "30ms" }`, `{ poisson = "4s" }` or '
        '`{ at = ["0s", "7s"] }`.',
        unit="time",
    )
    duration: Span | None = key(
        None, doc="Time from a flow's start to its end; none: until the scenario ends.", unit="time"
    )
    path: list[str] = key(doc="Links from sender to receiver, in order.")
    return_path: list[str] = key(
        [], doc="Links that acknowledgements cross. Empty: no link, only the delay of the forward path."
    )
    extra_delay: Annotated[Annotated[Time, VALUE] | Annotated[list[Time], LIST], by_shape] = key(
        "0ms",
        doc="Further delay in each direction (the RTT grows by twice this), or a list with one per flow.",
        unit="time",
    )
    source: Source = key("bulk", doc="What is sent: its name, or a table with `kind` and its parameters.")
    ack: Ack = key({}, doc="How receivers acknowledge.")
    ecn: bool = key(False, doc="Packets are ECN-capable.")
    burst: Time = key(
        "0ms",
        doc="A paced flow sends bursts; each holds what its pacing rate sends in this time, at least two packets, at "
        "most 64 KiB. 0: packet by packet. Linux: `1ms`; real traffic has it anyway.",
        unit="time",
    )
    period: Interval = key("30ms", doc="Monitoring period of schemes that decide once per period.", unit="time")

    @model_validator(mode="after")
    def _one_value_per_flow(self) -> Flow:
        for name, value in (("start.at", self.start.at), ("extra_delay", self.extra_delay)):
            if isinstance(value, list) and len(value) != self.count:
                raise ValueError(f"{name} has {len(value)} values for count = {self.count} flows")
        return self
