"""`astraea run`: schemes on a scenario."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from astraea.cli import summary
from astraea.cli.output import Json, Quiet, err, out
from astraea.errors import UserError
from astraea.eval import registry, results, runner
from astraea.eval.trial import TrialKey
from astraea.scenario import document


def run(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help="Name of a scenario, or path of a .toml file.", autocompletion=document.names
        ),
    ],
    *,
    cc: Annotated[
        list[str] | None,
        typer.Option(
            "--cc",
            metavar="SCHEME,…",
            help="Schemes to run, separated by commas: [b]cubic[/b], [b]cubic:hystart=off[/b], "
            "[b]file.py:ClassName[/b].  [dim]\\[default: cubic][/dim]",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a key of the scenario; may be repeated.", show_default=False
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials of each scheme at each point.", show_default="the scenario's")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of the first trial; the next has one more.")
    ] = 1,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Trials at the same time.", show_default="one per core")
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Mahimahi trace for the bottleneck.", show_default=False)
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where results go.", show_default="out/SCENARIO"),
    ] = None,
    report: Annotated[bool, typer.Option(help="Write report.html beside the results.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run schemes on a scenario and write results.json, series.parquet, links.parquet and report.html.

    Example: [b]astraea run three-flows --cc cubic,newreno --trials 3[/b]
    """
    loaded = document.load(scenario, settings or ())
    if trace is not None:
        loaded.change(f"link.{_bottleneck(loaded)}.trace", trace, "--trace")
    directory = directory or Path("out") / loaded.name
    results.check_writable(directory)
    schemes = registry.split(cc or ())
    with tempfile.TemporaryDirectory(prefix="astraea-") as scratch:
        laid = runner.plan(loaded, schemes, seed=seed, directory=Path(scratch), trials=trials)
        with _progress(laid, shown=not quiet and not json) as on_done:
            outcome = runner.run(laid, jobs=jobs or os.cpu_count() or 1, on_done=on_done)
    if not outcome.results:
        err().print("astraea: interrupted before a trial had finished; nothing was written")
        raise typer.Exit(130)
    command = _command(scenario, schemes=schemes, settings=settings or [], trials=trials, seed=seed, trace=trace)
    found = results.build(laid, outcome, command)
    results.write(directory, found, outcome)
    page = _report(directory) if report else None
    if json:
        typer.echo(results.text(found), nl=False)
    elif not quiet:
        out().print(summary.of(found))
        out().print(f"results: {directory / results.RESULTS}", soft_wrap=True)
        if page is not None:
            out().print(f"report:  {page}", soft_wrap=True)
    if outcome.interrupted:
        err().print(
            f"astraea: interrupted: kept the {len(outcome.results)} finished of {len(laid.keys)} trials in {directory}",
            soft_wrap=True,
        )
        raise typer.Exit(130)


def _bottleneck(loaded: document.Document) -> str:
    """The link that `--trace` means."""
    links = loaded.raw.get("link")
    names = list(links) if isinstance(links, dict) else []
    if "bottleneck" in names:
        return "bottleneck"
    if len(names) == 1:
        return str(names[0])
    example = f"--set link.{names[0] if names else 'NAME'}.trace=FILE"
    raise UserError(f'--trace: {loaded.path.name} has no link "bottleneck"; expected {example}')


def _command(
    scenario: str, *, schemes: list[str], settings: list[str], trials: int | None, seed: int, trace: str | None
) -> list[str]:
    """The command that gives the same results, without what does not matter to them."""
    options: list[tuple[str, Any]] = [("--cc", ",".join(schemes) or None)]
    options += [("--set", setting) for setting in settings]
    options += [("--trials", trials), ("--seed", seed), ("--trace", trace)]
    given = [text for option, value in options if value is not None for text in (option, str(value))]
    return ["astraea", "run", scenario, *given]


def _report(directory: Path) -> Path:
    # Charts are only needed now, and slow to import.
    from astraea import report

    page = directory / "report.html"
    report.build([directory], page)
    return page


@contextmanager
def _progress(laid: runner.Plan, *, shown: bool) -> Iterator[Any]:
    """A progress bar over the trials, on a terminal."""
    console = err()
    if not shown or not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(laid.document.name, total=len(laid.keys))

        def on_done(key: TrialKey) -> None:
            bar.update(
                task, advance=1, description=" ".join(filter(None, (laid.document.name, key.cc, key.point.label)))
            )

        yield on_done
