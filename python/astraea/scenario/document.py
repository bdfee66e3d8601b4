"""Finding and reading scenario files."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from astraea.errors import UserError, check_text, nearest
from astraea.scenario import overrides, topology
from astraea.scenario.messages import explain
from astraea.scenario.schema import Scenario

_SHIPPED = Path(str(resources.files("astraea"))) / "scenarios"


@dataclass
class Document:
    """A scenario file as written, with the changes of the command line.

    `name` is that of the file without ".toml", `path` where it lies (relative trace files start there).
    """

    name: str
    path: Path
    raw: dict[str, Any]
    changed: dict[str, str] = field(default_factory=dict)
    """Keys set on the command line, each key of a table too, and the option that set them."""

    @property
    def shipped(self) -> bool:
        """Whether the file came with Astraea, whose version then says what is in it."""
        return self.path.parent == _SHIPPED

    def change(self, key: str, value: Any, option: str = "--set") -> None:
        """Set one key; a sweep that would set it anew is dropped."""
        try:
            walked = overrides.set_key(self.raw, key, value)
        except UserError as error:
            raise UserError(f"{option} {error}") from None
        keys = overrides.keys_of(walked, value)
        self.changed |= dict.fromkeys((walked, *sorted(keys)), option)
        self._drop_from_sweeps(set().union(*map(overrides.replaced_by, keys)))

    def entitle(self, changes: Sequence[str]) -> None:
        """Name what was changed in the title, unless that was set as well.

        "Three flows, 40 s apart" is not true of what was run with flow.0.start.every=10s.
        """
        title = self.raw.get("title", "")
        if changes and "title" not in self.changed and isinstance(title, str):
            self.raw["title"] = f"{title or self.path.stem} ({', '.join(changes)})"

    def base(self, key: str) -> Path:
        """Where a relative file in `key` starts: what is typed on the command line, where it is typed."""
        return Path() if key in self.changed else self.path.parent

    def _drop_from_sweeps(self, keys: set[str]) -> None:
        """Stop sweeping `keys`, the tables that they are part of, and what was in them."""
        sweeps = self.raw.get("sweep")
        for sweep in sweeps if isinstance(sweeps, list) else []:
            vary = sweep.get("vary") if isinstance(sweep, dict) else None
            if isinstance(vary, dict):
                sweep["vary"] = {key: vary[key] for key in vary if not overrides.overlaps(self._walked(key), keys)}
        if isinstance(sweeps, list):
            self.raw["sweep"] = [sweep for sweep in sweeps if not (isinstance(sweep, dict) and sweep.get("vary") == {})]

    def _walked(self, key: str) -> str:
        """`key` with names of groups as indices."""
        try:
            return overrides.set_key(copy.deepcopy(self.raw), key, None)
        except UserError:
            return key  # validate() will say what is wrong with it

    def validate(self, changes: dict[str, Any] | None = None, label: str = "") -> Scenario:
        """The checked scenario, with the values of one point of a sweep applied.

        Raises `UserError` naming file (or option), key and what was expected.
        """
        raw = copy.deepcopy(self.raw)
        where = f"{self.path.name}: sweep {label}" if label else self.path.name
        for key, value in (changes or {}).items():
            try:
                overrides.set_key(raw, key, value)
            except UserError as error:
                raise UserError(f"{where}: {error}") from None
        try:
            scenario = Scenario.model_validate(raw)
            topology.check(scenario)
        except ValidationError as error:
            key, reason = explain(error, raw)
        except topology.TopologyError as error:
            key, reason = error.key, error.reason
        else:
            return scenario
        option = next((self.changed[name] for name in self.changed if f"{key}.".startswith(f"{name}.")), None)
        prefix = f"{option} {key}" if option else f"{where}: {key}"
        raise UserError(f"{prefix}: {reason}" if key else f"{where}: {reason}")


def names() -> list[str]:
    """Names of the scenarios that are shipped, sorted."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def find(scenario: str) -> Path:
    """The file of a scenario, given by name or by path."""
    check_text("scenario", scenario)
    if scenario.endswith(".toml") or "/" in scenario:
        path = Path(scenario)
        if not path.is_file():
            raise UserError(f"{scenario}: no such scenario file")
        return path
    if scenario not in names():
        raise UserError(
            f'no scenario "{scenario}"{nearest(scenario, names())} (`astraea scenarios` lists them; '
            "a file needs its ending .toml)"
        )
    return _SHIPPED / f"{scenario}.toml"


def text_of(path: Path) -> str:
    """What is in a scenario's file, without a byte-order mark."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise UserError(f"{path.name}: {reason}") from None


def load(scenario: str, settings: Iterable[str] = ()) -> Document:
    """Read a scenario by name or path and apply `settings`, each "key=value"; the title then names them."""
    path = find(scenario)
    try:
        raw = tomllib.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path.name}: not valid TOML: {error}") from None
    document = Document(path.stem, path, raw)
    settings = list(settings)
    for setting in settings:
        document.change(*overrides.parse(setting))
    document.entitle(settings)
    return document
