"""The points of a scenario's sweeps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from astraea.scenario.document import Document, load, names
from astraea.scenario.schema import Scenario, Sweep


@dataclass(frozen=True)
class Point:
    """One setting of the swept keys; without a sweep the only one, with no values and an empty label."""

    index: int
    label: str
    values: dict[str, Any]
    scenario: Scenario


def points(document: Document) -> list[Point]:
    """Every point of the document, checked, in the order in which they are run."""
    base = document.validate()
    settings = [setting for sweep in base.sweep for setting in _settings(sweep)] or [("", {})]
    return [
        Point(index, label, values, document.validate(values, label) if values else base)
        for index, (label, values) in enumerate(settings)
    ]


class Shipped(NamedTuple):
    """What a list of the shipped scenarios says of each; `source` is the figure that it is after, if it is one."""

    name: str
    title: str
    source: str
    points: int
    trials: int


def shipped() -> Iterator[Shipped]:
    """The scenarios that are shipped, by name."""
    for name in names():
        spread = points(load(name))
        scenario = spread[0].scenario
        yield Shipped(name, scenario.title, scenario.source, len(spread), scenario.trials)


def _settings(sweep: Sweep) -> list[tuple[str, dict[str, Any]]]:
    """Label and values of each point of one family."""
    combine = itertools.product if sweep.mode == "product" else zip
    settings = [dict(zip(sweep.vary, values, strict=True)) for values in combine(*sweep.vary.values())]
    if len(settings) == 1 and sweep.label:
        return [(sweep.label, settings[0])]
    varying = [key for key, values in sweep.vary.items() if len(values) > 1] or list(sweep.vary)
    family = f"{sweep.label}: " if sweep.label else ""
    labels = (family + ", ".join(f"{_short(key)} {values[key]}" for key in varying) for values in settings)
    return list(zip(labels, settings, strict=True))


def _short(key: str) -> str:
    """The part of a dotted key that tells it from others in a label: "link.bottleneck.rate" -> "rate"."""
    return key.rpartition(".")[2]
