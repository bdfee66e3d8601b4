"""`astraea train`: a policy from a configuration."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from astraea.cli import ending
from astraea.cli.output import Json, Quiet, err, out, write_json
from astraea.errors import UserError

if TYPE_CHECKING:
    from astraea.learn.loop import Training

DIVERGED = 1
"""Exit status of a training that had to be ended."""

MOST_MINUTES = 1e6
"""Longest session, two years: further ahead no clock can be set."""


def _names() -> list[str]:
    from astraea.learn import config

    return config.names()


def train(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG", help="Name of a shipped configuration, or path of a .toml file.", autocompletion=_names
        ),
    ],
    *,
    directory: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where the run goes.", show_default="out/train/CONFIG"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**63 - 1, help="Seed of all randomness.", show_default="the configuration's"),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.0, help="Stop after so many minutes.", show_default="when the updates are done"),
    ] = None,
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="Where the networks are trained.")] = "cpu",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in DIR.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a policy on simulated networks; write policy.safetensors, log.jsonl, tensorboard and checkpoint to DIR.

    Ctrl-C ends it after the present iteration; [b]--resume[/b] goes on from there. Needs the extra [b]train[/b].

    Example: [b]astraea train astraea --out out/mine --minutes 5[/b]
    """
    from astraea.learn import config as configuration

    if minutes is not None and not minutes <= MOST_MINUTES:
        raise UserError(
            f"--minutes: expected a number of at most {MOST_MINUTES:.0f}; without it the training goes on until the "
            "updates are done"
        )
    path = configuration.find(config)
    directory = directory or Path("out") / "train" / path.stem
    if resume and seed is None:
        seed = configuration.seed_of(directory)
    settings = configuration.load(path, seed)
    _check_extra()
    _check_device(device)
    from astraea.learn import start
    from astraea.learn.divergence import Divergence
    from astraea.learn.view import View

    ending.due()  # from here on Ctrl-C means something else
    with View(err(), settings.run.updates, minutes, shown=not quiet and not json) as view, _ctrl_c() as interrupted:
        training = start.training(settings, directory, device=device, resume=resume, show=view, source=path.name)
        try:
            training.run(minutes, interrupted)
            reason = None
        except Divergence as error:
            reason = str(error)
    _report(training, directory, reason, json=json, quiet=quiet)
    if reason is not None:
        err().print(f"astraea: training was stopped: {reason}", soft_wrap=True)
        raise typer.Exit(DIVERGED)
    if interrupted():
        err().print(f"astraea: interrupted: --resume goes on from {directory}", soft_wrap=True)
        raise typer.Exit(130)


def _check_extra() -> None:
    """PyTorch and what belongs to it, without the seconds that importing it takes."""
    missing = [name for name in ("torch", "tensorboard") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"training needs {', '.join(missing)}, of the extra train; in the checkout: make extra-train")


def _check_device(device: str) -> None:
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise UserError("--device cuda: PyTorch finds no GPU on this machine")


@contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks training to stop after the iteration; another one ends it at once."""
    asked = False

    def ask(_: int, __: FrameType | None) -> None:
        nonlocal asked
        asked = True
        # As everywhere else: not in the middle of a file.
        signal.signal(signal.SIGINT, before if callable(before) else signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _report(training: Training, directory: Path, reason: str | None, *, json: bool, quiet: bool) -> None:
    """What came of it."""
    from astraea.learn.start import POLICY

    best = training.best
    if json:
        write_json(
            {
                "policy": str(directory / POLICY) if best else None,
                "iterations": training.iteration,
                "updates": training.learner.updates,
                "decisions": training.decisions,
                "best": {"iteration": best.iteration, **best.score.as_dict()} if best else None,
                "diverged": reason,
            }
        )
    elif not quiet and best is not None:
        score = best.score
        out().print(
            f"best after iteration {best.iteration} of {training.iteration}: score {score.score:.4f}, "
            f"Jain {score.jain:.4f}, utilisation {score.utilization:.4f}"
        )
        out().print(f"policy: {directory / POLICY}", soft_wrap=True)
