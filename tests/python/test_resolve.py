"""From a scenario to the simulator's numbers."""

from typing import Any

import pytest

from astraea.errors import UserError
from astraea.eval import simulated
from astraea.scenario import document, units
from astraea.scenario.points import points
from astraea.scenario.resolve import Resolved, SchemeSpec, TraceFile, resolve

CUBIC = SchemeSpec("cubic", "cubic")
S = 10**9
MS = 10**6


def resolved(
    name: str, *settings: str, seed: int = 1, point: int = 0, traces: dict[str, TraceFile] | None = None
) -> Resolved:
    scenario = points(document.load(name, settings))[point].scenario
    return resolve(scenario, CUBIC, dict.fromkeys(range(len(scenario.flow)), CUBIC), seed, traces or {})


def limit(*settings: str, **traces: TraceFile) -> Any:
    return resolved("three-flows", *settings, traces=traces).config["links"][0]["limit"]


def test_three_flows() -> None:
    trial = resolved("three-flows", "flow.0.start.jitter=0ms")
    assert trial.config["duration_ns"] == 200 * S  # the last starts at 80 s and lives 120 s
    assert trial.config["slot_ns"] == 10 * MS
    assert [flow["start_ns"] for flow in trial.config["flows"]] == [0, 40 * S, 80 * S]
    assert [flow["stop_ns"] for flow in trial.config["flows"]] == [120 * S, 160 * S, None]
    assert trial.config["links"] == [
        {
            "name": "bottleneck",
            "rate": {"constant": 1e8},
            "delay": {"constant": 15 * MS},
            "limit": {"bytes": 375_000},  # 100 Mbit/s x 30 ms / 8
            "queue": {"kind": "droptail"},
            "loss": "none",
            "jitter_ns": 0,
            "reorder": {"probability": 0.0, "delay_ns": 0},
        }
    ]
    assert trial.config["flows"][0] == {
        "scheme": {"name": "cubic", "params": {}},
        "start_ns": 0,
        "stop_ns": 120 * S,
        "path": [0],
        "return_path": [],
        "extra_delay_ns": 0,
        "source": "bulk",
        "ack": {"every": 1, "timeout_ns": 40 * MS, "aggregate_ns": 0, "loss": 0.0},
        "ecn": False,
        "burst_ns": 0,
        "period_ns": 30 * MS,
    }


def test_buffers() -> None:
    assert limit("link.bottleneck.buffer=0.05bdp") == {"bytes": 18_750}
    assert limit("link.bottleneck.buffer=100ms") == {"bytes": 1_250_000}  # 100 Mbit/s x 0.1 s / 8
    assert limit("link.bottleneck.buffer=4.8MB") == {"bytes": 4_800_000}
    assert limit("link.bottleneck.buffer=250packets") == {"packets": 250}
    assert limit("link.bottleneck.buffer=infinite") == "infinite"
    # Never less than one packet.
    assert limit("link.bottleneck.buffer=10B") == {"bytes": 1500}


def test_bdp_takes_the_longest_rtt_of_the_link() -> None:
    # 100 Mbit/s x 200 ms / 8, as the paper's figure 8 has it.
    assert resolved("rtt-fairness").config["links"][0]["limit"] == {"bytes": 2_500_000}


def test_bdp_of_changing_rates_takes_the_mean() -> None:
    steps = 'link.bottleneck.schedule=[["0s", "20Mbps"], ["5s", "40Mbps"]]'
    # Once a period of 20 s: (5 x 20 + 15 x 40) / 20 = 35 Mbit/s, x 30 ms / 8.
    assert limit(steps, "link.bottleneck.period=20s") == {"bytes": 131_250}
    # Without a period over the whole 200 s: (5 x 20 + 195 x 40) / 200 = 39.5 Mbit/s.
    assert limit(steps, "flow.0.start.jitter=0ms") == {"bytes": 148_125}
    # Redrawn between 16 and 32 Mbit/s: 24 Mbit/s.
    assert limit('link.bottleneck.rate={low = "16Mbps", high = "32Mbps", every = "5s"}') == {"bytes": 90_000}
    # A trace: its own mean, 8 Mbit/s.
    assert limit("link.bottleneck.trace=x", bottleneck=TraceFile("x", 8e6)) == {"bytes": 30_000}


def test_random_rates_belong_to_the_seed() -> None:
    settings = ['link.bottleneck.rate={low = "16Mbps", high = "32Mbps", every = "5s"}', "flow.0.start.jitter=0ms"]
    first = resolved("three-flows", *settings).config["links"][0]["rate"]["schedule"]
    assert first == resolved("three-flows", *settings).config["links"][0]["rate"]["schedule"]
    assert first != resolved("three-flows", *settings, seed=2).config["links"][0]["rate"]["schedule"]
    assert [time for time, _ in first] == [step * 5 * S for step in range(40)]
    assert all(16e6 <= rate <= 32e6 for _, rate in first)


