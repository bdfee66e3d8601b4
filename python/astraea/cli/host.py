"""Subcommands that work on this host: `astraead` does them, a program that needs no Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

from astraea.host import PROGRAM, program

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Every argument, `--help` too, is for `astraead` to read."""


def hand_over(name: str, summary: str) -> Callable[[typer.Context], None]:
    """A subcommand that replaces this process by `astraead NAME`."""

    def command(context: typer.Context) -> None:
        path = program()
        sys.stdout.flush()
        os.execv(path, [PROGRAM, name, *context.args])

    command.__doc__ = summary
    return command
