"""`astraea scenarios`: what can be given to `astraea run`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from astraea.cli.output import Json, out, table, write_file, write_json
from astraea.scenario import document
from astraea.scenario.points import points


def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="Print the file of this scenario.",
            autocompletion=document.names,
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the scenarios that are shipped, or print one of them to start a new one from.

    Example: [b]astraea scenarios three-flows > mine.toml[/b]
    """
    if name is not None:
        if json:
            write_json(document.load(name).validate().model_dump(mode="json"))
        else:
            write_file(document.text_of(document.find(name)))
        return
    rows = []
    for each in document.names():
        loaded = document.load(each)
        spread = points(loaded)
        scenario = spread[0].scenario
        rows.append((each, scenario.title, scenario.source, len(spread), scenario.trials))
    columns = ("name", "title", "source", "points", "trials")
    if json:
        write_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        shown: list[list[str | Text]] = [[Text(row[0], "bold"), *map(str, row[1:])] for row in rows]
        out().print(table(columns, shown, numbers=2))