def test_random_delays_belong_to_the_seed() -> None:
    settings = ['link.bottleneck.delay={low = "10ms", high = "100ms", every = "5s"}', "flow.0.start.jitter=0ms"]
    trial = resolved("three-flows", *settings)
    first = trial.config["links"][0]["delay"]["schedule"]
    assert first == resolved("three-flows", *settings).config["links"][0]["delay"]["schedule"]
    assert first != resolved("three-flows", *settings, seed=2).config["links"][0]["delay"]["schedule"]
    assert [time for time, _ in first] == [step * 5 * S for step in range(40)]
    assert all(isinstance(delay, int) and 10 * MS <= delay <= 100 * MS for _, delay in first)
    assert {flow.base_rtt_ns for flow in trial.flows} == {20 * MS}  # the smallest there may be


def test_redrawn_rates_and_delays_are_independent() -> None:
    link = resolved("changing-path").config["links"][0]
    shares = [
        [(value - low) / span for _, value in link[key]["schedule"]]
        for key, low, span in (("rate", 5e6, 95e6), ("delay", 10 * MS, 90 * MS))
    ]
    assert max(abs(rate - delay) for rate, delay in zip(*shares, strict=True)) > 0.1


def test_starts_with_jitter_belong_to_the_seed() -> None:
    starts = [flow.start_ns for flow in resolved("three-flows").flows]
    assert starts == [flow.start_ns for flow in resolved("three-flows").flows]
    assert starts != [flow.start_ns for flow in resolved("three-flows", seed=2).flows]
    assert all(0 <= start - index * 40 * S < 30 * MS for index, start in enumerate(starts))


def test_poisson_starts() -> None:
    trial = resolved("three-flows", 'flow.0.start={poisson = "4s"}', "flow.0.count=2000", "duration=1000000s")
    starts = [flow.start_ns for flow in trial.flows]
    assert starts[0] == 0
    assert starts == sorted(starts)
    # 1999 exponential gaps: the mean lies within five standard errors, 5 x 4 / sqrt(1999) = 0.45 s.
    assert abs(starts[-1] / S / 1999 - 4) < 0.45


def test_poisson_starts_of_which_none_comes_are_a_mistake() -> None:
    with pytest.raises(UserError, match="flow 1 of 5 never starts"):
        resolved("three-flows", 'flow.0.start={poisson = "4s", at = "50s"}', "flow.0.count=5", "duration=40s")


def test_poisson_starts_after_the_end_are_left_out() -> None:
    trial = resolved("three-flows", 'flow.0.start={poisson = "4s"}', "flow.0.count=1000", "duration=40s")
    assert 1 <= len(trial.flows) < 40
    assert all(flow.start_ns < 40 * S for flow in trial.flows)


def test_jitter_does_not_keep_poisson_starts_before_the_end_out() -> None:
    start = 'flow.0.start={poisson = "100ms", jitter = "20s"}'
    trial, whole = (resolved("three-flows", start, "flow.0.count=500", f"duration={end}") for end in ("40s", "1000s"))
    # Those that start in time, in their order: nobody else's start depends on who does not come.
    expected = [flow.start_ns for flow in whole.flows if flow.start_ns < 40 * S]
    assert [flow.start_ns for flow in trial.flows] == expected
    first_late = next(index for index, flow in enumerate(whole.flows) if flow.start_ns >= 40 * S)
    assert len(expected) > first_late + 20


def test_flow_that_never_starts() -> None:
    with pytest.raises(UserError, match=r"flow\.0\.start: flow 3 of 3 never starts: its start at 80s is not before"):
        resolved("three-flows", "duration=80s", "flow.0.start.jitter=0ms")


def test_trials_last_for_whole_slots() -> None:
    trial = resolved("three-flows", "duration=100.005s", "flow.0.duration=100.005s", "record=100ms", "flow.0.start=0s")
    assert trial.config["duration_ns"] == 100_100 * MS
    assert [flow["stop_ns"] for flow in trial.config["flows"]] == [100_005 * MS] * 3, "flows end when they should"


def test_scenario_without_an_end() -> None:
    scenario = document.load("three-flows")
    del scenario.raw["flow"][0]["duration"]
    with pytest.raises(UserError, match="duration: missing: no flow has one either"):
        resolve(scenario.validate(), CUBIC, {}, 1, {})


