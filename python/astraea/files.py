"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from astraea.errors import UserError


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
                    os.replace(temporary, path)  # noqa: PTH105 - says that it is atomic
                except OSError as error:
                    raise _unwritten(path, error) from None
    return list(contents)


def _beside(path: Path, content: bytes, temporaries: ExitStack) -> Path | None:
    """A file with `content`, in a directory beside `path` that `temporaries` removes; a device or a pipe is written."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return None
        staging = temporaries.enter_context(tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-"))
        temporary = Path(staging, path.name)
        temporary.write_bytes(content)
        temporary.chmod(0o644)
    except OSError as error:
        raise _unwritten(path, error) from None
    return temporary


def _unwritten(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: cannot be written: {error.strerror}")
