"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from astraea.report.errors import ReportError


def write_whole(out: Path, content: bytes) -> Path:
    """Write `content` to `out` through a temporary file beside it; `ReportError` if that fails."""
    temporary: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        temporary.chmod(0o644)
        os.replace(temporary, out)  # noqa: PTH105 - says that it is atomic
    except OSError as error:
        raise ReportError(f"{out}: cannot be written: {error.strerror}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return out