def test_base_rtt() -> None:
    two = resolved("multi-bottleneck")
    assert {flow.base_rtt_ns for flow in two.flows} == {30 * MS}
    assert [flow.path for flow in two.flows] == [(0,), (0,), (0, 1), (0, 1)]
    five = resolved("rtt-fairness")
    assert [flow.base_rtt_ns // MS for flow in five.flows] == [40, 80, 120, 160, 200]


def test_roles() -> None:
    trial = resolved("background")
    assert [flow.under_test for flow in trial.flows] == [False] * 3 + [True] * 3
    assert [flow.group for flow in trial.flows] == ["background"] * 3 + ["joining"] * 3


def test_queue_loss_and_source() -> None:
    trial = resolved(
        "three-flows",
        'link.bottleneck.queue={kind = "red", min = "10%"}',
        'link.bottleneck.loss={enter = "1%", leave = 0.3}',
        'link.bottleneck.reorder={probability = 0.1, delay = "5ms"}',
        'flow.0.source={kind = "on_off", on = "1s", off = "2s"}',
    )
    link = trial.config["links"][0]
    assert link["queue"] == {
        "kind": "red",
        "min_bytes": 37_500,
        "max_bytes": 281_250,
        "max_p": 0.1,
        "weight": 0.002,
        "gentle": True,
        "ecn": False,
    }
    assert link["loss"] == {"gilbert_elliott": {"p": 0.01, "r": 0.3, "loss_good": 0.0, "loss_bad": 1.0}}
    assert link["reorder"] == {"probability": 0.1, "delay_ns": 5 * MS}
    assert trial.config["flows"][0]["source"] == {"on_off": {"on_ns": S, "off_ns": 2 * S, "exponential": True}}
    assert not trial.flows[0].greedy


def test_red_needs_a_limit() -> None:
    with pytest.raises(UserError, match=r"link\.bottleneck\.buffer: red needs a limit"):
        resolved("three-flows", "link.bottleneck.queue=red", "link.bottleneck.buffer=infinite")


@pytest.mark.parametrize(
    ("low", "high", "buffer", "what"),
    [
        ("0.001%", "0.002%", "15kB", "min 0.001% and max 0.002% of the buffer 15kB are 0 and 0 bytes"),
        ("50%", "50.0001%", "1bdp", "min 50% and max 50.0001% of the buffer 1bdp are 187500 and 187500 bytes"),
        ("0.0001%", 0.5, "2packets", "min 0.0001% and max 50% of the buffer 2packets are 0 and 1500 bytes"),
    ],
)
def test_thresholds_of_red_are_bytes(low: str, high: str | float, buffer: str, what: str) -> None:
    written = f'"{high}"' if isinstance(high, str) else high
    queue = f'link.bottleneck.queue={{kind = "red", min = "{low}", max = {written}}}'
    with pytest.raises(UserError) as caught:
        resolved("three-flows", queue, f"link.bottleneck.buffer={buffer}")
    expected = "expected 1 byte or more, and max above min"
    assert str(caught.value) == f"link.bottleneck.queue: {what}; {expected}"


def test_the_longest_time_and_quantum_are_the_simulators() -> None:
    trial = resolved("three-flows", "link.bottleneck.queue=fq_codel")
    [link, flow] = trial.config["links"][0], trial.config["flows"][0]
    for table, key, most in (
        (flow["ack"], "timeout_ns", units.MAX_TIME),
        (flow, "extra_delay_ns", units.MAX_TIME),
        (link["queue"], "quantum", units.MAX_QUANTUM),
    ):
        table[key] = most
        simulated.check(trial, "x")
        table[key] = most + 1
        with pytest.raises(UserError):
            simulated.check(trial, "x")
        table[key] = most


def test_too_many_slots_are_the_durations_fault() -> None:
    trial = resolved("three-flows", "duration=40h")
    with pytest.raises(UserError, match=r"^x: duration: 144000s in slots of 10ms make 1\.4e\+07 values of a flow; "):
        simulated.check(trial, "x")
    simulated.check(resolved("three-flows", "duration=40h", "record=20ms"), "x")


def test_too_many_draws_are_refused_before_they_are_made() -> None:
    every = '{low = "%s", high = "%s", every = "1ms"}'
    for key, low, high in (("rate", "16Mbps", "32Mbps"), ("delay", "10ms", "20ms")):
        settings = [f"link.bottleneck.{key}={every % (low, high)}", "duration=10000000s"]
        message = rf"^link\.bottleneck\.{key}: every 1ms for 10000000s makes 1\.0e\+10 draws; expected at most 1e\+07$"
        with pytest.raises(UserError, match=message):
            resolved("three-flows", *settings)


def test_hosts_agree_on_the_time_of_day_which_the_seed_draws() -> None:
    clocks = [[flow.clock_ns for flow in resolved("three-flows", seed=seed).flows] for seed in (1, 1, 2)]
    assert clocks[0] == clocks[1] != clocks[2]
    assert all(len(set(trial)) == 1 and 0 <= trial[0] < 3600 * S for trial in clocks)
