"""Everything the page shows about one run: a block, or one for each point of its sweep."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from astraea.report import setup
from astraea.report.block import Block, block, drawn
from astraea.report.charts import Chart
from astraea.report.charts.sweep import sweep
from astraea.report.charts.throughput import MAX_FLOWS
from astraea.report.run import Point, Run
from astraea.report.sampling import POINTS, spread
from astraea.report.table import Table, headline

VALUE_BUDGET = 250_000
"""Values of lines over time per run, about 1.6 MB of JSON. Trials beyond it cannot be selected."""
MAX_POINTS = 16
"""Points of a sweep that get a block of their own."""
SCENARIO_LIMIT = 20_000
"""Characters of the resolved scenario that are shown; long schedules are in results.json."""


@dataclass(frozen=True)
class Section:
    """One run, ready for the template. `overview` compares the points of a sweep."""

    anchor: str
    run: Run
    setup: str
    overall: Table
    overview: Chart | None
    blocks: list[Block]
    scenario_text: str

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script needs, by the anchor of the block."""
        blocks = {part.anchor: part.data for part in self.blocks}
        overview = {f"{self.anchor}--sweep": drawn(self.run.schemes, [self.overview])} if self.overview else {}
        return overview | blocks

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is needed to run it again: label and text."""
        results = self.run.results
        seeds = sorted({trial.seed for trial in self.run.trials if trial.seed is not None})
        host = results.get("host") or {}
        return [
            (name, text)
            for name, text in (
                ("Command", _text(results.get("command"))),
                ("Version", f"Astraea {results.get('astraea_version', 'unknown')}"),
                ("Backend", _text(results.get("backend"))),
                ("Seeds", _ranges(seeds)),
                ("Trials", ", ".join(f"{cc} {len(self.run.of(cc))}" for cc in self.run.schemes)),
                ("Emulation", self._lateness),
                ("Host", ", ".join(f"{key} {_text(value)}" for key, value in host.items())),
                ("Directory", self.run.path.name),
            )
            if text
        ]

    @property
    def _lateness(self) -> str:
        late = [trial.lateness_ms for trial in self.run.trials if trial.lateness_ms is not None]
        return f"at most {max(late):.2g} ms late for 99.9 % of the packets of each trial" if late else ""

    @property
    def real(self) -> bool:
        """Whether real traffic was measured."""
        return any(trial.lateness_ms is not None for trial in self.run.trials)

    @property
    def unfaithful(self) -> list[str]:
        """Trials whose links were not emulated faithfully: a line for each."""
        return [f"{trial.cc}, seed {trial.seed}: {problem}" for trial in self.run.trials for problem in trial.problems]


def section(run: Run, index: Mapping[str, int], anchor: str) -> Section:
    """The section of `run`; `index` numbers the schemes over the whole page."""
    text = json.dumps(run.scenario, indent=2, ensure_ascii=False)
    if len(text) > SCENARIO_LIMIT:
        text = text[:SCENARIO_LIMIT] + "\n… (the rest is in results.json)"
    detailed = _detailed(run)
    budget = VALUE_BUDGET // len(detailed)
    return Section(
        anchor=anchor,
        run=run,
        setup=setup.sentence(run),
        overall=headline(run),
        overview=sweep(run, index) if len(run.points) > 1 else None,
        blocks=[
            block(run.at(point), index, anchor if len(run.points) == 1 else f"{anchor}--p{number}", point.label, budget)
            for number, point in enumerate(detailed)
        ],
        scenario_text=text,
    )


def _detailed(run: Run) -> list[Point]:
    """The points that get a block of their own: as many as the budget allows, evenly over the sweep."""
    flows = max(len(trial.flows) for trial in run.trials) + 2
    limit = VALUE_BUDGET // (POINTS * min(flows, MAX_FLOWS) * len(run.schemes))
    return spread(run.points, max(2, min(MAX_POINTS, limit)))


RESERVED = ("top", "theme", "metrics", "reproduce", "report-data")
"""Identifiers of the page itself."""


def anchors(runs: list[Run]) -> list[str]:
    """One unique, readable fragment identifier per run, without the `--` that stands before what belongs to it."""
    found: list[str] = [*RESERVED]
    for run in runs:
        base = re.sub(r"[^a-z0-9]+", "-", run.title.lower())[:48].strip("-") or "run"
        name, count = base, 2
        while name in found:
            name, count = f"{base}-{count}", count + 1
        found.append(name)
    return found[len(RESERVED) :]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _ranges(seeds: list[int]) -> str:
    """1, 2, 3, 7 as "1-3, 7"."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]} to {p[-1]}" for p in parts)
