"""The charts of a run, one file each."""

from __future__ import annotations

from astraea.report.charts.base import Chart, Context
from astraea.report.charts.completion import completion
from astraea.report.charts.convergence import convergence
from astraea.report.charts.delay import delay
from astraea.report.charts.jain import jain
from astraea.report.charts.throughput import throughput
from astraea.report.charts.tradeoff import tradeoff

BUILDERS = (throughput, delay, jain, convergence, tradeoff, completion)
"""In the order of the page. Each gives None where its data were not recorded."""


def charts(context: Context) -> list[Chart]:
    """Every chart for which the run has data."""
    return [chart for builder in BUILDERS if (chart := builder(context)) is not None]


__all__ = ["Chart", "Context", "charts"]
