"""What the subcommands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no tables; errors only.")]


UNLIMITED = 10_000
"""Columns of what has no right margin."""


class Output(Console):
    """Shows text as it is: paths and titles may have brackets. What is to have a style is a `Text`.

    Lines are as long as they are where no terminal shows them: what reads them looks for whole words.
    """

    def __init__(self, *, stderr: bool = False, limited: bool = True) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        if not limited or not (self.is_terminal or "COLUMNS" in os.environ):
            self.width = UNLIMITED

    def on_broken_pipe(self) -> None:
        """Leave it to `main` that nobody reads on."""
        raise BrokenPipeError


def out(*, limited: bool = True) -> Output:
    """Standard output; unlimited, lines may be longer than the terminal's."""
    return Output(limited=limited)


def err() -> Output:
    """Standard error."""
    return Output(stderr=True)


def write_json(value: Any) -> None:
    """Print a JSON document."""
    write_file(json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def write_file(text: str) -> None:
    """Print a document for programs: UTF-8, whatever else standard output has."""
    typer.echo(text.encode(errors="surrogateescape") if hasattr(sys.stdout, "buffer") else text, nl=False)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str | Text]], *, numbers: int = 0, title: str = "", whole: int = 0
) -> Table:
    """A table whose last `numbers` columns are right-aligned; where room is short, all but column `whole` may wrap."""
    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        right = index >= len(columns) - numbers
        made.add_column(column, justify="right" if right else "left", no_wrap=index == whole, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def fitting(tables: Iterable[Table]) -> Table:
    """The first table that there is room for, or the last one."""
    console = out()
    options = console.options.update(width=UNLIMITED)
    for made in tables:
        if console.measure(made, options=options).maximum <= console.width:
            break
    return made
