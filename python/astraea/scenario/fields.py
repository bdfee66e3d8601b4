"""Types of scenario keys: how a value is read, how it is written back, and what the documentation says."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from astraea.errors import nearest
from astraea.scenario import units

Rate = Annotated[float, BeforeValidator(units.parse_rate), PlainSerializer(units.format_rate)]
"""Above zero, in bit/s."""

Time = Annotated[int, BeforeValidator(units.parse_time), PlainSerializer(units.format_time)]
"""Zero or more, in ns."""

Span = Annotated[int, BeforeValidator(units.parse_span), PlainSerializer(units.format_time)]
"""A time above zero, in ns."""

Interval = Annotated[Span, AfterValidator(units.check_interval)]
"""Time between things that happen again and again, in ns."""

Size = Annotated[int, BeforeValidator(units.parse_size), PlainSerializer(units.format_size)]
"""In bytes."""

Quantum = Annotated[int, BeforeValidator(units.parse_quantum), PlainSerializer(units.format_size)]
"""In bytes, of 32 bits."""

Ratio = Annotated[float, BeforeValidator(units.parse_ratio)]
"""From 0 to 1."""

Loss = Annotated[float, BeforeValidator(functools.partial(units.parse_ratio, whole=False))]
"""Share of packets that are lost at random: not all of them."""

BufferLimit = Annotated[units.Buffer, BeforeValidator(units.parse_buffer), PlainSerializer(units.format_buffer)]
"""Limit of a queue."""


class Table(BaseModel):
    """A TOML table. Keys it does not have are errors that name the nearest one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for key in value:
                if key not in cls.model_fields:
                    known = list(cls.model_fields)
                    hint = nearest(str(key), known) or f"; expected one of {', '.join(known)}"
                    raise PydanticCustomError("unknown_key", "unknown key{hint}", {"key": key, "hint": hint})
        elif not isinstance(value, cls):
            raise PydanticCustomError("table_expected", "expected a table")
        return value


def key(default: Any = ..., *, doc: str, unit: str = "", **rules: Any) -> Any:
    """A key of a table with its documentation; without `default` it is required.

    `unit` is what a value is written in ("bit/s", "time", ...), `rules` are pydantic's constraints.
    """
    return Field(default, description=doc, json_schema_extra={"unit": unit}, validate_default=True, **rules)


def shape(value: Any) -> str:
    """Which form of a key was written: "table", "list" or "value"."""
    if isinstance(value, (dict, BaseModel)):
        return "table"
    return "list" if isinstance(value, (list, tuple)) else "value"


by_shape = Discriminator(shape)
VALUE, LIST, TABLE = Tag("value"), Tag("list"), Tag("table")


def shorthand(name: str) -> BeforeValidator:
    """Read `x = value` as `x = { name = value }`."""

    def expand(value: Any) -> Any:
        return value if isinstance(value, (dict, BaseModel)) else {name: value}

    return BeforeValidator(expand)


def ascending(what: str) -> Callable[[Any], Any]:
    """Check that a schedule starts at 0 and that its times ascend."""

    def check(steps: Any) -> Any:
        if not steps or steps[0][0] != 0:
            raise ValueError(f'a schedule of {what} must start at "0s"')
        for (before, _), (after, _) in itertools.pairwise(steps):
            if after <= before:
                raise ValueError(
                    f"times of a schedule must ascend, but {units.format_time(after)} follows "
                    f"{units.format_time(before)}"
                )
        return steps

    return check
