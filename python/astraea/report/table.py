"""The headline table: schemes by metrics, mean and 95 % interval, the best value marked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from astraea.report.glossary import METRICS, Metric, metric
from astraea.report.numbers import interval, show
from astraea.report.run import Run

Rank = Literal["best", "tie", ""]


@dataclass(frozen=True)
class Cell:
    """One value. `interval` is empty where there is none (fewer than three trials).

    `rank` "tie" means that the interval overlaps the best scheme's, so that the difference is not resolved.
    """

    text: str
    interval: str
    n: int | None
    rank: Rank


@dataclass(frozen=True)
class Table:
    """Columns in the order of the glossary; one row of cells per scheme."""

    metrics: list[Metric]
    rows: list[tuple[str, list[Cell]]]

    @property
    def has_best(self) -> bool:
        """Whether any column has a best value."""
        return any(cell.rank == "best" for cell in self._cells)

    @property
    def has_tie(self) -> bool:
        """Whether any cell is marked as a tie."""
        return any(cell.rank == "tie" for cell in self._cells)

    @property
    def has_interval(self) -> bool:
        """Whether any cell has an interval."""
        return any(cell.interval for cell in self._cells)

    @property
    def _cells(self) -> list[Cell]:
        return [cell for _, cells in self.rows for cell in cells]


def headline(run: Run) -> Table:
    """The table of `run`; metrics that no scheme has are left out."""
    known = [item.name for item in METRICS]
    present = {name for values in run.summary.values() for name, entry in values.items() if _mean(entry) is not None}
    names = [name for name in known if name in present] + sorted(present - set(known))
    metrics = [metric(name) for name in names]
    columns = [_column(run, item) for item in metrics]
    rows = [(cc, [column[position] for column in columns]) for position, cc in enumerate(run.schemes)]
    return Table(metrics, rows)


def _column(run: Run, item: Metric) -> list[Cell]:
    entries = [_entry(run.summary[cc].get(item.name)) for cc in run.schemes]
    costs = [_cost(_mean(entry), item) for entry in entries]
    best = min((cost for cost in costs if cost is not None), default=None)
    contest = len({cost for cost in costs if cost is not None}) > 1
    # The first of several equal bests lends its interval; equals are all "best" anyway.
    leader = entries[costs.index(best)] if best is not None else {}
    return [
        _cell(entry, item, _rank(entry, cost, best, leader) if contest else "")
        for entry, cost in zip(entries, costs, strict=True)
    ]


def _rank(entry: Mapping[str, Any], cost: float | None, best: float | None, leader: Mapping[str, Any]) -> Rank:
    if cost is None or best is None:
        return ""
    if cost == best:
        return "best"
    bounds = [_number(source.get(key)) for source in (entry, leader) for key in ("low", "high")]
    if any(bound is None for bound in bounds) or not (_spread(entry) and _spread(leader)):
        return ""
    low, high, leader_low, leader_high = (bound or 0.0 for bound in bounds)
    return "tie" if low <= leader_high and leader_low <= high else ""


def _cell(entry: Mapping[str, Any], item: Metric, rank: Rank) -> Cell:
    mean = _mean(entry)
    if mean is None:
        return Cell("–", "", None, "")
    around = ""
    if _spread(entry):
        low, high = (float(entry[key]) * item.scale for key in ("low", "high"))
        around = interval(mean * item.scale, low, high)
    return Cell(show(mean * item.scale), around, entry.get("n"), rank)


def _spread(entry: Mapping[str, Any]) -> bool:
    """Whether there is an interval."""
    return all(_number(entry.get(key)) is not None for key in ("low", "high"))


def _cost(mean: float | None, item: Metric) -> float | None:
    if mean is None or item.better == "unknown":
        return None
    return {"low": mean, "high": -mean, "one": abs(mean - 1.0)}[item.better]


def _entry(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mean(entry: Any) -> float | None:
    return _number(_entry(entry).get("mean"))


def _number(value: Any) -> float | None:
    usable = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if usable else None
