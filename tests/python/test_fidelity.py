"""`astraea fidelity`: the comparison by hand, the files it writes, and a short real one."""

import json
from pathlib import Path
from typing import Any

import pytest

from astraea import host
from astraea.cli import main
from astraea.errors import UserError
from astraea.eval import kernel, runner
from astraea.eval.simulated import Simulator
from astraea.fidelity import compare, write
from astraea.fidelity.measure import Measured, Pair
from astraea.fidelity.settings import DEFAULT, QUICK, Setting, full
from astraea.fidelity.write import render
from astraea.scenario.resolve import Resolved


def _obstacle() -> str | None:
    try:
        return kernel.obstacle(kernel.doctor(host.program()))
    except UserError as error:
        return str(error)


real = pytest.mark.skipif(_obstacle() is not None, reason=f"no real traffic here: {_obstacle()}")


def _measured(delivered: float, delay: float | None, *, real_trial: bool = False, late: bool = False) -> Measured:
    """One trial of 10 s with one flow of so many Mbit/s and so many ms of queueing delay."""
    metrics = {"queue_delay_ms": delay, "queue_delay_p95_ms": delay, "loss": 0.01, "jain": None}
    trial: dict[str, Any] = {
        "duration_ns": 10 * 10**9,
        "flows": [{"delivered_bytes": delivered * 1e6 * 10 / 8}],
        "metrics": metrics,
    }
    if real_trial:
        trial |= {"unfaithful": late, "emulation": {"lateness_p999_ns": 500_000}}
    course: dict[str, list[float | None]] = {
        "t": [0.0, 0.1], "throughput": [1.0, 2.0], "cwnd": [10.0, None], "queue_delay": [None, 1.0],
    }  # fmt: skip
    return Measured([trial], course)


def _pairs() -> list[Pair]:
    setting = Setting(100, 30, 1)
    return [
        Pair(setting, "cubic", _measured(98, 11), _measured(100, 10, real_trial=True)),
        Pair(setting, "bbr", _measured(90, 5), _measured(100, 10, real_trial=True, late=True)),
        Pair(setting, "reno", _measured(96, None), _measured(100, 0, real_trial=True)),
    ]


def test_differences_by_hand() -> None:
    found = compare(_pairs())
    first, second, third = found["pairs"]
    assert first["setting"] == "100 Mbit/s, 30 ms, 1 BDP"
    assert first["sim"]["throughput_mbps"] == pytest.approx(98)
    assert first["difference"]["throughput_mbps"] == pytest.approx(-0.02)
    assert first["difference"]["queue_delay_ms"] == pytest.approx(0.1)
    assert first["difference"]["loss"] == 0
    assert first["difference"]["jain"] is None
    assert first["lateness_p999_ms"] == 0.5
    assert second["difference"]["queue_delay_ms"] == pytest.approx(-0.5)
    assert second["unfaithful"] == 1
    assert third["difference"]["queue_delay_ms"] is None
    overall = found["summary"]["all"]
    assert (overall["pairs"], overall["unfaithful"]) == (3, 1)
    assert overall["throughput_mbps"]["within"] == {"0.03": pytest.approx(1 / 3), "0.05": pytest.approx(2 / 3)}
    assert overall["throughput_mbps"]["median"] == pytest.approx(0.04)
    assert overall["throughput_mbps"]["largest"] == pytest.approx(0.1)
    assert overall["queue_delay_ms"]["within"]["0.15"] == 0.5
    assert list(found["summary"]) == ["all", "cubic", "bbr", "reno"]


def test_files_hold_everything(tmp_path: Path) -> None:
    pairs = _pairs()
    found = {
        "schema": 1, "astraea_version": "0", "command": "astraea fidelity", "host": {"kernel": "6.<b>"},
        "duration": "10s", "interrupted": False, **compare(pairs),
    }  # fmt: skip
    page = write(tmp_path / "new", found, pairs)
    assert json.loads((tmp_path / "new" / "fidelity.json").read_text()) == found
    html = page.read_text()
    assert "in 1 of 3 pairs the links were late or the flows" in html
    assert html.count("<svg") == 3 + len(pairs)
    assert "6.&lt;b&gt;" in html
    assert "interrupted" not in html
    assert "This comparison was interrupted" in render(found | {"interrupted": True}, pairs)
    assert "http" not in html.replace("http://www.w3.org", "").replace("http-equiv", "")
    with pytest.raises(UserError, match="cannot be written"):
        write(page, found, pairs)


