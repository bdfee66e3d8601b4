"""What the page shows about one setting of one scenario: a table and charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from astraea.report import theme
from astraea.report.charts import Chart, Context, charts
from astraea.report.charts.throughput import MAX_FLOWS
from astraea.report.glossary import metric
from astraea.report.run import Run
from astraea.report.sampling import POINTS, spread
from astraea.report.table import Table, headline

REPRESENTED_BY = ("jain", "convergence_settle_s", "utilization", "queue_delay_ms", "fct_s")


@dataclass(frozen=True)
class Block:
    """One point of a sweep, or the whole run where there is none. `label` is empty in the latter case."""

    anchor: str
    label: str
    run: Run
    table: Table
    charts: list[Chart]
    shown: int
    embedded: list[int]
    why_shown: str
    recorded: int
    """Trials whose series were recorded."""

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script needs."""
        return drawn(self.run.schemes, self.charts, self.shown)

    @property
    def position(self) -> int:
        """Number of the trial in view, from 1."""
        return self.run.trial_numbers.index(self.shown) + 1

    @property
    def why_shown_title(self) -> str:
        """The metric by which the trial in view was chosen, as readers know it."""
        title = metric(self.why_shown).title
        return title if title.startswith(("Jain", "RTT")) else title.lower()


def drawn(schemes: list[str], figures: list[Chart], shown: int | None = None) -> dict[str, Any]:
    """Charts of one block as the page's script takes them."""
    return {
        "schemes": schemes,
        "shown": shown,
        "charts": {
            chart.key: {
                "spec": chart.spec,
                "data": chart.data,
                "panels": chart.panels,
                "height": chart.height,
                "flows": {mode: theme.flow_colours(mode, chart.flows) for mode in theme.MODES},
                "choices": dict(chart.choices),
                "choice": chart.choices[0][0] if chart.choices else None,
            }
            for chart in figures
        },
    }


def block(run: Run, index: Mapping[str, int], anchor: str, label: str, budget: int) -> Block:
    """The block of `run`, which has one point; `index` numbers the schemes over the whole page."""
    shown, why = representative(run)
    embedded = _embedded(run, shown, budget)
    made = charts(Context.of(run, index, shown, embedded))
    over_time = any(chart.panels for chart in made)
    return Block(
        anchor=anchor,
        label=label,
        run=run,
        table=headline(run),
        charts=made,
        shown=shown,
        embedded=embedded if over_time else [],
        why_shown=why,
        recorded=len(recorded(run)),
    )


def representative(run: Run) -> tuple[int, str]:
    """The trial that is shown first, and why: the one nearest to the schemes' medians."""
    numbers = recorded(run)
    for name in REPRESENTED_BY:
        distance = dict.fromkeys(numbers, 0.0)
        seen = False
        for cc in run.schemes:
            values = {t.number: v for t in run.of(cc) if (v := t.metrics.get(name)) is not None}
            if len(values) < 2:
                continue
            seen = True
            middle = float(np.median(list(values.values())))
            scale = float(np.std(list(values.values()))) or 1.0
            for number in numbers:
                # A trial that lacks the value is no representative of it.
                distance[number] += abs(values[number] - middle) / scale if number in values else 9.0
        if seen:
            return min(numbers, key=lambda number: distance[number]), name
    return numbers[0], ""


def recorded(run: Run) -> list[int]:
    """The trials that can be drawn over time: those with series; all where there are none."""
    if run.series is None or not run.series.height:
        return run.trial_numbers
    return sorted(run.series["trial"].unique().to_list())


def _embedded(run: Run, shown: int, budget: int) -> list[int]:
    """The trials to embed: all that have a series, or as many as a budget of values allows."""
    if run.series is None:
        return [shown]
    flows = min(MAX_FLOWS, run.series["flow"].n_unique()) + 2
    limit = max(1, budget // (POINTS * flows * len(run.schemes)))
    others = [number for number in recorded(run) if number != shown]
    return sorted([shown, *spread(others, limit - 1)])
