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
app.command("doctor", context_settings=host.CONTEXT)(
    host.hand_over("doctor", "Say what this machine allows, and what each missing thing disables.")
)
app.command("link", context_settings=host.CONTEXT)(
    host.hand_over("link", "Start a shell, or a command, behind an emulated link.")
)
app.command("attach", context_settings=host.CONTEXT)(
    host.hand_over("attach", "Run a policy as a congestion controller of this kernel.")
)
app.command("detach", context_settings=host.CONTEXT)(host.hand_over("detach", "Unregister the controller again."))
app.command("status", context_settings=host.CONTEXT)(host.hand_over("status", "Show what the controller does."))
app.command("serve", context_settings=host.CONTEXT)(host.hand_over("serve", "Answer the requests of many senders."))
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
