"""Subcommands that work on this host: `astraead` does them, a program that needs no Python."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import typer

from astraea.errors import UserError

PROGRAM = "astraead"

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Every argument, `--help` too, is for `astraead` to read."""


def program() -> Path:
    """Where `astraead` is: `$ASTRAEAD`, beside the interpreter, or on the path. Raises `UserError` if nowhere."""
    named = os.environ.get("ASTRAEAD")
    if named:
        if not os.access(named, os.X_OK):
            raise UserError(f"ASTRAEAD: {named}: cannot be executed; expected the program {PROGRAM}")
        return Path(named)
    beside = Path(sys.executable).with_name(PROGRAM)
    if beside.exists():
        return beside
    found = shutil.which(PROGRAM)
    if found is None:
        raise UserError(f"{PROGRAM}: not found beside {sys.executable} nor on PATH; `make build` makes it")
    return Path(found)


def hand_over(name: str, summary: str) -> Callable[[typer.Context], None]:
    """The subcommand `name`, which replaces this process by `astraead NAME`."""

    def command(context: typer.Context) -> None:
        path = program()
        sys.stdout.flush()
        os.execv(path, [PROGRAM, name, *context.args])

    command.__doc__ = summary
    return command
