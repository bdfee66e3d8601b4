"""`astraea explain`: what a policy does, and what is certain about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from astraea import models
from astraea.cli.output import Json, Quiet, out, write_json


def explain(
    policy: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A shipped policy, or a .safetensors file.", autocompletion=models.names),
    ],
    directory: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where the figures go.", show_default="out/explain-MODEL"),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show why a policy is fair or is not: its actions, where flows rest, and the fairness certificate.

    Example: [b]astraea explain astraea[/b]
    """
    # Charts are only needed now, and slow to import.
    from astraea import explain as explaining
    from astraea.explain import model

    loaded = model.load(policy)
    found = explaining.explain(loaded)
    page = explaining.write(found, directory or Path("out") / f"explain-{_place(loaded.name, policy)}")[-1]
    if json:
        write_json(found)
    elif not quiet:
        for line in _lines(found["certificate"]):
            out().print(line, soft_wrap=True)
        out().print(f"page:  {page}", soft_wrap=True)


def _place(name: str, policy: str) -> str:
    """The name of a policy; of a training's, which are all called alike, that of the training's directory."""
    return Path(policy).resolve().parent.name if name == "policy" else name


def _lines(certificate: dict[str, Any]) -> list[str]:
    from astraea.explain.certificate import percent

    grid = certificate["grid"]
    shares = (
        ("falls_with_delay", "of the flows take less as the delay grows"),
        ("crosses_zero_once", "rest at one delay"),
        ("rest_falls_with_throughput", "of neighbours: the faster one rests at the smaller delay"),
        ("all", "all three"),
    )
    counted = [f"  {percent(grid[key]):>6} %  {text}" for key, text in shares]
    return [certificate["verdict"], f"grid of {grid['flows']} flows:", *counted, *grid["failures"]]
