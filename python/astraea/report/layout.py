"""What the report needs of results.json. Whatever else is in it is left alone."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

Number = Annotated[float, Field(ge=-1e18, le=1e18)]
"""Not so large that sums and other units would be infinite."""


class Interval(BaseModel):
    """Mean of a metric over trials, with its interval."""

    mean: Number
    low: Number | None = None
    high: Number | None = None


Summary = dict[str, dict[str, Interval]]
"""Scheme -> metric -> interval."""


class FlowEntry(BaseModel):
    """One flow of a trial; times in ns."""

    cc: str | None = None
    start_ns: Number | None = None
    end_ns: Number | None = None


class Emulation(BaseModel):
    """How well links were emulated; times in ns."""

    problems: list[str] = []
    lateness_p999_ns: Number | None = None


class TrialEntry(BaseModel):
    """One trial of one scheme."""

    cc: str
    trial: int = 0
    seed: int | None = None
    metrics: dict[str, Number | None]
    flows: list[FlowEntry] = []
    point: dict[str, Any] = {}
    point_index: int | None = None
    unfaithful: bool = False
    emulation: Emulation = Emulation()


class PointEntry(BaseModel):
    """One setting of a sweep."""

    values: dict[str, Any] = {}
    summary: Summary = {}


class Group(BaseModel):
    """Flows that are alike."""

    count: int = 1


class Scenario(BaseModel):
    """What was run."""

    flow: list[Group] = []


class Results(BaseModel):
    """The file."""

    scenario: Scenario
    summary: Summary
    trials: Annotated[list[TrialEntry], Field(min_length=1)]
    points: list[PointEntry] = []


_WORDS = {"missing": "this key is missing", "too_short": "expected at least one", "model_type": "expected an object"}


def mistake(results: dict[str, Any]) -> str | None:
    """What is wrong with a file, as one line with its key and what was expected; None if nothing is."""
    try:
        Results.model_validate(results, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = _WORDS.get(first["type"], first["msg"].replace("Input should be", "expected"))
        return f"{'.'.join(map(str, first['loc']))}: {reason}"
    return None
