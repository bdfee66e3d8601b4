"""Subcommands that work on this host: `astraead` does them, a program that needs no Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import typer

from astraea.cli import ending
from astraea.host import PROGRAM, program

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Every argument, `--help` too, is for `astraead` to read."""

COMMANDS = {
    "doctor": "Say what this machine allows, and what each missing thing disables.",
    "link": "Start a shell, or a command, behind an emulated link.",
    "attach": "Run a policy as a congestion controller of this kernel.",
    "detach": "Unregister the controller again.",
    "status": "Show what the controller does.",
    "serve": "Answer the requests of many senders.",
}
"""Their summaries."""


def become(name: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by `astraead NAME ARGUMENTS`. Raises `UserError` if there is no such program."""
    path = program()
    sys.stdout.flush()
    ending.due()
    os.execv(path, [PROGRAM, name, *arguments])


def hand_over(name: str, summary: str) -> Callable[[typer.Context], None]:
    """A subcommand that replaces this process by `astraead NAME`."""

    def command(context: typer.Context) -> None:
        become(name, context.args)

    command.__doc__ = summary
    return command
