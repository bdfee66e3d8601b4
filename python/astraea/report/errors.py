"""The one exception of the report."""

from __future__ import annotations

from astraea.errors import UserError


class ReportError(UserError, ValueError):
    """A run directory cannot be read: one line with what, where and what was expected."""
