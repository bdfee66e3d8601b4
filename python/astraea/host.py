"""Where the program `astraead` is, which does the work on this host."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from astraea.errors import UserError

PROGRAM = "astraead"


def program() -> Path:
    """Where `astraead` is: `$ASTRAEAD`, beside the interpreter, or on the path. Raises `UserError` if nowhere."""
    named = os.environ.get("ASTRAEAD")
    if named:
        if not os.access(named, os.X_OK):
            raise UserError(f"ASTRAEAD: {named}: cannot be executed; expected the program {PROGRAM}")
        return Path(named)
    beside = Path(sys.executable).with_name(PROGRAM)
    if beside.exists():
        return beside
    found = shutil.which(PROGRAM)
    if found is None:
        raise UserError(f"{PROGRAM}: not found beside {sys.executable} nor on PATH; `make build` makes it")
    return Path(found)
