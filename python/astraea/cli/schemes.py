"""`astraea schemes`: what can be given to --cc."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from astraea.cli.output import Json, out, table, write_json
from astraea.eval import registry
from astraea.eval.backend import NAMES
from astraea.scenario import units


def schemes(json: Json = False) -> None:
    """List the congestion-control schemes, the backends that run them, and their parameters.

    A parameter is set with [b]--cc NAME:PARAMETER=VALUE[/b]; a controller in a Python file is [b]file.py:ClassName[/b].
    """
    known = registry.native()
    backends = registry.backends()
    if json:
        write_json([{**scheme, "backends": backends[name]} for name, scheme in known.items()])
        return
    rows: list[list[str | Text]] = []
    for name, scheme in known.items():
        marks = [_mark(why) for why in backends[name].values()]
        rows.append([Text(name, "bold"), *marks, scheme["title"], str(scheme["year"] or ""), scheme["reference"]])
        rows += [["", *("" for _ in NAMES), f"  {_parameter(param)}", "", param["doc"]] for param in scheme["params"]]
    out().print(table(["name", *NAMES, "scheme", "year", "reference"], rows))
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, on in backends.items():
        for backend, reason in on.items():
            if reason is not None:
                reasons.setdefault((backend, reason), []).append(name)
    for (backend, reason), names in reasons.items():
        out().print(Text(f"not on {backend}: {', '.join(names)}: {reason}", "dim"), soft_wrap=True)


def _mark(why: str | None) -> str | Text:
    return "yes" if why is None else Text("–", "dim")


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
