"""What a trial came to, whatever backend ran it, in the form in which metrics take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from astraea.eval.data import FlowData, QueueData, TrialData
from astraea.scenario.resolve import Resolved
from astraea.scenario.units import MSS, MTU

GOODPUT = MSS / MTU
"""Payload per byte on a link, for full packets."""


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
