"""The replay memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astraea.errors import UserError


@dataclass(frozen=True)
class Layout:
    """A transition as one row: `g s a`, what the critics see; `g2 s2`, n periods later; `r`; `discount`.

    One row is one copy when sampled, and its first part needs no putting together.
    """

    g: int
    """Values of the global state."""
    s: int
    """Values of the local state."""

    @property
    def here(self) -> slice:
        """Global state, local state and action."""
        return slice(0, self.g + self.s + 1)

    @property
    def there(self) -> slice:
        """Global and local state n periods later."""
        return slice(self.here.stop, self.here.stop + self.g + self.s)

    @property
    def reward(self) -> int:
        """Place of the reward."""
        return 2 * (self.g + self.s) + 1

    @property
    def discount(self) -> int:
        """Place of the discount of what comes n periods later."""
        return self.reward + 1

    @property
    def width(self) -> int:
        """Values of a row."""
        return self.discount + 1

    def rows(self, transitions: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """Transitions as rows, shape (n, width)."""
        columns = [np.atleast_2d(transitions[name].T).T for name in ("g", "s", "a", "g2", "s2", "r", "discount")]
        rows = np.concatenate(columns, axis=1, dtype=np.float32)
        if rows.shape[1] != self.width:
            raise ValueError(f"transitions of {rows.shape[1]} values, expected {self.width}")
        return rows


class Replay:
    """A ring of the last `capacity` rows, sampled uniformly with replacement."""

    def __init__(self, capacity: int, layout: Layout, seed: int) -> None:
        self.layout = layout
        try:
            self.memory = np.empty((capacity, layout.width), np.float32)
        except MemoryError:
            raise UserError(f"td3.replay: {capacity} transitions do not fit into memory") from None
        self.size = 0
        self.position = 0
        self.generator = np.random.default_rng(seed)

    def add(self, rows: NDArray[np.float32]) -> None:
        """Append rows; the oldest make room."""
        capacity = len(self.memory)
        rows = rows[-capacity:]
        first = min(len(rows), capacity - self.position)
        self.memory[self.position : self.position + first] = rows[:first]
        self.memory[: len(rows) - first] = rows[first:]
        self.position = (self.position + len(rows)) % capacity
        self.size = min(self.size + len(rows), capacity)

    def sample(self, out: NDArray[np.float32]) -> None:
        """Fill `out`, shape (n, width), with random rows."""
        drawn = self.generator.integers(0, self.size, len(out))
        self.memory.take(drawn, axis=0, out=out, mode="clip")

    def state(self) -> dict[str, Any]:
        """All that `restore` needs. The rows are a view, not a copy."""
        return {
            "rows": self.memory[: self.size],
            "position": self.position,
            "generator": self.generator.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a `state`."""
        rows = state["rows"]
        self.memory[: len(rows)] = rows
        self.size = len(rows)
        self.position = state["position"]
        self.generator.bit_generator.state = state["generator"]


MOST_MEMORY = 0.8
"""Share of the machine's memory that a training may ask for."""

DECISION, STATISTICS = 800, 80
"""Bytes that a decision takes at most while transitions are made of it; and, where statistics are kept for a reward of
one's own, those of each flow that is there."""


def check_memory(capacity: int, layout: Layout) -> None:
    """`UserError` if a memory of this size cannot be had on this machine."""
    needed, there = capacity * layout.width * 4, _memory()
    if needed > MOST_MEMORY * there:
        raise UserError(
            f"td3.replay: {capacity} transitions take {needed / 1e9:.1f} GB, more than 80 % of the "
            f"{there / 1e9:.1f} GB of this machine's memory"
        )


def check_rollouts(
    episodes: int, largest: tuple[float, float], capacity: int, layout: Layout, *, statistics: bool
) -> None:
    """`UserError` if an iteration's roll-outs may not fit beside that, all as the `largest` episode: decisions, flows.

    While they are run, the rows of the iteration before are still learnt from.
    """
    decisions, flows = largest
    row = layout.width * 4
    each = DECISION + row + (STATISTICS * flows if statistics else 0)
    needed, replay, there = episodes * decisions * each, capacity * row, _memory()
    if needed + replay > MOST_MEMORY * there:
        raise UserError(
            f"rollouts.episodes: {episodes} of up to {decisions:.0f} decisions and {flows:.0f} flows take up to "
            f"{needed / 1e9:.1f} GB{' with a reward of your own' if statistics else ''}, td3.replay "
            f"{replay / 1e9:.1f} GB, more than 80 % of the {there / 1e9:.1f} GB of this machine's memory; lower "
            "rollouts.episodes, environment.flows or environment.duration"
        )


def _memory() -> int:
    """Bytes of memory of this machine."""
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
