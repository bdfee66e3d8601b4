"""Running a scenario from a program: `astraea.run` does what `astraea run` does, and returns what that writes."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from astraea import _native, models
from astraea.client import DEFAULT_ADDRESS
from astraea.errors import UserError, check_text
from astraea.eval import backend as backends
from astraea.eval import registry, results, runner
from astraea.eval.layout import SERIES_FILE
from astraea.eval.trial import TrialKey
from astraea.scenario import document, overrides
from astraea.scenario.resolve import SchemeSpec
from astraea.scenario.schema import MAX_SEED, MAX_TRIALS
from astraea.scenario.units import parse_time

LOCAL = "local"
"""Policies decide themselves."""

Progress = Callable[[runner.Plan], AbstractContextManager[Callable[[TrialKey], None]]]
"""Entered when everything is checked and nothing has run; what it gives is called after each trial."""


@dataclass(frozen=True, repr=False)
class Results:
    """The finished trials of a run."""

    plan: runner.Plan
    outcome: runner.Outcome
    content: dict[str, Any]
    """The object of results.json (docs/command-line.md)."""

    @property
    def trials(self) -> list[dict[str, Any]]:
        """One entry per trial, with `cc`, `point`, `seed`, `metrics`, `flows` and `links` among its keys."""
        return list(self.content["trials"])

    @property
    def summary(self) -> dict[str, dict[str, dict[str, Any]]]:
        """`summary[scheme][metric]` is `{mean, low, high, n}` over all trials that define the metric."""
        return dict(self.content["summary"])

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Everything recorded: "series.parquet" and the others by the names of their files."""
        return results.tables(self.outcome)

    @property
    def series(self) -> pl.DataFrame:
        """The flows over time, as in series.parquet: columns and units are those of `astraea.eval.tables.SERIES`."""
        return self.tables[SERIES_FILE]

    def write(self, directory: str | Path) -> None:
        """Write results.json and the tables to `directory`, which `astraea report` reads."""
        results.write(Path(directory), self.content, self.outcome)


def run(
    scenario: str | Path,
    cc: str | Sequence[str] = (),
    *,
    settings: Mapping[str, Any] | None = None,
    trials: int | None = None,
    seed: int = 1,
    jobs: int | None = None,
    trace: str | Path | None = None,
    backend: str = "sim",
    max_lateness: str | None = None,
    decide: str = LOCAL,
    key: str | Path | None = None,
) -> Results:
    """Run schemes on a scenario.

    The arguments are those of `astraea run` (docs/command-line.md). Nothing is printed or written.

    Args:
        scenario: Name of a scenario that is shipped, or path of a .toml file.
        cc: Schemes to compare: "cubic,newreno" or ["cubic:hystart=off", "file.py:ClassName"]. None given: CUBIC, where
            the scenario leaves the choice.
        settings: Keys of the scenario to change, as with `--set`: {"link.bottleneck.rate": "50Mbps", "flow.count": 2}.
        trials: Trials of each scheme at each point of a sweep; None: the scenario's.
        seed: Seed of the first trial; the next has one more.
        jobs: Simulated trials at the same time; None: one per core. Results do not depend on it. With real traffic
            it is always one.
        trace: Mahimahi trace for the link "bottleneck", or the only link.
        backend: "sim" for the simulator, "kernel" for this machine's own TCP over emulated links, "quic" for QUIC
            connections over the same links.
        max_lateness: What one packet in a thousand may be late on emulated links before a trial counts as unfaithful,
            such as "1ms"; None: 2 ms.
        decide: Who decides for Astraea's policies: "local", they themselves; "service", the inference service at its
            usual address; or "service=ADDRESS", where ADDRESS is unix:PATH or udp:HOST:PORT.
        key: File with the key that is shared with the service.

    Raises:
        UserError: Bad input, in one line.
        KeyboardInterrupt: Ctrl-C; what had finished is lost.
    """
    found = execute(
        str(scenario),
        [cc] if isinstance(cc, str) else cc,
        settings=[f"{key}={_toml(key, value)}" for key, value in (settings or {}).items()],
        trials=trials,
        seed=seed,
        jobs=jobs,
        trace=None if trace is None else str(trace),
        backend=backend,
        max_lateness=max_lateness,
        decide=decide,
        key=None if key is None else str(key),
    )
    if found.outcome.interrupted:
        raise KeyboardInterrupt
    return found


