"""`astraea report`: one page from one or several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from astraea.cli.output import Json, Quiet, out, write_json


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Directories written by astraea run.")],
    page: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page.", show_default="report.html in the first DIR"),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page with the tables and charts of one or several runs.

    Example: [b]astraea report out/three-flows out/cellular --out report.html[/b]
    """
    # Charts are only needed now, and slow to import.
    from astraea import report as pages

    page = page or runs[0] / "report.html"
    pages.build(runs, page)
    if json:
        write_json({"report": str(page)})
    elif not quiet:
        out().print(f"report:  {page}", soft_wrap=True)
