"""`astraea run`: schemes on a scenario."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from astraea.cli import summary
from astraea.cli.output import Json, Quiet, err, out, write_file
from astraea.eval import api, layout, registry, results, runner
from astraea.eval import backend as backends
from astraea.eval.trial import TrialKey
from astraea.scenario import document
from astraea.scenario.schema import MAX_SEED, MAX_TRIALS
from astraea.scenario.units import NS


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
            autocompletion=lambda: list(registry.native()),
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a key of the scenario; may be repeated.", show_default=False
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_TRIALS, help="Trials of each scheme at each point.", show_default="the scenario's"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the first trial; the next has one more.")] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            max=1024,
            help="Simulated trials at the same time (real traffic: always one, they would disturb each other).",
            show_default="one per core",
        ),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Mahimahi trace for the bottleneck.", show_default=False)
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What carries the traffic: [b]sim[/b], the simulator; or over emulated links [b]kernel[/b], this "
            "machine's own TCP, or [b]quic[/b], QUIC connections under any scheme.",
            autocompletion=lambda: list(backends.NAMES),
        ),
    ] = "sim",
    max_lateness: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Emulated links: one packet in a thousand may be so late before a trial counts as unfaithful.",
            show_default="2ms",
        ),
    ] = None,
    decide: Annotated[
        str,
        typer.Option(
            metavar="WHO",
            help="Who decides for Astraea's policies: they themselves ([b]local[/b]), or an inference service, "
            "[b]service[/b] or [b]service=unix:PATH[/b].",
        ),
    ] = api.LOCAL,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With [b]--decide service=udp:…[/b]: the key that is shared with the service.",
            show_default=False,
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where results go.", show_default="out/SCENARIO"),
    ] = None,
    report: Annotated[bool, typer.Option(help="Write report.html beside the results.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run schemes on a scenario; write results.json, tables (series, links and completions.parquet) and report.html.

    Example: [b]astraea run three-flows --cc cubic,newreno --trials 3[/b]
    """
    directory = directory or Path("out") / document.find(scenario).stem
    results.check_writable(directory)
    with redirect_stdout(sys.stderr):  # what a controller prints is no result
        found = api.execute(
            scenario,
            cc or (),
            settings=settings or (),
            trials=trials,
            seed=seed,
            jobs=jobs,
            trace=trace,
            backend=backend,
            max_lateness=max_lateness,
            decide=decide,
            key=key,
            progress=functools.partial(_progress, quiet=quiet, bar=not quiet and not json),
        )
    if not found.trials:
        err().print("astraea: interrupted before a trial had finished; nothing was written")
        raise typer.Exit(130)
    found.write(directory)
    try:
        page = _report(directory) if report else None
    except KeyboardInterrupt:
        err().print(f"astraea: interrupted: the results are in {directory}, without a report", soft_wrap=True)
        raise typer.Exit(130) from None
    if json:
        write_file(results.text(found.content))
    elif not quiet:
        out(limited=False).print(summary.of(found.content))
        out().print(f"results: {directory / layout.RESULTS}", soft_wrap=True)
        if page is not None:
            out().print(f"report:  {page}", soft_wrap=True)
    _warn(found)
    if found.outcome.interrupted:
        done = f"{len(found.trials)} finished of {len(found.plan.keys)} trials"
        err().print(f"astraea: interrupted: kept the {done} in {directory}", soft_wrap=True)
        raise typer.Exit(130)


def _warn(found: api.Results) -> None:
    """Say what happened on real traffic that a reader of the numbers should know."""
    late = [trial for trial in found.trials if trial.get("unfaithful")]
    if late:
        first = late[0]
        problem = first["emulation"]["problems"][0]
        count = f"{len(late)} of {len(found.trials)} trials {'is' if len(late) == 1 else 'are'} unfaithful"
        err().print(f"astraea: {count}: {first['cc']}, seed {first['seed']}: {problem}", soft_wrap=True)
    decided = [trial["decisions"] for trial in found.trials if "decisions" in trial]
    if ruled := sum(counts["rule"] for counts in decided):
        every = ruled + sum(counts["service"] for counts in decided)
        count = f"the service left {ruled} of {every} decisions to the local rule"
        err().print(f"astraea: {count}", soft_wrap=True)
    failed = [(trial, flow) for trial in found.trials for flow in trial["flows"] if flow.get("failure")]
    if failed:
        trial, flow = failed[0]
        count = f"{len(failed)} {'flow' if len(failed) == 1 else 'flows'} failed"
        where = f"{trial['cc']}, seed {trial['seed']}, flow {flow['flow']}"
        err().print(f"astraea: {count}: {where}: {flow['failure']}", soft_wrap=True)


def _report(directory: Path) -> Path:
    # Charts are only needed now, and slow to import.
    from astraea import report

    page = directory / layout.PAGE
    report.build([directory], page)
    return page


@contextmanager
def _progress(laid: runner.Plan, *, quiet: bool, bar: bool) -> Iterator[Any]:
    """A progress bar over the trials, on a terminal; what is run in real time says how long that is."""
    console = err()
    left: ProgressColumn = TimeRemainingColumn()
    if not laid.backend.parallel and not quiet:
        seconds = [laid.resolve(key).config["duration_ns"] / NS for key in laid.keys]
        console.print(_real_time(seconds), soft_wrap=True)
        left = _TimeLeft(sum(seconds))
    if not bar or not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), left)
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(laid.document.name, total=len(laid.keys))

        def on_done(key: TrialKey) -> None:
            shown.update(
                task, advance=1, description=" ".join(filter(None, (laid.document.name, key.cc, key.point.label)))
            )

        yield on_done


def _real_time(seconds: Sequence[float]) -> str:
    """How long trials take that run one after the other in real time."""
    least, most, total = round(min(seconds)), round(max(seconds)), sum(seconds)
    each = f"{most} s" if least == most else f"{least} to {most} s"
    count = f"{len(seconds)} {'trial' if len(seconds) == 1 else 'trials'}"
    whole = f"{total:.0f} s" if total < 90 else f"{total / 60:.0f} min" if total < 120 * 60 else f"{total / 3600:.1f} h"
    return f"{count} of {each} in real time: about {whole}"


class _TimeLeft(ProgressColumn):
    """Counts down the seconds that are known beforehand: the first trial alone may take minutes."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def render(self, task: Task) -> Text:
        """The time that is left."""
        left = max(0, round(self._seconds - (task.elapsed or 0)))
        return Text(str(timedelta(seconds=left)), style="progress.remaining")