def test_settings_cover_what_they_should() -> None:
    assert len(DEFAULT) >= 12
    assert len(full()) == 4 * 3 * 3 * 2 * 2 + 1
    assert set(DEFAULT) <= set(full())
    assert set(QUICK) <= set(full())
    for pick, values in (("rate", {12, 50, 100, 500, None}), ("rtt", {10, 30, 40, 100}), ("buffer", {0.5, 1, 4})):
        assert {getattr(setting, pick) for setting in DEFAULT} == values
    for setting in full():
        setting.document("2s").validate()
    scenario = Setting(12, 10, 0.5, flows=3, loss=0.001).document("2s").validate()
    assert scenario.flow[0].count == 3
    assert scenario.flow[0].ack.every == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick", "--full"], "--quick and --full exclude each other"),
        (["--only", "7 Mbit"], '--only "7 Mbit": no setting has this in its name'),
        (["--duration", "soon"], "--duration: "),
        (
            ["--duration", "0s", "--only", "50 Mbit/s, 10 ms, 1 BDP"],
            '--duration: expected 20ms, by when every flow has started, to 24h, not "0s"',
        ),
        (["--duration", "1s"], '--duration: expected 2.02s, by when every flow has started, to 24h, not "1s"'),
        (["--duration", "25h"], "--duration: expected 2.02s, by when every flow has started, to 24h"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    status = main(["fidelity", "--out", str(tmp_path / "x"), *arguments])
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: {message}")
    assert not (tmp_path / "x").exists()


def test_the_shortest_duration_is_enough(tmp_path: Path) -> None:
    # Whatever the seed: a start is drawn from before the end of its jitter.
    document = Setting(12, 10, 1, flows=3).document("2.02s")
    for seed in range(1, 100):
        runner.plan(document, ["cubic"], seed=seed, directory=tmp_path)


class Emulated(Simulator):
    """Real traffic, without any: the simulator, interrupted after so many trials."""

    name = "kernel"
    parallel = False

    def __init__(self, trials: int) -> None:
        super().__init__()
        self.left, self.seeds = trials, list[int]()

    def run(self, trial: Resolved) -> dict[str, Any]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.seeds.append(trial.seed)
        return {**super().run(trial), "emulation": {"problems": [], "lateness_p999_ns": 0}}

    def facts(self) -> dict[str, Any]:
        return {"kernel": "6.18"}


SHORT = ["--quick", "--cc", "cubic,newreno", "--duration", "2.1s", "--only", "1 BDP", "--trials", "2"]


def test_an_interrupt_keeps_the_finished_pairs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated = Emulated(7)  # both schemes of the first setting, one of the second, and half of the other
    monkeypatch.setattr("astraea.cli.fidelity.make", lambda _: emulated)
    assert main(["fidelity", "--out", str(tmp_path), *SHORT, "--seed", "5", "--json"]) == 130
    out, err = capsys.readouterr()
    assert err == f"astraea: interrupted: kept the 3 finished of 8 pairs in {tmp_path}\n"
    found = json.loads(out)
    assert found == json.loads((tmp_path / "fidelity.json").read_text())
    assert found["interrupted"] is True
    assert [pair["cc"] for pair in found["pairs"]] == ["cubic", "newreno", "cubic"]
    assert [pair["trials"] for pair in found["pairs"]] == 3 * [{"sim": 2, "kernel": 2}]
    assert "This comparison was interrupted" in (tmp_path / "fidelity.html").read_text()
    # The same seeds on both, from the one that was asked for.
    assert (found["seed"], emulated.seeds[:4]) == (5, [5, 6, 5, 6])
    assert found["pairs"][0]["difference"]["throughput_mbps"] == 0
    assert "--trials 2 --seed 5" in found["command"]


def test_an_interrupt_before_a_pair_had_finished(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astraea.cli.fidelity.make", lambda _: Emulated(1))
    assert main(["fidelity", "--out", str(tmp_path / "x"), *SHORT]) == 130
    said = "astraea: interrupted before a pair had finished; nothing was written\n"
    assert capsys.readouterr() == ("", said)
    assert not (tmp_path / "x").exists()


def test_an_output_that_cannot_be_written_is_found_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astraea.cli.fidelity.make", lambda _: pytest.fail("it was measured"))
    (tmp_path / "file").write_text("")
    (tmp_path / "x" / "fidelity.html").mkdir(parents=True)
    for name, reason in (("file", "exists and is not a directory"), ("x", "fidelity.html in it is a directory")):
        assert main(["fidelity", "--quick", "--out", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err.startswith(f"astraea: --out {tmp_path / name}: {reason}")


@real
def test_a_short_comparison(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--quick", "--only", "50 Mbit/s", "--duration", "2s", "--cc", "newreno,bbr", "--json"]
    assert main(["fidelity", "--out", str(tmp_path), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((tmp_path / "fidelity.json").read_text())
    assert found["command"] == "astraea fidelity --quick --cc newreno,bbr --only '50 Mbit/s' --duration 2s"
    assert [(pair["setting"], pair["cc"]) for pair in found["pairs"]] == [
        ("50 Mbit/s, 10 ms, 1 BDP", "newreno"),
        ("50 Mbit/s, 10 ms, 1 BDP", "bbr"),
    ]
    for pair in found["pairs"]:
        assert pair["trials"] == {"sim": 1, "kernel": 1}
        assert pair["kernel"]["throughput_mbps"] > 30
        assert pair["sim"]["throughput_mbps"] > 30
    assert (tmp_path / "fidelity.html").exists()
