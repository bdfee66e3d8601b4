"""bench/policies.py: its settings lie in their domains, its own measures are right, its table says what is met."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from handmade import flow, rates, trial

from astraea.scenario.document import Document
from astraea.scenario.resolve import Resolved
from astraea.scenario.units import parse_rate, parse_size, parse_time

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import policy_measures as measures  # noqa: E402
import policy_settings as settings  # noqa: E402


@pytest.mark.parametrize("group", sorted(settings.GROUPS))
def test_every_setting_is_a_scenario(group: str) -> None:
    found = list(settings.GROUPS[group](0))
    assert found == list(settings.GROUPS[group](0))
    assert {setting.group for setting in found} == {group}
    for setting in found:
        Document(group, Path(group), setting.raw).validate()


def test_grids_are_drawn_over_the_declared_domain() -> None:
    grids = {name: [setting.raw for setting in settings.GROUPS[name](0)] for name in settings.GRIDS}
    assert not any(raw in grids["validation-grid"] for raw in grids["test-grid"])
    assert grids["test-grid"] != [setting.raw for setting in settings.test_grid(1)]
    mixed = codel = lossy = 0
    for raw in (*grids["test-grid"], *grids["validation-grid"]):
        link, flows = raw["link"]["bottleneck"], raw["flow"]
        rate, buffer = parse_rate(link["rate"]), parse_size(link["buffer"])
        rtts = [2 * (parse_time(link["delay"]) + parse_time(each["extra_delay"])) / 1e9 for each in flows]
        assert 5e6 <= rate <= 1000e6
        assert all(0.005 <= round(rtt, 6) <= 0.300 for rtt in rtts)
        assert 1 <= len(flows) <= 50
        assert buffer >= 5 * 1500
        assert 0 <= link["loss"] <= 0.02
        assert parse_time(raw["link"].get("back", {"jitter": "0s"})["jitter"]) <= 5e6
        assert all(parse_time(each["ack"]["aggregate"]) <= 10e6 for each in flows)
        mixed += max(rtts) > min(rtts)
        codel += link["queue"] == "codel"
        lossy += link["loss"] > 0
    # Of 128 settings: a half (fewer, as a single flow cannot be mixed), a fifth and 30 %, within four deviations.
    assert 40 <= mixed <= 75
    assert 8 <= codel <= 44
    assert 18 <= lossy <= 59


def test_clocks_differ_as_much_as_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def simulated(trial: Resolved) -> NoReturn:
        seen.append([flow.clock_ns for flow in trial.flows])
        raise KeyboardInterrupt

    monkeypatch.setattr(measures, "simulate", simulated)
    setting = next(settings.GROUPS["three-flows"](0))
    for error in (0.0, 0.5, 0.5):
        with pytest.raises(KeyboardInterrupt):
            measures.measure(setting, "astraea", error)
    agreed, differing, again = seen
    assert len(set(agreed)) == 1
    assert differing == again
    assert len(set(differing)) == 3
    assert all(0 <= late - on_time <= 5e8 for on_time, late in zip(agreed, differing, strict=True))


def kept(first: np.ndarray, second: np.ndarray) -> measures.Measured:
    """Of two flows on 10 Mbit/s; the second comes after 10 s, and all ends after 30 s."""
    flows = [flow(0, 30), flow(10, 30)]
    return measures._kept(trial(flows, [first, second], [rates((30, 10))]))


def test_settled_for_good() -> None:
    found = kept(rates((10, 10), (20, 5)), rates((10, 0), (20, 5)))
    assert (found["events"], found["kept"], found["at_end"]) == (2, 2, 2)
    # The trailing half second holds 10 Mbit/s at first: within 10 % of 5 after .45 s. And from 0 before the trial.
    assert found["until_next_s"] == pytest.approx(0.45)


def test_a_split_that_comes_back_is_not_kept() -> None:
    away = ((10, 5), (4, 7), (6, 5))
    other = ((10, 5), (4, 3), (6, 5))
    found = kept(rates((10, 10), *((s / 1, m) for s, m in away)), rates((10, 0), *other))
    assert (found["kept"], found["at_end"]) == (1, 2)
    # Back after 14 s; the trailing mean is within 10 % of 5 Mbit/s .38 s later: 2 x (.5 - t) / .5 <= .5.
    assert found["until_next_s"] == pytest.approx((0.45 + 14 + 0.38) / 2)


def test_a_stable_split_is_neither() -> None:
    found = kept(rates((10, 10), (20, 6)), rates((10, 0), (20, 4)))
    assert (found["kept"], found["at_end"]) == (1, 1)
    assert found["until_next_s"] == pytest.approx((0.45 + 20) / 2)


def test_share_of_the_link_when_the_others_have_left() -> None:
    flows = [flow(0, 40), flow(0, 10, under_test=False)]
    data = trial(flows, [rates((15, 1), (10, 5), (15, 10)), rates((10, 9), (30, 0))], [rates((40, 10))])
    # From 15 to 35 s: 10 s at 5 and 10 s at 10 Mbit/s.
    assert measures._alone(data) == pytest.approx(0.75)


def test_inflation_of_a_path_that_changes() -> None:
    data = trial([flow(0, 20)], [rates((10, 9), (10, 3))], [rates((20, 10))])
    rtt = np.concatenate([np.full(1000, 0.04), np.full(1000, 0.2)])[None, :]
    rtt[0, 0] = np.nan
    found = measures._inflation([[0, 10_000_000], [10_000_000_000, 50_000_000]], data, rtt)
    # Base 20 and then 100 ms, both doubled, however it is weighted.
    assert found["rtt_inflation"] == pytest.approx(2)
    assert found["rtt_inflation_time"] == pytest.approx(2)
    rtt[0, :1000] = 0.02
    # Now 9 parts at 20 of 20 ms and 3 parts at 200 of 100 ms: (9 x 20 + 3 x 200) / (9 x 20 + 3 x 100).
    assert measures._inflation([[0, 10_000_000], [10_000_000_000, 50_000_000]], data, rtt)[
        "rtt_inflation"
    ] == pytest.approx(780 / 480)


@pytest.mark.parametrize(
    ("floor", "goal", "value", "mark"),
    [
        (0.9, 0.99, 0.99, "goal"),
        (0.9, 0.99, 0.95, "floor"),
        (0.9, 0.99, 0.89, "BELOW"),
        (4.0, 2.0, 1.9, "goal"),
        (4.0, 2.0, 3.0, "floor"),
        (4.0, 2.0, 4.1, "BELOW"),
        ((0.3, 3.0), (0.6, 1.6), 1.0, "goal"),
        ((0.3, 3.0), (0.6, 1.6), 2.0, "floor"),
        ((0.3, 3.0), (0.6, 1.6), 3.1, "BELOW"),
        (0.9, 0.99, float("nan"), "BELOW"),
        (None, None, 1.0, ""),
    ],
)
def test_marks(floor: measures.Bound, goal: measures.Bound, value: float, mark: str) -> None:
    assert measures.Row("", "", lambda _: 0.0, floor, goal).mark(value) == mark


def test_pure_has_targets_of_its_own() -> None:
    own, default = measures.rows(pure=True), measures.rows(pure=False)
    changed = [row.what for row, other in zip(own, default, strict=True) if row.goal != other.goal]
    assert changed == ["Jain", "settle, s", "stability, Mbit/s", "queue, ms"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / "policies.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def test_a_table(tmp_path: Path) -> None:
    done = run("newreno", "--only", "short-flows", "--json", str(tmp_path / "out.json"))
    assert (done.returncode, done.stderr) == (0, "")
    written = json.loads((tmp_path / "out.json").read_text())["schemes"]["newreno"]
    (row,) = written["rows"]
    assert f"{row['value']:.4f}" in done.stdout
    assert row["met"] == "goal"  # a full buffer keeps a link busy
    assert len(written["trials"]) == 5
    assert len({each["utilization"] for each in written["trials"]}) == 5


def test_bad_input() -> None:
    for arguments, message in (
        (("newreno", "--only", "nothing"), "unknown group nothing"),
        (("newrino",), 'unknown scheme "newrino"'),
        (("newreno", "--jobs", "0"), "--seed-offset and --jobs"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        # Beside how it is called, in as many lines as that takes.
        (line,) = (line for line in done.stderr.splitlines() if not line.startswith(("usage: ", " ")))
        assert line.startswith("policies.py: error: ")
        assert message in line
