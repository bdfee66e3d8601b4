"""`astraea trace`: cellular and other traces of link capacity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from astraea.cli.output import Json, Quiet, out, table, write_json
from astraea.errors import UserError
from astraea.files import write_whole
from astraea.report.numbers import show
from astraea.scenario import units
from astraea.scenario.links import GeneratedTrace
from astraea.scenario.messages import explain
from astraea.trace import files
from astraea.trace.info import describe
from astraea.trace.model import generate as generate_trace

app = typer.Typer(help="Describe, generate and convert traces of link capacity.", no_args_is_help=True)

_MODEL = GeneratedTrace()


@app.command()
def info(
    traces: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Traces: Mahimahi, .csv or .json.")],
    json: Json = False,
) -> None:
    """Print length, rates over windows of one second, and gaps of traces."""
    found = {str(path): describe(files.read(path)).as_dict() for path in traces}
    if json:
        write_json(found)
        return
    columns = ("length s", "packets", "mean Mbit/s", "min", "max", "longest gap s", "in gaps > 0.1 s")
    rows = [
        [
            Path(name).name,
            show(entry["duration_s"]),
            f"{entry['opportunities']}",
            *(show(entry[key]) for key in ("mean_mbps", "min_mbps", "max_mbps", "longest_gap_s")),
            f"{entry['gap_share']:.1%}",
        ]
        for name, entry in found.items()
    ]
    out().print(table(["trace", *columns], rows, numbers=len(columns)))


@app.command()
def generate(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write: .csv, .json, else Mahimahi.")],
    *,
    mean: Annotated[str, typer.Option(help="Mean rate outside outages.")] = units.format_rate(_MODEL.mean),
    volatility: Annotated[
        float, typer.Option(help="Standard deviation of the rate's change in one second, as a share of the mean.")
    ] = _MODEL.volatility,
    outage: Annotated[str, typer.Option(help="Mean length of an outage.")] = units.format_time(_MODEL.outage),
    duration: Annotated[str, typer.Option(help="Length of the trace.")] = units.format_time(_MODEL.duration),
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = _MODEL.seed,
    quiet: Quiet = False,
) -> None:
    """Generate a cellular-like trace: a Poisson process whose rate wanders, with outages (docs/traces.md)."""
    given = {"mean": mean, "volatility": volatility, "outage": outage, "duration": duration, "seed": seed}
    try:
        model = GeneratedTrace.model_validate(given)
    except ValidationError as error:
        key, reason = explain(error, given)
        raise UserError(f"--{key}: {reason}" if key else reason) from None
    _write(path, generate_trace(model) * 1_000_000, 0.1, quiet)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="Trace to read: .csv, .json, else Mahimahi.")],
    target: Annotated[Path, typer.Argument(help="File to write: .csv, .json, else Mahimahi.")],
    window: Annotated[str, typer.Option(help="Windows over which .csv and .json have mean rates.")] = "100ms",
    quiet: Quiet = False,
) -> None:
    """Convert between Mahimahi's format and rates over time (columns time_s, rate_bps).

    From rates to Mahimahi, opportunities are as even as the rate allows; each rate lasts until the next row, the last
    as long as the one before it.
    """
    try:
        length = units.parse_span(window)
    except ValueError as error:
        raise UserError(f"--window: {error}") from None
    if length < units.NS // 1000:
        raise UserError(f'--window: expected at least 1ms, the resolution of traces, not "{window}"')
    _write(target, files.read(source), length / units.NS, quiet)


def _write(path: Path, times_ns: Any, window_s: float, quiet: bool) -> None:
    write_whole(path, files.render(times_ns, files.format_of(path), window_s).encode())
    if not quiet:
        entry = describe(times_ns)
        out().print(f"{path}: {show(entry.duration_s)} s, mean {show(entry.mean_mbps)} Mbit/s", soft_wrap=True)
