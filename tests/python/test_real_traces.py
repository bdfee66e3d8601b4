"""Recorded cellular traces end to end."""

from pathlib import Path

import numpy as np
import pytest

from astraea.eval.simulated import simulate
from astraea.scenario import document
from astraea.scenario.points import points
from astraea.scenario.resolve import SchemeSpec, resolve
from astraea.trace.prepare import TraceStore

NAMES = [
    "ATT-LTE-driving-2016.down",
    "ATT-LTE-driving-2016.up",
    "TMobile-LTE-short.down",
    "TMobile-LTE-short.up",
    "Verizon-LTE-short.down",
    "Verizon-LTE-short.up",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scheme", ["cubic", "newreno"])
def test_delivery_never_exceeds_the_opportunities(shared: Path, tmp_path: Path, name: str, scheme: str) -> None:
    loaded = document.load("cellular", ["flow.0.duration=60s"])
    loaded.change("link.bottleneck.trace", str(shared / "traces" / name), "--trace")
    scenario = points(loaded)[0].scenario
    traces = TraceStore(loaded, tmp_path).of(scenario)
    trial = resolve(scenario, SchemeSpec(scheme, scheme), {}, 1, traces)
    result = simulate(trial)

    # Opportunities per slot, straight from the file.
    slot_ms, slots = 10, result["series"]["delivered"].shape[1]
    period = np.loadtxt(shared / "traces" / name, dtype=np.int64)
    times = np.concatenate([period + cycle * period[-1] for cycle in range(2)])
    opportunities = np.bincount(times // slot_ms, minlength=slots)[:slots] * 1500

    served = np.asarray(result["links"][0]["series"]["served"])
    assert served.sum() > 0
    # Over any interval: the surplus of delivery over opportunities never rises.
    surplus = np.cumsum(served - opportunities)
    assert (surplus - np.minimum.accumulate(surplus)).max() <= 0
    # Goodput is less than what the link carried, by the headers.
    assert result["series"]["delivered"].sum() <= served.sum() * 1448 / 1500
