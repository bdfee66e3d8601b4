"""`astraea models`: the policies that come with Astraea."""

from __future__ import annotations

import json as jsonlib
from typing import Any

from rich.text import Text

from astraea import models as shipped
from astraea._native import MoccPolicy, SelectorPolicy
from astraea.cli.output import Json, out, table, write_json

LONG = ("recipe", "domain", "metrics")
"""Metadata that are shown as JSON only."""


def models(json: Json = False) -> None:
    """List the shipped policies: form, network, training and results; [b]NAME.md[/b] beside each file is its card.

    Each is a scheme of [b]astraea run --cc[/b] too. Those of other papers were trained anew, to be compared with; they
    have no file.
    """
    found = [_describe(name) for name in [*shipped.names(), *shipped.RIVALS]]
    if json:
        write_json(found)
        return
    columns = ("form", "network", "weights", "period ms", "alpha", "seed")
    rows = [
        [
            Text(entry["name"], "bold"),
            entry["form"],
            entry["shape"],
            str(entry["weights"]),
            entry.get("period_ms", ""),
            entry.get("alpha", ""),
            entry.get("seed", ""),
        ]
        for entry in found
    ]
    out().print(table(["policy", *columns], rows))
    out().print(f"files and cards: {shipped.DIRECTORY}", soft_wrap=True)


def _describe(name: str) -> dict[str, Any]:
    """What a policy file says about itself; texts that are JSON as what they mean."""
    policy, card = shipped.load_any(name), shipped.DIRECTORY / f"{name}.md"
    file = None if name in shipped.RIVALS else shipped.path(name)
    entry: dict[str, Any] = policy.metadata | {"name": name, "file": file and str(file)}
    if isinstance(policy, SelectorPolicy):
        models = policy.models().values()
        entry["shape"] = f"{len(models)} x {entry['trees']} trees"
        entry["weights"] = sum(part.size for model in models for part in model[1:])
    else:
        layers = [*policy.weights(), *([policy.preference()] if isinstance(policy, MoccPolicy) else [])]
        entry["weights"] = sum(weights.size + bias.size for weights, bias in layers)
    entry["bytes"] = file and file.stat().st_size
    entry["card"] = str(card) if card.is_file() else None
    for key in LONG:
        if key in entry:
            entry[key] = _json(entry[key])
    return entry


def _json(text: str) -> Any:
    try:
        return jsonlib.loads(text)
    except ValueError:
        return text
