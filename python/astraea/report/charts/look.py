"""How schemes look: the same colour, shape and dash in every chart of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from astraea.report import theme


@dataclass(frozen=True)
class Look:
    """Encodings by scheme. `index`: scheme -> number on the page."""

    schemes: Sequence[str]
    index: Mapping[str, int]

    def colour(self, *, legend: bool) -> dict[str, Any]:
        """Colour; the page fills the `category` range in the order of this domain."""
        return {**self._by_scheme("category"), "legend": LEGEND if legend else None}

    def shape(self) -> dict[str, Any]:
        """Shape of marks."""
        return {**self._by_scheme(self._picked(theme.SHAPES)), "legend": None}

    def dash(self) -> dict[str, Any]:
        """Dash of lines; its legend merges with that of the colour."""
        return {**self._by_scheme(self._picked(theme.DASHES)), "legend": LEGEND}

    def _by_scheme(self, values: Any) -> dict[str, Any]:
        scale = {"domain": list(self.schemes), "range": values}
        return {"field": "cc", "type": "nominal", "title": None, "scale": scale}

    def _picked(self, values: Sequence[Any]) -> list[Any]:
        return [theme.pick(values, self.index[cc]) for cc in self.schemes]


LEGEND = {"symbolType": "stroke", "symbolSize": 300}
