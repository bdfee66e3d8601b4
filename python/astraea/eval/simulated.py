"""One trial in the simulator."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from astraea import _native
from astraea.controller import Bridge
from astraea.errors import UserError
from astraea.eval.data import FlowData, QueueData, TrialData
from astraea.scenario.resolve import Resolved
from astraea.scenario.units import MSS, MTU, format_time

MAX_VALUES = 10**8
"""Most values of one recorded series, flows x slots: a few gigabytes over all of them."""

GOODPUT = MSS / MTU
"""Payload per byte on a link, for full packets."""


def simulate(trial: Resolved, cancel: _native.Cancel | None = None) -> dict[str, Any]:
    """Run a trial; the result is that of `_native.simulate`.

    Raises KeyboardInterrupt when cancelled, and `UserError` for a mistake in a controller written in Python.
    """
    controllers = {
        index: Bridge(flow.scheme.factory, MSS)
        for index, flow in enumerate(trial.flows)
        if flow.scheme.factory is not None
    }
    return _native.simulate(json.dumps(trial.config), trial.seed, controllers or None, cancel, _policies(trial))


def _policies(trial: Resolved) -> dict[str, _native.Policy]:
    schemes = (flow.scheme for flow in trial.flows)
    return {scheme.name: scheme.policy for scheme in schemes if scheme.policy is not None}


def check(trial: Resolved, where: str) -> None:
    """Raise `UserError` if the simulator does not accept the trial; `where` names the scenario."""
    length, slot = (trial.config[key] for key in ("duration_ns", "slot_ns"))
    if (values := length // slot * (len(trial.flows) + len(trial.links))) > MAX_VALUES:
        raise UserError(
            f"{where}: duration: {format_time(length)} in slots of {format_time(slot)} make {values:.1e} values of a "
            f"series; expected at most {MAX_VALUES:.0e}; a longer `record` makes fewer"
        )
    try:
        _native.check(json.dumps(trial.config), _policies(trial))
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def trial_data(trial: Resolved, result: dict[str, Any]) -> TrialData:
    """What the metrics need of a result."""
    flows = [
        FlowData(
            start_ns=plan.start_ns,
            end_ns=flow["end_ns"],
            path=plan.path,
            under_test=plan.under_test,
            greedy=plan.greedy,
            base_rtt_ns=plan.base_rtt_ns,
            rtt_mean_ns=flow["rtt_mean_ns"],
            sent=flow["sent_packets"],
            lost=flow["dropped_packets"],
            completions=tuple(map(tuple, flow["completions"])),
        )
        for plan, flow in zip(trial.flows, result["flows"], strict=True)
    ]
    return TrialData(
        slot_ns=trial.config["slot_ns"],
        flows=flows,
        delivered=np.asarray(result["series"]["delivered"], dtype=float),
        capacity=np.array([link["series"]["capacity"] for link in result["links"]], dtype=float) * GOODPUT,
        queues=[_queue(link) for link in result["links"]],
    )


def _queue(link: dict[str, Any]) -> QueueData:
    buckets = tuple(link["queue_delay_hist"])
    return QueueData(
        packets=sum(count for _, _, count in buckets),
        mean_ns=link["queue_delay_mean_ns"],
        buckets=buckets,
    )
