"""The backend `sim`: trials in the simulator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from astraea import _native
from astraea.controller import Bridge
from astraea.errors import UserError
from astraea.scenario.resolve import Resolved, SchemeFile
from astraea.scenario.units import MSS, format_time

MAX_SLOTS, MAX_VALUES = 10**7, 10**8
"""Most slots of a recording, as the simulator has it, and most values of one series, flows x slots: a few gigabytes."""


class Simulator:
    """The simulator as a backend.

    Args:
        decide: The inference service that decides for Astraea's policies: its `address`, and perhaps `key`, the file
            with the shared key; None: they do so themselves.
    """

    name = "sim"
    parallel = True

    def __init__(self, decide: Mapping[str, str] | None = None) -> None:
        self._cancel = _native.Cancel()
        self._decide = decide

    def check(self, trial: Resolved, where: str) -> None:
        """Raise `UserError` if the simulator does not accept the trial; `where` names the scenario."""
        check(trial, where, self._decide)

    def run(self, trial: Resolved) -> dict[str, Any]:
        """Run a trial."""
        return simulate(trial, self._cancel, self._decide)

    def cancel(self) -> None:
        """Make running trials raise KeyboardInterrupt soon."""
        self._cancel.cancel()

    def facts(self) -> dict[str, Any]:
        """A simulation does not depend on the host."""
        return {}


def simulate(
    trial: Resolved, cancel: _native.Cancel | None = None, decide: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a trial; the result is that of `_native.simulate`. `decide` is that of `Simulator`.

    Raises KeyboardInterrupt when cancelled, and `UserError` for a mistake in a controller written in Python and for an
    inference service that does not answer.
    """
    controllers = {
        index: Bridge(flow.scheme.factory, MSS)
        for index, flow in enumerate(trial.flows)
        if flow.scheme.factory is not None
    }
    try:
        return _native.simulate(_config(trial, decide), trial.seed, controllers or None, cancel, _policies(trial))
    except ConnectionError as error:
        raise UserError(str(error)) from None


def _config(trial: Resolved, decide: Mapping[str, str] | None) -> str:
    config = trial.config | {"clocks_ns": [flow.clock_ns for flow in trial.flows]}
    return json.dumps(config if decide is None else config | {"decide": decide})


def _policies(trial: Resolved) -> dict[str, SchemeFile]:
    schemes = (flow.scheme for flow in trial.flows)
    return {scheme.name: scheme.policy for scheme in schemes if scheme.policy is not None}


def check(trial: Resolved, where: str, decide: Mapping[str, str] | None = None) -> None:
    """Raise `UserError` if the simulator does not accept the trial; `where` names the scenario."""
    length, slot = (trial.config[key] for key in ("duration_ns", "slot_ns"))
    slots = length // slot
    values = slots * (len(trial.flows) + len(trial.links))
    for count, most, what in ((values, MAX_VALUES, "values of a series"), (slots, MAX_SLOTS, "values of a flow")):
        if count > most:
            raise UserError(
                f"{where}: duration: {format_time(length)} in slots of {format_time(slot)} make {count:.1e} {what}; "
                f"expected at most {most:.0e}; a longer `record` makes fewer"
            )
    try:
        _native.check(_config(trial, decide), _policies(trial))
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    except ConnectionError as error:
        raise UserError(str(error)) from None
