"""The record of a training: one line of JSON per iteration, and TensorBoard."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from astraea.errors import UserError
from astraea.files import write_whole

NAME, TENSORBOARD = "log.jsonl", "tensorboard"

Entry = dict[str, Any]
"""Numbers by name; `iteration` is always there."""


class Log:
    """Appends to `DIR/log.jsonl` and `DIR/tensorboard`; each entry is there when `write` returns."""

    def __init__(self, directory: Path, iteration: int | None) -> None:
        """Open the log of a run that begins (None), or goes on after `iteration`: later entries are dropped."""
        path = directory / NAME
        kept = [] if iteration is None else [line for line, of in _lines(path) if of <= iteration]
        write_whole(path, b"".join(line + b"\n" for line in kept))
        self._path = path
        with _in_one_line(path):
            self._file: IO[str] = path.open("a", encoding="utf-8")
        self._board = _Board(directory / TENSORBOARD, iteration)

    def write(self, entry: Entry) -> None:
        """Append an entry. What is not a finite number is null."""
        clean = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in entry.items()
        }
        with _in_one_line(self._path):
            self._file.write(json.dumps(clean, allow_nan=False) + "\n")
            self._file.flush()
        numbers = {name: value for name, value in clean.items() if isinstance(value, int | float)}
        self._board.write(entry["iteration"], numbers)

    def close(self) -> None:
        """Close the files."""
        with contextlib.ExitStack() as both:
            both.callback(self._board.close)
            both.enter_context(_in_one_line(self._path))
            self._file.close()


class _Board:
    """A session's file for TensorBoard.

    TensorBoard's own writer has a thread, which prints a traceback where the disk is full, and loses what it holds.
    """

    def __init__(self, directory: Path, iteration: int | None) -> None:
        """Begin a file; that of a run which goes on after `iteration` hides what others say of later ones."""
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        # Their names are in the order of the sessions.
        self._path = directory / f"events.out.tfevents.{time.time_ns()}.{os.getpid()}"
        with _in_one_line(self._path):
            directory.mkdir(exist_ok=True)
            self._records = RecordWriter(self._path.open("xb"))
        self._append(file_version="brain.Event:2")
        if iteration is not None:
            self._append(step=iteration + 1, session_log=SessionLog(status=SessionLog.START))

    def write(self, iteration: int, numbers: Mapping[str, float]) -> None:
        """Append the numbers of an iteration."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=name.replace(".", "/"), simple_value=number)
            for name, number in numbers.items()
            if name != "iteration"
        ]
        self._append(step=iteration, summary=Summary(value=values))

    def _append(self, **event: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        with _in_one_line(self._path):
            self._records.write(Event(wall_time=time.time(), **event).SerializeToString())
            self._records.flush()

    def close(self) -> None:
        with _in_one_line(self._path):
            self._records.close()


@contextlib.contextmanager
def _in_one_line(path: Path) -> Iterator[None]:
    """What the system says against writing, as a `UserError` with the file."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


def _lines(path: Path) -> list[tuple[bytes, int]]:
    """The lines of the log, each with its iteration, without an end that cannot be read.

    A process that is killed leaves half a line, a power cut NULs or what another file had there. An end is nothing to
    miss: what came after the checkpoint is worked out again. Before readable lines, and instead of any, it is no log.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    lines = [line for line in content.rstrip(b"\0").split(b"\n")[:-1] if line]
    iterations = [_iteration(line) for line in lines]
    end = max((place + 1 for place, of in enumerate(iterations) if of is not None), default=len(lines))
    readable = []
    for line, of in zip(lines[:end], iterations[:end], strict=True):
        if of is None:
            shown = "".join(each if each.isprintable() else "\ufffd" for each in line.decode(errors="replace"))
            shown = shown if len(shown) <= 40 else shown[:37] + "..."
            raise UserError(f"{path}: expected lines of a training's log, not {shown}")
        readable.append((line, of))
    return readable


def _iteration(line: bytes) -> int | None:
    """The iteration that a line is of, None if it is no line of a log."""
    try:
        of = json.loads(line.decode())["iteration"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return of if type(of) is int else None


def flatten(prefix: str, values: Mapping[str, float]) -> Entry:
    """Names with a prefix: `validation.jain`."""
    return {f"{prefix}.{name}": value for name, value in values.items()}
