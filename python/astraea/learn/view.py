"""What is shown while a policy is trained."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from astraea.learn.log import Entry


class View:
    """Shows how far training has got: as a table that stays in its place on a terminal, else a line per validation."""

    def __init__(self, console: Console, updates: int, minutes: float | None, *, shown: bool = True) -> None:
        self.console = console
        self.shown = shown
        self.updates = updates
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._began = time.monotonic()
        self._first: int | None = None
        self._now: Entry = {}
        self._validated: Entry = {}
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=2, transient=True)

    def __enter__(self) -> Self:
        if self.shown and self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown and self.console.is_terminal:
            self._live.stop()

    def __call__(self, entry: Entry) -> None:
        """Take in an entry of the log."""
        self._now = self._now | entry
        if self._first is None:
            self._first = entry.get("updates", 0)
        if "validation.score" in entry:
            self._validated = entry
            if self.shown and not self.console.is_terminal:
                try:
                    self.console.print(self._line(), soft_wrap=True)
                except BrokenPipeError:  # nobody reads on, which is no reason to end a training
                    self.shown = False

    def _left(self) -> float | None:
        """Seconds until the end, as far as can be told."""
        now = time.monotonic()
        done = self._now.get("updates", 0)
        fresh = done - (self._first or 0)
        ends = [now + (now - self._began) * (self.updates - done) / fresh] if fresh > 0 else []
        if self.deadline is not None:
            ends.append(self.deadline)
        return max(0.0, min(ends) - now) if ends else None

    def _rows(self) -> list[tuple[str, str]]:
        now, validated = self._now, self._validated
        left = self._left()
        rows = [
            ("time left", "…" if left is None else _clock(left)),
            ("iteration", f"{now.get('iteration', 0)}"),
            ("updates", f"{now.get('updates', 0)} of {self.updates}"),
            ("decisions", f"{now.get('decisions', 0)}"),
        ]
        if "reward" in now:
            rows.append(("return (mean reward of a period)", f"{now['reward']:.4f}"))
        if validated:
            rows += [
                ("validation score (best)", f"{validated['validation.score']:.4f} ({validated['best']:.4f})"),
                ("Jain, mean (10 %)", f"{validated['validation.jain']:.4f} ({validated['validation.jain_p10']:.4f})"),
                ("utilisation", f"{validated['validation.utilization']:.4f}"),
                ("round-trip time / base", f"{validated['validation.rtt_inflation']:.2f}"),
                ("loss beyond the random", f"{validated['validation.loss']:.3%}"),
            ]
        return rows

    def _table(self) -> Table:
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim")
        table.add_column()
        for name, value in self._rows():
            table.add_row(name, value)
        return table

    def _line(self) -> str:
        validated = self._validated
        left = self._left()
        words = [
            f"iteration {validated['iteration']}",
            f"updates {self._now.get('updates', 0)}",
            *([f"return {self._now['reward']:.4f}"] if "reward" in self._now else []),
            f"score {validated['validation.score']:.4f}",
            f"Jain {validated['validation.jain']:.4f}",
            f"utilisation {validated['validation.utilization']:.4f}",
            *([f"{_clock(left)} left"] if left is not None else []),
        ]
        return ", ".join(words)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
