"""Files that appear whole or not at all, and what tells one from another."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from astraea.errors import UserError

MOST_LINKS = 40
"""Symbolic links in a row that Linux follows."""


def digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; `UserError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def write_whole(path: Path, content: bytes) -> Path:
    """Write `content` to `path` through a temporary one beside it; `UserError` if that fails."""
    return write_together({path: content})[0]


def write_together(contents: Mapping[Path, bytes]) -> list[Path]:
    """Write each content to its path as `write_whole` does, none before all have found room; returns the paths."""
    with ExitStack() as temporaries:
        written = [(_beside(path, content, temporaries), path) for path, content in contents.items()]
        for temporary, path in written:
            if temporary is not None:
                try:
                    os.replace(temporary, _target(path))  # noqa: PTH105 - says that it is atomic
                except OSError as error:
                    raise _unwritten(path, error) from None
    return list(contents)


def _beside(path: Path, content: bytes, temporaries: ExitStack) -> Path | None:
    """A file with `content`, in a directory beside the one to replace that `temporaries` removes.

    None where nothing can be replaced: a device, a pipe or a descriptor of this process is written to at once.
    """
    try:
        if (descriptor := _descriptor(path)) is not None:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
            return None
        target, there = _target(path), _status(path)
        if there is not None and not (stat.S_ISREG(there.st_mode) and target.exists() and target.samefile(path)):
            path.write_bytes(content)
            return None
        staging = temporaries.enter_context(tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-"))
        temporary = Path(staging, target.name)
        temporary.write_bytes(content)
        if there is not None:
            temporary.chmod(stat.S_IMODE(there.st_mode))
    except OSError as error:
        raise _unwritten(path, error) from None
    return temporary


def _target(path: Path) -> Path:
    """The file that a path leads to: of a link that which it points to, so that the link stays."""
    return Path(os.path.realpath(path))


def _status(path: Path) -> os.stat_result | None:
    """What is at a path, None if nothing is."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _descriptor(path: Path) -> int | None:
    """The descriptor of this process that a path such as /dev/stdout stands for, None if it is another path.

    What is written through it goes where the process's output goes, to its end, whether that is a file or not.
    """
    own = os.path.realpath("/proc/self/fd")
    for _ in range(MOST_LINKS):
        if not path.is_symlink():
            break
        if os.path.realpath(path.parent) == own:
            return int(path.name)
        path = path.parent / path.readlink()
    return None


def _unwritten(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot be written: {error.strerror}")
