"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from astraea.errors import UserError


def write_whole(path: Path, content: bytes) -> Path:
    """Write `content` to `path` through a temporary file beside it; `UserError` if that fails."""
    temporary: Path | None = None
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a device or a pipe: to be written to, not to be replaced
            return path
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        temporary.chmod(0o644)
        os.replace(temporary, path)  # noqa: PTH105 - says that it is atomic
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return path
