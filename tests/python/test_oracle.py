"""The base round-trip time that the oracle is told."""

from __future__ import annotations

import pytest

from astraea.eval import registry, simulated
from astraea.scenario import document
from astraea.scenario.points import points
from astraea.scenario.resolve import resolve


def told(name: str, *settings: str, scheme: str = "fast-oracle") -> list[float]:
    scenario = points(document.load(name, settings))[0].scenario
    fixed = {group: registry.scheme(flow.cc) for group, flow in enumerate(scenario.flow) if flow.cc}
    flows = resolve(scenario, registry.scheme(scheme), fixed, 1, {}).config["flows"]
    return [flow["scheme"]["params"].get("base_rtt", 0.0) for flow in flows]


def test_propagation_and_wire() -> None:
    # 30 ms both ways and 1500 bytes at 100 Mbit/s.
    assert told("three-flows") == pytest.approx([0.03012] * 3)
    assert told("three-flows", "flow.0.extra_delay=5ms") == pytest.approx([0.04012] * 3)
    # Acknowledgements of 52 bytes that cross the link too.
    assert told("three-flows", 'flow.0.return_path=["bottleneck"]') == pytest.approx([0.03012416] * 3)


def test_what_is_given_stays() -> None:
    assert told("three-flows", scheme="fast-oracle:base_rtt=50ms") == [0.05] * 3
    assert told("three-flows", scheme="fast") == [0.0] * 3


@pytest.mark.parametrize("name", ["three-flows", "multi-bottleneck", "rtt-fairness"])
def test_no_packet_is_faster_and_one_is_as_fast(name: str) -> None:
    scenario = points(document.load(name, []))[0].scenario
    fixed = {group: registry.scheme(flow.cc) for group, flow in enumerate(scenario.flow) if flow.cc}
    trial = resolve(scenario, registry.scheme("fast-oracle"), fixed, 1, {})
    alone = trial.config["flows"][0] | {"start_ns": 0, "stop_ns": None}
    trial.config.update(flows=[alone], duration_ns=10**9)
    base_rtt = alone["scheme"]["params"]["base_rtt"]
    del trial.flows[1:]
    (flow,) = simulated.simulate(trial)["flows"]
    assert flow["rtt_min_ns"] == pytest.approx(base_rtt * 1e9, abs=10)
