"""`astraea fidelity`: the comparison by hand, the files it writes, and a short real one."""

import json
from pathlib import Path
from typing import Any

import pytest

from astraea import host
from astraea.cli import main
from astraea.errors import UserError
from astraea.eval import kernel
from astraea.fidelity import compare, write
from astraea.fidelity.measure import Measured, Pair
from astraea.fidelity.settings import DEFAULT, QUICK, Setting, full


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
        "duration": "10s", **compare(pairs),
    }  # fmt: skip
    page = write(tmp_path / "new", found, pairs)
    assert json.loads((tmp_path / "new" / "fidelity.json").read_text()) == found
    html = page.read_text()
    assert "in 1 of 3 pairs the links were late or the flows" in html
    assert html.count("<svg") == 3 + len(pairs)
    assert "6.&lt;b&gt;" in html
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
