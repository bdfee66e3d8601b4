"""`astraea schemes`: what can be given to --cc."""

from __future__ import annotations

from typing import Any

from astraea.cli.output import Json, out, table, write_json
from astraea.eval import registry
from astraea.scenario import units


def schemes(json: Json = False) -> None:
    """List the congestion-control schemes and their parameters.

    A parameter is set with [b]--cc NAME:PARAMETER=VALUE[/b]; a controller in a Python file is [b]file.py:ClassName[/b].
    """
    known = registry.native()
    if json:
        write_json(list(known.values()))
        return
    rows = []
    for name, scheme in known.items():
        rows.append([f"[b]{name}[/b]", scheme["title"], str(scheme["year"] or ""), scheme["reference"]])
        rows += [["", f"  {_parameter(param)}", "", param["doc"]] for param in scheme["params"]]
    out().print(table(["name", "scheme", "year", "reference"], rows))


def _parameter(param: dict[str, Any]) -> str:
    """A parameter with its default as it would be written after --cc."""
    name, default, unit = param["name"], param["default"], param["unit"]
    match unit:
        case registry.SWITCH:
            value = "on" if default else "off"
        case "bit/s":
            value = units.format_rate(default)
        case "s":
            value = units.format_time(round(default * units.NS))
        case "bytes":
            value = units.format_size(default)
        case "1" | "":
            value = f"{default:g}"
        case _:
            value = f"{default:g} ({unit})"
    return f"{name}={value}"
