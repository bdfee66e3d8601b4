"""The trace files that the links of a scenario need, generated where the scenario says so."""

from __future__ import annotations

from pathlib import Path

from astraea.errors import UserError
from astraea.scenario.document import Document
from astraea.scenario.links import GeneratedTrace
from astraea.scenario.resolve import TraceFile
from astraea.scenario.schema import Scenario
from astraea.trace import files
from astraea.trace.info import mean_rate
from astraea.trace.model import generate


class TraceStore:
    """Finds, generates and measures traces; each only once. Generated ones lie in `directory`."""

    def __init__(self, document: Document, directory: Path) -> None:
        self._document = document
        self._directory = directory
        self._known: dict[str | GeneratedTrace, TraceFile] = {}

    def of(self, scenario: Scenario) -> dict[str, TraceFile]:
        """The trace of every trace-driven link, by the link's name. Raises `UserError` for a bad file."""
        found: dict[str, TraceFile] = {}
        for name, link in scenario.link.items():
            if link.trace is None:
                continue
            if link.trace not in self._known:
                self._known[link.trace] = self._prepare(link.trace, f"link.{name}.trace")
            found[name] = self._known[link.trace]
        return found

    def _prepare(self, trace: str | GeneratedTrace, key: str) -> TraceFile:
        if isinstance(trace, GeneratedTrace):
            path = self._directory / f"generated-{len(self._known)}.trace"
            path.write_text(files.mahimahi(generate(trace).tolist()), encoding="ascii")
        else:
            # What is typed on the command line is relative to where it is typed.
            option = self._document.changed.get(key)
            path = self._document.path.parent / trace if option is None else Path(trace)
            if not path.is_file():
                given = f"{self._document.path.name}: {key}: {trace}" if option is None else f"{option} {trace}"
                raise UserError(f"{f'--set {key}={trace}' if option == '--set' else given}: no such trace file")
        if files.format_of(path) != "mahimahi":
            raise UserError(f"{path}: expected a Mahimahi file; `astraea trace convert` makes one")
        return TraceFile(str(path), mean_rate(files.read(path)))
