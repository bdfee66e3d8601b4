"""The command `astraea`, one module per subcommand."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from astraea.cli import ending

USER_ERROR, INTERRUPTED = 2, 130
"""Exit statuses for bad input, and for Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process) and return its exit status.

    Whatever the user can correct is one line on standard error.
    """
    _prepare()
    try:
        with ending.by_signals():
            return _run(None if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except ending.ToldToEnd as end:
        return 128 + int(end.args[0])
    except BrokenPipeError:  # the reader has gone: `astraea schemes | head`
        _silence()
        return 0
    except OSError as error:
        if error.filename is None:
            _silence()
        return _complain(f"{error.filename or 'output'}: {error.strerror or error}")


def _run(arguments: list[str] | None) -> int:
    # Imported here, because that takes most of a second, in which Ctrl-C may come.
    import typer

    from astraea.cli import host
    from astraea.cli.app import app
    from astraea.errors import UserError

    given = sys.argv[1:] if arguments is None else arguments
    try:
        if given and given[0] in host.COMMANDS:
            host.become(given[0], given[1:])  # all of them: a parser would take away the "--" before a command
        status = typer.main.get_command(app).main(args=arguments, prog_name="astraea", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        return _complain(str(error))
    except typer.TyperException as error:
        return _complain(error.format_message())
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as error:  # what the parser makes of a reader that has gone
        if isinstance(error.__context__, BrokenPipeError):
            raise BrokenPipeError from None
        raise
    return status if isinstance(status, int) else 0


def _prepare() -> None:
    """Make standard output and error take whatever is printed: they may be closed, or lack characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream is sys.stdout:
            stream.reconfigure(errors="backslashreplace")  # as standard error has it


def _silence() -> None:
    """Keep Python from trying once more at exit to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> int:
    if message:  # a group of commands given alone has printed its help
        sys.stderr.write(f"astraea: {' '.join(message.split())}\n")
    return USER_ERROR
