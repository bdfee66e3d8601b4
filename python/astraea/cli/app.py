"""The application: subcommands and what all of them share."""

from __future__ import annotations

from typing import Annotated

import typer

from astraea import __version__
from astraea.cli import bench, explain, export, fidelity, host, models, report, run, scenarios, schemes, trace, train

app = typer.Typer(
    help="Simulate, evaluate and compare congestion-control schemes.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("schemes")(schemes.schemes)
app.command("scenarios")(scenarios.scenarios)
app.command("models")(models.models)
app.command("report")(report.report)
app.command("explain")(explain.explain)
app.command("train")(train.train)
app.command("export")(export.export)
app.command("fidelity")(fidelity.fidelity)
for name, summary in host.COMMANDS.items():
    app.command(name, context_settings=host.CONTEXT)(host.hand_over(name, summary))
app.add_typer(trace.app, name="trace")
app.add_typer(bench.app, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"astraea {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Simulate, evaluate and compare congestion-control schemes."""
