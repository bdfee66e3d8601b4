"""The exception for everything that is the user's to correct."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class UserError(Exception):
    """Bad input: one line that says where, what, and what was expected.

    The command line prints it as `astraea: <message>` and exits with status 2. Lines of a quoted value are joined.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


def nearest(word: str, candidates: Iterable[str]) -> str:
    """`; did you mean "x"?` for the candidate most like `word`, or an empty string."""
    known = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    return f'; did you mean "{known[found[0]]}"?' if found else ""


def said(value: object, how: Callable[[object], str] = str) -> str:
    """What somebody else's object says of itself, or the name of its type where its own methods fail."""
    try:
        return how(value)
    except Exception:
        return f"<{type(value).__name__}>"


def check_text(name: str, text: str) -> None:
    """Raise `UserError` for bytes of a name that are no UTF-8: files of a run cannot hold them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{name}: {text!r} is not UTF-8 text") from None
