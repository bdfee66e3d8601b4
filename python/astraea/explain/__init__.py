"""Why a policy is fair, or is not: what it does as delay and throughput vary, and what can be proved of it.

`model` answers what a policy does in a steady state, `signs` and `grid` make up the `certificate`, `figures` and `page`
show it. See docs/explain.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from astraea.errors import UserError
from astraea.explain import figures, page
from astraea.explain.certificate import certificate
from astraea.explain.model import Model
from astraea.files import write_together

SCHEMA = 1
"""Version of the layout of explain.json."""


def explain(model: Model) -> dict[str, Any]:
    """Everything that is known about a policy; the object of explain.json."""
    return {
        "schema": SCHEMA,
        "model": model.name,
        "form": model.form,
        "alpha": model.alpha,
        "shape": model.shape,
        "activation": model.activation,
        "actions": figures.actions(model),
        "equilibria": figures.equilibria(model),
        "certificate": certificate(model),
    }


def write(found: dict[str, Any], directory: Path) -> list[Path]:
    """Write explain.json, the figures as SVG and PNG, and explain.html, which holds all of it; returns the files."""
    charts = {"actions": figures.actions_chart(found), "equilibria": figures.equilibria_chart(found)}
    drawings = {name: figures.svg(chart) for name, chart in charts.items()}
    files = {"explain.json": (json.dumps(found, indent=1, allow_nan=False) + "\n").encode()}
    for name, chart in charts.items():
        files |= {f"{name}.svg": drawings[name].encode(), f"{name}.png": figures.png(chart)}
    files["explain.html"] = page.render(found, drawings).encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{directory}: cannot be made: {error.strerror}") from None
    return write_together({directory / name: content for name, content in files.items()})
