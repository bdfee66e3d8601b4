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
        self._known: dict[Path | GeneratedTrace, TraceFile] = {}

    def of(self, scenario: Scenario) -> dict[str, TraceFile]:
        """The trace of every trace-driven link, by the link's name. Raises `UserError` for a bad file."""
        found: dict[str, TraceFile] = {}
        for name, link in scenario.link.items():
            if link.trace is None:
                continue
            key = f"link.{name}.trace"
            trace = link.trace if isinstance(link.trace, GeneratedTrace) else self._document.base(key) / link.trace
            if trace not in self._known:
                self._known[trace] = self._prepare(trace, key, link.trace)
            found[name] = self._known[trace]
        return found

    def files(self) -> list[Path]:
        """The files that were found: those that were named, not generated."""
        return [trace for trace in self._known if isinstance(trace, Path)]

    def _prepare(self, trace: Path | GeneratedTrace, key: str, written: str | GeneratedTrace) -> TraceFile:
        if isinstance(trace, GeneratedTrace):
            path = self._directory / f"generated-{len(self._known)}.trace"
            path.write_text(files.mahimahi(generate(trace).tolist()), encoding="ascii")
        else:
            path = trace
            if not path.is_file():
                option = self._document.changed.get(key)
                given = f"{self._document.path.name}: {key}: {written}" if option is None else f"{option} {written}"
                raise UserError(f"{f'--set {key}={written}' if option == '--set' else given}: no such trace file")
        if files.format_of(path) != "mahimahi":
            raise UserError(f"{path}: expected a Mahimahi file; `astraea trace convert` makes one")
        return TraceFile(str(path), mean_rate(files.read(path)))
