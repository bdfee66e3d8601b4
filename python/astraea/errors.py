"""The exception for everything that is the user's to correct."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input: one line that says where, what, and what was expected.

    The command line prints it as `astraea: <message>` and exits with status 2.
    """


def nearest(word: str, candidates: Iterable[str]) -> str:
    """`; did you mean "x"?` for the candidate most like `word`, or an empty string."""
    known = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    return f'; did you mean "{known[found[0]]}"?' if found else ""
