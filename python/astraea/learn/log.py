"""The record of a training: one line of JSON per iteration, and TensorBoard."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
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
        kept = [] if iteration is None else [line for line in _lines(path) if _iteration(path, line) <= iteration]
        write_whole(path, "".join(f"{line}\n" for line in kept).encode())
        self._file: IO[str] = path.open("a", encoding="utf-8")
        self._board = _board(directory / TENSORBOARD, iteration)

    def write(self, entry: Entry) -> None:
        """Append an entry. What is not a finite number is null."""
        clean = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in entry.items()
        }
        self._file.write(json.dumps(clean, allow_nan=False) + "\n")
        self._file.flush()
        for name, value in clean.items():
            if isinstance(value, int | float) and name != "iteration":
                self._board.add_scalar(name.replace(".", "/"), value, entry["iteration"])

    def close(self) -> None:
        """Write out what TensorBoard holds back."""
        self._file.close()
        self._board.close()


def _board(directory: Path, iteration: int | None) -> Any:
    """TensorBoard's writer. A run that is resumed hides what it wrote after its checkpoint."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(directory), purge_step=None if iteration is None else iteration + 1, flush_secs=10)


def _iteration(path: Path, line: str) -> int:
    try:
        return int(json.loads(line)["iteration"])
    except (ValueError, KeyError, TypeError):
        shown = line if len(line) <= 40 else line[:37] + "..."
        raise UserError(f"{path}: expected lines of a training's log, not {shown}") from None


def _lines(path: Path) -> list[str]:
    """The whole lines of the log, without one that was cut short."""
    with contextlib.suppress(FileNotFoundError):
        return [line for line in path.read_text(encoding="utf-8").split("\n")[:-1] if line]
    return []


def flatten(prefix: str, values: Mapping[str, float]) -> Entry:
    """Names with a prefix: `validation.jain`."""
    return {f"{prefix}.{name}": value for name, value in values.items()}
