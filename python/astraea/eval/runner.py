"""Running all trials of a scenario: schemes x points x repetitions, on several threads.

The simulator releases Python's lock, and real traffic is run by another program, so threads suffice. The result of a
simulation does not depend on how many there are: every trial has its own seed, and results are kept in the order of
the plan.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from astraea.errors import UserError
from astraea.eval import registry
from astraea.eval import trial as one
from astraea.eval.backend import Backend
from astraea.eval.simulated import Simulator
from astraea.eval.trial import TrialKey, TrialResult
from astraea.files import digest
from astraea.scenario.document import Document
from astraea.scenario.points import Point, points
from astraea.scenario.resolve import Resolved, SchemeSpec, resolve
from astraea.trace.prepare import TraceStore

LOOK_EVERY_S = 0.1
"""How long an interrupt may wait to be noticed."""


@dataclass
class Plan:
    """Everything that is to be run, checked before anything runs."""

    document: Document
    points: list[Point]
    keys: list[TrialKey]
    trials: int
    seed: int
    backend: Backend
    inputs: dict[str, str]
    """The user's files that take part, by path, and the SHA-256 of each: names do not say what was in them."""
    _schemes: dict[str, SchemeSpec]
    _fixed: dict[tuple[int, str], SchemeSpec]
    _traces: TraceStore

    def resolve(self, key: TrialKey) -> Resolved:
        """The numbers of one trial."""
        scenario = key.point.scenario
        where = f"{self.document.path.name}: {f'sweep {key.point.label}: ' if key.point.label else ''}"
        try:
            traces = self._traces.of(scenario)
            fixed = {
                group: self._fixed[group, flow.cc] for group, flow in enumerate(scenario.flow) if flow.cc is not None
            }
            return resolve(scenario, self._schemes.get(key.cc), fixed, self.seed + key.repeat, traces)
        except UserError as error:
            raise UserError(f"{where}{error}") from None


@dataclass
class Outcome:
    """The finished trials in the order of the plan, and whether some were given up."""

    results: list[TrialResult] = field(default_factory=list)
    interrupted: bool = False


def plan(
    document: Document,
    cc: Sequence[str],
    *,
    seed: int,
    directory: Path,
    trials: int | None = None,
    backend: Backend | None = None,
    admit: Callable[[Sequence[SchemeSpec]], None] = lambda _: None,
) -> Plan:
    """Lay out the trials of the schemes `cc`; generated traces are put into `directory`.

    Without a backend they are for the simulator. Raises `UserError` for whatever would fail later: every point is
    resolved and shown to the backend once, after `admit` has seen all schemes.
    """
    backend = backend or Simulator()
    spread = points(document)
    fixed = _fixed(document, spread)
    if all(flow.cc is not None for point in spread for flow in point.scenario.flow):
        if cc:
            raise UserError(f"{document.path.name}: fixes the scheme of every flow; --cc has nothing to set")
        labels, schemes = ["+".join(dict.fromkeys(text for _, text in fixed))], {}
    else:
        labels = list(cc) or ["cubic"]
        schemes = {label: _scheme(label) for label in labels}
    count = trials or spread[0].scenario.trials
    keys = [
        TrialKey(label, point, repeat, point.index * count + repeat)
        for point in spread
        for label in labels
        for repeat in range(count)
    ]
    traces = TraceStore(document, directory)
    laid = Plan(document, spread, keys, count, seed, backend, {}, schemes, fixed, traces)
    admit([*schemes.values(), *fixed.values()])
    for key in keys:
        resolved = laid.resolve(key)  # starts are drawn anew in each trial: any could come too late
        if key.repeat == 0:
            backend.check(resolved, document.path.name)
    named = [_file(spec, Path()) for spec in schemes.values()]
    named += [_file(spec, document.base(f"flow.{group}.cc")) for (group, _), spec in fixed.items()]
    scenario = [] if document.shipped else [document.path]
    found = [path for path in (*scenario, *named, *traces.files()) if path is not None and path.is_file()]
    laid.inputs |= {str(path): digest(path) for path in found}
    return laid


def _file(scheme: SchemeSpec, directory: Path) -> Path | None:
    """The file that a scheme was read from, None for one that is built in; relative files lie in `directory`."""
    if scheme.policy is not None:
        return Path(scheme.name)
    return None if scheme.factory is None else directory / f"{scheme.label.partition('.py')[0]}.py"


def _scheme(label: str) -> SchemeSpec:
    """The scheme of `--cc`; mistakes in its parameters name the option, those in a file the file."""
    try:
        return registry.scheme(label)
    except UserError as error:
        where = f"--cc {label}: " if label.partition(":")[0] in registry.native() else ""
        raise UserError(f"{where}{error}") from None


def _fixed(document: Document, spread: Sequence[Point]) -> dict[tuple[int, str], SchemeSpec]:
    """The schemes that the scenario itself names, by group and the text in `cc`; files lie beside the scenario.

    One text may be two files: what is typed for one group lies in the current directory.
    """
    found: dict[tuple[int, str], SchemeSpec] = {}
    for point in spread:
        for group, flow in enumerate(point.scenario.flow):
            if flow.cc is None or (group, flow.cc) in found:
                continue
            key = f"flow.{group}.cc"
            try:
                found[group, flow.cc] = registry.scheme(flow.cc, document.base(key))
            except UserError as error:
                option = document.changed.get(key)
                where = f"{option} {key}" if option else f"{document.path.name}: {key}"
                raise UserError(f"{where}: {error}") from None
    return found


def run(laid: Plan, *, jobs: int, on_done: Callable[[TrialKey], None] = lambda _: None) -> Outcome:
    """Run every trial of a plan on `jobs` threads (one where trials would disturb each other).

    `on_done` is called in this thread after each trial.

    An interrupt (Ctrl-C) stops the running trials and returns the finished ones. An error in a trial stops all and is
    raised.
    """
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(laid.keys)):
        todo.put(index)
    # Threads keep results themselves; what is queued only wakes this thread, which an interrupt may hit anywhere.
    finished: dict[int, TrialResult] = {}
    events: queue.SimpleQueue[TrialKey | BaseException] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                index = todo.get_nowait()
            except queue.Empty:
                return
            key = laid.keys[index]
            series = key.point.scenario.series
            keep = series == "all" or (series == "first" and key.repeat == 0)
            try:
                finished[index] = one.run(key, laid.resolve(key), laid.backend, keep_series=keep)
            except BaseException as error:  # raised again in the main thread
                events.put(error)
                return
            events.put(key)

    threads_wanted = min(jobs, len(laid.keys)) if laid.backend.parallel else 1
    threads = [threading.Thread(target=work, daemon=True) for _ in range(threads_wanted)]
    interrupted = complete = False
    try:
        for thread in threads:
            thread.start()
        for _ in laid.keys:
            event = _next(events)
            if isinstance(event, BaseException):
                raise event
            on_done(event)
        complete = True
    except KeyboardInterrupt:
        interrupted = True
    finally:
        stop.set()
        if not complete:
            laid.backend.cancel()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return Outcome([finished[index] for index in sorted(finished)], interrupted and len(finished) < len(laid.keys))


def _next(events: queue.SimpleQueue[TrialKey | BaseException]) -> TrialKey | BaseException:
    """The next event. Polars makes system calls restart after a signal, so a wait without end would not see Ctrl-C."""
    while True:
        try:
            return events.get(timeout=LOOK_EVERY_S)
        except queue.Empty:
            continue
