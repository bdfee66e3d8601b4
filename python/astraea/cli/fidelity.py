"""`astraea fidelity`: the simulator beside real traffic."""

from __future__ import annotations

import functools
import os
import platform
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from astraea import __version__
from astraea.cli.output import Json, Quiet, err, fitting, out, table, write_json
from astraea.errors import UserError
from astraea.eval import registry, results
from astraea.eval.backend import make
from astraea.fidelity import settings
from astraea.scenario.schema import MAX_SEED

DURATION, QUICK_DURATION = "30s", "5s"


def fidelity(
    *,
    cc: Annotated[
        list[str] | None,
        typer.Option("--cc", metavar="SCHEME,…", help="Schemes to compare.", show_default=",".join(settings.SCHEMES)),
    ] = None,
    directory: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the comparison goes.")] = Path(
        "out/fidelity"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Four settings for 5 s each.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Every combination: 145 settings, hours.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only settings whose name has this in it.", show_default=False)
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What the simulator is compared with: [b]kernel[/b] or [b]quic[/b], as for astraea run.",
        ),
    ] = "kernel",
    trials: Annotated[int, typer.Option(min=1, max=100, help="Trials of each scheme in each setting.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the first trial; the next has one more.")] = 1,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="Length of each trial.", show_default=DURATION)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the same settings in the simulator and on real traffic, and report how far they are apart.

    Needs what [b]astraea run --backend kernel[/b] needs; real traffic takes real time.
    """
    # Charts are only needed now, and slow to import.
    from astraea import fidelity as comparing

    if quick and full:
        raise UserError("--quick and --full exclude each other")
    length = (QUICK_DURATION if quick else DURATION) if duration is None else duration
    schemes = registry.split(cc) if cc else list(settings.SCHEMES)
    chosen = [
        setting
        for setting in (settings.QUICK if quick else settings.full() if full else settings.DEFAULT)
        if only is None or only in setting.name
    ]
    if not chosen:
        raise UserError(f'--only "{only}": no setting has this in its name; expected e.g. "100 Mbit/s, 30 ms"')
    settings.check_duration(length, chosen)
    if backend == "sim":
        raise UserError("--backend sim: that is what is compared; expected kernel or quic")
    results.check_writable(directory, comparing.FILES)
    kernel = make(backend)
    count = len(chosen) * len(schemes)
    with _progress(count * trials, shown=not quiet and not json) as on_done:
        finished = comparing.measure(
            chosen, schemes, kernel, duration=length, trials=trials, seed=seed, on_done=on_done
        )
    pairs = finished.pairs
    if not pairs:
        err().print("astraea: interrupted before a pair had finished; nothing was written")
        raise typer.Exit(130)
    given = [("--cc", ",".join(schemes) if cc else None), ("--only", only), ("--duration", duration)]
    given.append(("--backend", backend if backend != "kernel" else None))
    given.append(("--trials", str(trials) if trials > 1 else None))
    given.append(("--seed", str(seed) if seed != 1 else None))
    words = [text for option, value in given if value is not None for text in (option, value)]
    flags = [flag for flag, on in (("--quick", quick), ("--full", full)) if on]
    host = {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count(), **kernel.facts()}
    found = {
        "schema": 1,
        "astraea_version": __version__,
        "command": shlex.join(["astraea", "fidelity", *flags, *words]),
        "host": host,
        "backend": backend,
        "duration": length,
        "seed": seed,
        "interrupted": finished.interrupted,
        **comparing.compare(pairs),
    }
    page = comparing.write(directory, found, pairs)
    if json:
        write_json(found)
    elif not quiet:
        out().print(_table(found))
        for line in _lines(found["summary"]):
            out().print(line, soft_wrap=True)
        out().print(f"page: {page}", soft_wrap=True)
    if finished.interrupted:
        done = f"{len(pairs)} finished of {count} pairs"
        err().print(f"astraea: interrupted: kept the {done} in {directory}", soft_wrap=True)
        raise typer.Exit(130)


def _table(found: dict[str, Any]) -> Table:
    """All columns where there is room for them, the main ones elsewhere; the page has the rest."""
    return fitting([_columns(found, ("queue_delay_p95_ms",), ("loss", "jain")), _columns(found, (), ())])


def _columns(found: dict[str, Any], delays: Sequence[str], others: Sequence[str]) -> Table:
    from astraea.fidelity.write import TRAFFIC, change, number

    headings = {"queue_delay_p95_ms": "p95 ms", "loss": "loss %", "jain": "Jain"}
    relative = ("throughput_mbps", "queue_delay_ms", *delays)
    rows = []
    for pair in found["pairs"]:
        sim, kernel, gap = pair["sim"], pair[found["backend"]], pair["difference"]
        late = Text.assemble(pair["cc"], (" late", "red")) if pair["unfaithful"] else pair["cc"]
        row = [pair["setting"], late]
        for name in relative:
            row += [number(kernel[name]), change(gap[name])]
        for name in others:
            scale = 100 if name == "loss" else 1
            row += [number(None if side[name] is None else scale * side[name]) for side in (kernel, sim)]
        rows.append(row)
    columns = ["setting", "scheme", "Mbit/s", "±%", "delay ms", "±%"]
    columns += [text for name in delays for text in (headings[name], "±%")]
    columns += [text for name in others for text in (headings[name], "sim")]
    title = f"Of {TRAFFIC[found['backend']]}, and the simulator's difference from it"
    return table(columns, rows, numbers=len(columns) - 2, title=title, whole=1)


def _lines(summary: dict[str, Any]) -> Iterator[Text]:
    from astraea.fidelity.compare import BOUNDS

    titles = {"throughput_mbps": "throughput", "queue_delay_ms": "mean delay", "queue_delay_p95_ms": "p95 delay"}
    for cc, part in summary.items():
        shares = [
            f"{title} within {100 * bound:g} %: {100 * part[name]['within'][f'{bound:g}']:.0f} %"
            for name, title in titles.items()
            if name in part
            for bound in BOUNDS[name]
        ]
        line = Text(f"{cc}, {part['pairs']} pairs: {', '.join(shares)}")
        yield line.append(f"; {part['unfaithful']} unfaithful", "red") if part["unfaithful"] else line


@contextmanager
def _progress(count: int, *, shown: bool) -> Iterator[Any]:
    """A progress bar over the trials on real traffic, on a terminal."""
    console = err()
    if not shown or not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("fidelity", total=count)
        yield functools.partial(_advance, bar, task)


def _advance(bar: Progress, task: Any, name: str) -> None:
    bar.update(task, advance=1, description=name)
