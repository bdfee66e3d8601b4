"""The scenario file. `docs/scenario-format.md` is generated from its tables."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import model_validator

from astraea.scenario.fields import Span, Table, key
from astraea.scenario.flows import Flow
from astraea.scenario.links import Link

MAX_POINTS, MAX_TRIALS, MAX_SEED = 10_000, 100_000, 2**32 - 1
"""Most points of a family and trials of a point: more is a slip, and would fill the memory before anything runs."""


class Sweep(Table):
    """`[[sweep]]`: a family of points with different values. Families are run one after the other."""

    label: str = key(
        "",
        doc="Name of the family in results: alone where it has one point, else in front of what varies, "
        "`slow: rate 1Mbps`.",
    )
    mode: Literal["product", "zip"] = key(
        "product",
        doc='"product": every combination of values; "zip": the first of each key, the second of each, ...',
    )
    vary: dict[str, list[Any]] = key(
        doc='Keys with their values, written like `--set`: `"link.bottleneck.rate" = ["20Mbps", "50Mbps"]`.',
        min_length=1,
    )

    @model_validator(mode="after")
    def _values(self) -> Sweep:
        if "trials" in self.vary:
            raise ValueError('"trials" is the same for every point; expected a key of a link or a flow')
        lengths = {name: len(values) for name, values in self.vary.items()}
        for name, length in lengths.items():
            if length == 0:
                raise ValueError(f'"{name}" needs at least one value')
        if self.mode == "zip" and len(set(lengths.values())) > 1:
            raise ValueError("with mode zip, every key needs the same number of values")
        if self.mode == "product" and (points := math.prod(lengths.values())) > MAX_POINTS:
            raise ValueError(f"has {points} points; expected at most {MAX_POINTS}")
        return self


class Scenario(Table):
    """The file itself."""

    title: str = key("", doc="One line for headings.")
    source: str = key("", doc="Paper and figure that the set-up comes from.")
    trials: int = key(
        1,
        doc="Number of trials of each scheme at each point; trial k has the seed `--seed` + k.",
        ge=1,
        le=MAX_TRIALS,
    )
    duration: Span | None = key(
        None,
        doc="When the scenario ends, rounded up to whole slots of `record`. None: when the last flow ends, likewise.",
        unit="time",
    )
    record: Literal["10ms", "20ms", "50ms", "100ms"] = key(
        "10ms", doc="Length of the slots in which series are recorded and metrics computed."
    )
    series: Literal["all", "first", "none"] = key(
        "all",
        doc="Trials whose series are written to series.parquet and links.parquet: all, the first of every "
        "scheme and point, or none.",
    )
    link: dict[str, Link] = key(doc="The links.", min_length=1)
    flow: list[Flow] = key(doc="The flows.", min_length=1)
    sweep: list[Sweep] = key([], doc="Points to run; none: the scenario as it stands.")