def execute(
    scenario: str,
    cc: Sequence[str],
    *,
    settings: Sequence[str] = (),
    trials: int | None = None,
    seed: int = 1,
    jobs: int | None = None,
    trace: str | None = None,
    backend: str = "sim",
    max_lateness: str | None = None,
    decide: str = LOCAL,
    key: str | None = None,
    progress: Progress = lambda _: nullcontext(lambda _: None),
) -> Results:
    """Run schemes on a scenario, with everything as the command line has it; Ctrl-C keeps the finished trials."""
    for name, texts in (("cc", cc), ("settings", settings), ("trace", [trace or ""])):
        for text in texts:
            check_text(name, text)
    _check("seed", seed, 0, MAX_SEED)
    for name, value, most in (("trials", trials, MAX_TRIALS), ("jobs", jobs, None)):
        if value is not None:
            _check(name, value, 1, most)
    loaded = document.load(scenario, settings)
    if trace is not None:
        loaded.change(f"link.{_bottleneck(loaded)}.trace", trace, "--trace")
        loaded.entitle([f"trace {Path(trace).name}"])
    schemes = registry.split(cc)
    service = _service(decide, key)
    made = backends.make(backend, _lateness(max_lateness), service)
    with tempfile.TemporaryDirectory(prefix="astraea-") as scratch:
        laid = runner.plan(
            loaded,
            schemes,
            seed=seed,
            directory=Path(scratch),
            trials=trials,
            backend=made,
            admit=_require_policies if service is not None else lambda _: None,
        )
        with progress(laid) as on_done:
            outcome = runner.run(laid, jobs=jobs or os.cpu_count() or 1, on_done=on_done)
    options = {
        "--backend": backend if backend != "sim" else None,
        "--max-lateness": max_lateness,
        # In the simulator it does not matter who decides.
        "--decide": f"service={service['address']}" if service is not None and backend == "quic" else None,
        "--key": key if backend == "quic" else None,
    }
    command = _command(
        scenario, schemes=schemes, settings=settings, trials=trials, seed=seed, trace=trace, further=options
    )
    return Results(laid, outcome, results.build(laid, outcome, command))


def _check(name: str, value: int, least: int, most: int | None) -> None:
    """Raise `UserError` unless a number is a whole one within its limits."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole and least <= value and (most is None or value <= most)):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UserError(f"{name}: is {value!r}; expected a whole number {limits}")


def _service(decide: str, key: str | None) -> dict[str, str] | None:
    """The inference service that decides, as a backend takes it, if one does."""
    kind, given, address = decide.partition("=")
    if decide == LOCAL:
        if key is not None:
            raise UserError("--key: only a service shares a key; expected --decide service=udp:HOST:PORT with it")
        return None
    if kind != "service" or (given and not address):
        raise UserError(f'--decide "{decide}": expected local, service or service=ADDRESS, like service=unix:PATH')
    return {"address": address or DEFAULT_ADDRESS} | ({} if key is None else {"key": str(Path(key).resolve())})


def _require_policies(schemes: Sequence[SchemeSpec]) -> None:
    """Raise `UserError` if a service can decide for none of the schemes."""
    if not any(isinstance(scheme.policy, _native.Policy) or scheme.name in models.names() for scheme in schemes):
        labels = ", ".join(scheme.label for scheme in schemes)
        raise UserError(f"--decide: a service decides for Astraea's policies alone; expected one, not {labels}")


def _lateness(text: str | None) -> int | None:
    """Nanoseconds of `--max-lateness`."""
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise UserError(f"--max-lateness: {error}") from None


def _bottleneck(loaded: document.Document) -> str:
    """The link that `--trace` means."""
    links = loaded.raw.get("link")
    names = list(links) if isinstance(links, dict) else []
    if "bottleneck" in names:
        return "bottleneck"
    if len(names) == 1:
        return str(names[0])
    example = f"--set link.{names[0] if names else 'NAME'}.trace=FILE"
    raise UserError(f'--trace: {loaded.path.name} has no link "bottleneck"; expected {example}')


def _command(
    scenario: str,
    *,
    schemes: list[str],
    settings: Sequence[str],
    trials: int | None,
    seed: int,
    trace: str | None,
    further: Mapping[str, str | None],
) -> list[str]:
    """The command that gives the same results, without what does not matter to them."""
    options: list[tuple[str, Any]] = [("--cc", ",".join(schemes) or None)]
    options += [("--set", setting) for setting in settings]
    options += [("--trials", trials), ("--seed", seed), ("--trace", trace), *further.items()]
    given = [text for option, value in options if value is not None for text in (option, str(value))]
    return ["astraea", "run", scenario, *given]


def _toml(key: str, value: Any) -> str:
    """A value as one would write it after `--set key=`."""
    if isinstance(value, str):
        # "5" is a text here, and a number after --set.
        return value if overrides.parse(f"{key}={value}")[1] == value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, list, tuple)):
        with suppress(TypeError, ValueError, AttributeError):
            return json.dumps(value, default=lambda part: part.item())
    raise UserError(f"settings: {key} is {value!r}; expected text, a number, True, False or a list")
