"""The report: run directories in, one self-contained HTML page out.

`build` writes the page, `load` reads a run directory, `picture.converging` draws the static figure
of flows that converge. Bad input raises `ReportError`, whose message is one line.
"""

from astraea.report.errors import ReportError
from astraea.report.page import build
from astraea.report.run import Run, Trial, load

__all__ = ["ReportError", "Run", "Trial", "build", "load"]
