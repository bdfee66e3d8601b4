"""Controllers written in Python, in the simulator."""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from astraea import _native
from astraea.controller import Bridge, Controller, Decision, Stats
from astraea.errors import UserError
from astraea.eval import registry
from astraea.eval.simulated import simulate
from astraea.scenario import document
from astraea.scenario.points import points
from astraea.scenario.resolve import Resolved, SchemeSpec, resolve

MEASURED: dict[str, Any] = {
    "now": 1.0,
    "period": 0.03,
    "sent_bytes": 1448,
    "acked_bytes": 1448,
    "lost_bytes": 0,
    "throughput": 1e6,
    "rtt_mean": 0.03,
    "rtt_min": 0.03,
    "srtt": 0.03,
    "min_rtt": 0.03,
    "cwnd": 10.0,
    "inflight": 1.0,
    "pacing": None,
}


class Answer(Controller):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def decide(self, stats: Stats) -> Any:
        assert stats.cwnd == 10
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, None),
        (Decision(cwnd=20), {"cwnd": 20}),
        (Decision(pacing=1e6), {"pacing": 1e6}),
        ({"cwnd": 20, "pacing": 1e6}, {"cwnd": 20, "pacing": 1e6}),
        ((20, 1e6), {"cwnd": 20, "pacing": 1e6}),
    ],
)
def test_forms_of_an_answer(answer: Any, expected: Any) -> None:
    assert Bridge(lambda: Answer(answer), 1448).decide(MEASURED) == expected


class Mute:
    """An answer of which nothing can be asked."""

    def __float__(self) -> float:
        raise KeyError

    def __repr__(self) -> str:
        raise KeyError


class SilentError(Exception):
    def __str__(self) -> str:
        raise KeyError


@pytest.mark.parametrize(
    "answer",
    [20, "20", {"window": 20}, {1: 2}, {"cwnd": "many"}, (1,), (1, 2, 3)]
    + [{"cwnd": value} for value in (0, -5, math.nan, math.inf, 1e8, 10**400)]
    + [Mute(), {"cwnd": Mute()}]
    + [Decision(pacing=value) for value in (0, -1, math.nan, math.inf)],
)
def test_other_answers_are_errors(answer: Any) -> None:
    # A window is sent at once: one without bounds would fill the memory.
    with pytest.raises(UserError) as caught:
        Bridge(lambda: Answer(answer), 1448).decide(MEASURED)
    assert str(caught.value).startswith(f"{__file__}: ")
    assert "expected a Decision" in str(caught.value)


def trial(factory: Any, duration: str = "3s", period: str = "100ms") -> Resolved:
    settings = ["flow.count=1", "flow.start=0s", f"flow.duration={duration}", f"flow.period={period}"]
    scenario = points(document.load("three-flows", settings))[0].scenario
    return resolve(scenario, SchemeSpec("mine", "constant-window", {}, factory), {}, 1, {})


class Fixed(Controller):
    """Holds a window of 50 packets."""

    seen: list[Stats]

    def start(self, mss: int) -> None:
        assert mss == 1448
        self.seen = []
        Fixed.last = self  # type: ignore[attr-defined]

    def decide(self, stats: Stats) -> Decision:
        self.seen.append(stats)
        return Decision(cwnd=50)


def test_window_and_measurements_in_the_simulator() -> None:
    flow = simulate(trial(Fixed))["flows"][0]
    seen = Fixed.last.seen  # type: ignore[attr-defined]
    # Once per 100 ms for 3 s.
    assert 28 <= len(seen) <= 30
    assert all(stats.period == pytest.approx(0.1) for stats in seen)
    late = seen[5:]
    assert {stats.cwnd for stats in late} == {50}
    # 50 packets per RTT of 30 ms plus the time to send one packet, 0.12 ms: 19.2 Mbit/s.
    rtt = 0.030 + 1500 * 8 / 1e8
    assert late[-1].min_rtt == pytest.approx(rtt, rel=1e-3)
    # A period holds a whole number of bursts, three or four: only their mean is exact, to one burst in about eighty.
    mean = sum(stats.throughput for stats in late) / len(late)
    assert mean == pytest.approx(50 * 1448 * 8 / rtt, rel=0.03)
    assert flow["dropped_packets"] == 0


class Broken(Controller):
    def decide(self, stats: Stats) -> Decision:
        return Decision(cwnd=1 / (stats.lost_bytes * 0))


class Wordless(Controller):
    def decide(self, stats: Stats) -> Decision:  # noqa: ARG002
        raise SilentError


class Leaves(Controller):
    def start(self, mss: int) -> None:
        sys.exit(mss)


class Unready:
    def decide(self) -> None: ...


@pytest.mark.parametrize(
    ("controller", "place", "error"),
    [
        (Broken, r": line \d+", "ZeroDivisionError: division by zero"),
        (Wordless, r": line \d+", "SilentError: <SilentError>"),
        (Leaves, r": line \d+", "SystemExit: 1448"),
        (Unready, "", "TypeError: Unready.decide.. takes 1 positional argument but 2 were given"),
    ],
)
def test_error_in_a_controller_is_one_line_with_its_place(controller: Any, place: str, error: str) -> None:
    with pytest.raises(UserError) as caught:
        simulate(trial(controller))
    assert re.fullmatch(f"{re.escape(__file__)}{place}: {error}", str(caught.value))


def test_example_of_the_guide(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "python-controller.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "delay.py").write_text(code)
    factory = registry.scheme(f"{tmp_path}/delay.py:Delay").factory
    flow = simulate(trial(factory, duration="30s", period="30ms"))["flows"][0]
    # Alone, it fills the link and keeps the queue near its target of 5 ms.
    assert flow["delivered_bytes"] * 8 / 30 > 0.8 * 1e8 * 1448 / 1500
    assert 0.030 < flow["rtt_mean_ns"] / 1e9 < 0.040


def test_a_window_below_one_byte_does_not_stall() -> None:
    class Tiny:
        def decide(self, stats: dict[str, Any]) -> dict[str, float]:
            assert stats["cwnd"] > 0
            return {"cwnd": 1e-9}

    link = {"name": "link", "rate": {"constant": 1e7}, "delay": {"constant": 5_000_000}, "limit": "infinite"}
    flow = {"scheme": {"name": "constant-window"}, "start_ns": 0, "path": [0], "period_ns": 10_000_000}
    config = json.dumps({"duration_ns": 10**9, "links": [link], "flows": [flow]})
    (measured,) = _native.simulate(config, 1, {0: Tiny()})["flows"]
    # One packet at a time, a round trip of 11.2 ms each, after the first window of ten.
    assert 80 < measured["sent_packets"] < 100
