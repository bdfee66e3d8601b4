"""The command `astraea`, one module per subcommand."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from astraea.cli.app import app
from astraea.errors import UserError

USER_ERROR, INTERRUPTED = 2, 130
"""Exit statuses for bad input, and for Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process) and return its exit status.

    Whatever the user can correct is one line on standard error.
    """
    try:
        status = typer.main.get_command(app).main(
            args=None if arguments is None else list(arguments), prog_name="astraea", standalone_mode=False
        )
    except UserError as error:
        return _complain(str(error))
    except typer.TyperException as error:
        return _complain(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`astraea schemes | head`); Python must not complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status if isinstance(status, int) else 0


def _complain(message: str) -> int:
    sys.stderr.write(f"astraea: {' '.join(message.split())}\n")
    return USER_ERROR
