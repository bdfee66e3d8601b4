"""A still picture of flows that converge, for a README: SVG or PNG, without a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import vl_convert

from astraea.files import write_whole
from astraea.report import theme
from astraea.report.block import representative
from astraea.report.charts.base import Context, Spec
from astraea.report.charts.throughput import throughput
from astraea.report.errors import ReportError
from astraea.report.run import load


def converging(
    run_dir: Path,
    out: Path,
    *,
    schemes: Sequence[str] | None = None,
    trial: int | None = None,
    mode: theme.Mode = "either",
    width: int = 880,
    height: int = 190,
) -> Path:
    """Draw the flows' throughput over time, one panel per scheme, into `out` (.svg or .png).

    Of a sweep, its first point. `schemes` selects and orders the panels (default: all); `trial` is a number as in
    results.json (default: the representative one); `width` of the picture and `height` of a panel are in pixels.
    Mode "either" has no background and colours that are legible on white and on black. Raises
    `ReportError` with one line for bad input; the file appears whole or not at all.
    """
    if out.suffix not in (".svg", ".png"):
        raise ReportError(f"{out}: unknown kind of picture; expected a name ending in .svg or .png")
    run = load(run_dir)
    run = run.at(run.points[0])
    for cc in schemes or ():
        if cc not in run.schemes:
            raise ReportError(f"{run_dir}: no scheme {cc!r}; it has {', '.join(run.schemes)}")
    run = replace(run, schemes=list(schemes or run.schemes))
    number = representative(run)[0] if trial is None else trial
    index = theme.scheme_index(run.schemes)
    chart = throughput(Context.of(run, index, number, (number,)))
    if chart is None:
        raise ReportError(f"{run_dir}: no throughput was recorded for trial {number}")
    config = theme.vega_config(mode)
    config["range"] = {"ordinal": theme.flow_colours(mode, chart.flows)}
    spec = _still(chart.spec, _rows(chart.data["throughput"]["lines"]), width, height)
    if out.suffix == ".svg":
        return write_whole(out, vl_convert.vegalite_to_svg(spec, config=config).encode())
    return write_whole(out, vl_convert.vegalite_to_png(spec, config=config, scale=2))


def _still(spec: Spec, rows: list[dict[str, Any]], width: int, height: int) -> Spec:
    """The page's specification with its data and size, without what reacts to a pointer."""
    columns = min(len(spec["facet"]["sort"]), 3)
    inner = (width - 62 - 18 * (columns - 1)) / columns
    layers = [layer for layer in spec["spec"]["layer"] if "params" not in layer]
    return {
        **spec,
        "data": {"values": rows},
        "columns": columns,
        "spec": {"layer": layers, "width": inner, "height": height},
    }


def _rows(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per point of packed lines."""
    return [
        {**{key: line.get(key) for key in ("cc", "kind", "key", "name")}, "t": line["t0"] + i * line["dt"], "y": y}
        for line in lines
        for i, y in enumerate(line["y"])
    ]
