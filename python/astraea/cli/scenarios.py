"""`astraea scenarios`: what can be given to `astraea run`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from astraea.cli.output import Json, out, table, write_file, write_json
from astraea.scenario import document
from astraea.scenario.points import Shipped, shipped


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
    if json:
        write_json([each._asdict() for each in shipped()])
    else:
        shown: list[list[str | Text]] = [[Text(name, "bold"), *map(str, rest)] for name, *rest in shipped()]
        out().print(table(Shipped._fields, shown, numbers=2))
