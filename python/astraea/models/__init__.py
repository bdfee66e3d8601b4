"""The policies that come with Astraea, and policies in files.

Each is a file NAME.safetensors with a card NAME.md beside it: recipe, results, known weaknesses. The native module has
them built in as schemes of the same names.
"""

from __future__ import annotations

from pathlib import Path

from astraea import _native
from astraea.errors import UserError, nearest

DIRECTORY = Path(__file__).resolve().parent

SUFFIX = ".safetensors"
"""How the name of a policy file ends."""


def names() -> list[str]:
    """The shipped policies."""
    return sorted(file.stem for file in DIRECTORY.glob(f"*{SUFFIX}"))


def path(text: str) -> Path:
    """The file of a shipped policy, or the path itself of one that ends in .safetensors. Raises `UserError`."""
    if text.endswith(SUFFIX):
        return Path(text)
    known = names()
    if text not in known:
        raise UserError(
            f'no policy "{text}"{nearest(text, known)} (shipped: {", ".join(known) or "none"}; '
            f"the name of a file ends in {SUFFIX})"
        )
    return DIRECTORY / f"{text}{SUFFIX}"


def read(file: Path) -> _native.Policy:
    """The policy in a file. Raises `UserError`."""
    try:
        return _native.Policy.load(file)
    except ValueError as error:
        raise UserError(str(error)) from None


def load(text: str) -> _native.Policy:
    """A shipped policy by its name, or the policy in a file. Raises `UserError`."""
    return read(path(text))
