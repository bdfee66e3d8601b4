"""The backend `quic`: any scheme on real packets over emulated links. Needs root and TUN; skipped elsewhere."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from astraea import host, models
from astraea.cli import main
from astraea.errors import UserError
from astraea.eval import kernel, registry
from astraea.eval.backend import make
from astraea.eval.simulated import simulate
from astraea.scenario import document
from astraea.scenario.resolve import resolve

Run = Callable[..., tuple[int, str, str]]


def _obstacle() -> str | None:
    try:
        return kernel.obstacle(kernel.doctor(host.program()))
    except UserError as error:
        return str(error)


real = pytest.mark.skipif(_obstacle() is not None, reason=f"no real traffic here: {_obstacle()}")

TABLE = Path(__file__).parents[2] / "crates/cc/src/remy/shipped.dna"

LINK = """
[link.bottleneck]
rate = "20Mbps"
delay = "5ms"
buffer = "2bdp"
"""
SHORT = f"""
duration = "1.5s"
{LINK}
[[flow]]
count = 2
path = ["bottleneck"]
"""


@pytest.fixture
def astraea(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in an empty directory: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "short.toml").write_text(SHORT)

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return status, *capsys.readouterr()

    return run


def _results(directory: str = "out/short") -> dict[str, Any]:
    return dict(json.loads(Path(directory, "results.json").read_text()))


@real
def test_schemes_that_no_kernel_has_give_complete_results(astraea: Run) -> None:
    shutil.copy(models.path("astraea"), "mine.safetensors")
    shutil.copy(TABLE, "table.dna")
    schemes = ["copa:delta=0.1", "astraea", "mine.safetensors", "table.dna"]
    status, _, err = astraea("run", "short.toml", "--backend", "quic", "--cc", ",".join(schemes), "-q")
    assert status == 0, err
    found = _results()
    assert found["backend"] == "quic"
    assert [trial["cc"] for trial in found["trials"]] == schemes
    astraea("run", "short.toml", "--cc", "copa", "--out", "sim", "-q", "--no-report")
    like = _results("sim")["trials"][0]
    for trial in found["trials"]:
        assert trial.keys() - like.keys() == {"unfaithful", "emulation"}
        assert trial["metrics"].keys() == like["metrics"].keys()
        # Slower is what a busy machine makes it; faster than the link it cannot be.
        assert 0 < trial["metrics"]["utilization"] <= 1.01, trial["cc"]
        for flow in trial["flows"]:
            assert flow.keys() == like["flows"][0].keys(), "a failure would be listed"
            assert flow["rtt_min_ms"] >= 10
            assert flow["delivered_bytes"] > 0
    series = pl.read_parquet("out/short/series.parquet")
    assert series.columns == pl.read_parquet("sim/series.parquet").columns
    assert series["pacing"].is_not_nan().any()
    assert Path("out/short/report.html").exists()


@real
def test_the_answer_is_the_simulators(tmp_path: Path) -> None:
    """The same document, with what only one of the two knows beside it."""
    (tmp_path / "a.toml").write_text(SHORT)
    scenario = document.load(str(tmp_path / "a.toml"), []).validate()
    trial = resolve(scenario, registry.scheme("vegas"), {}, 1, {})
    found, expected = make("quic").run(trial), simulate(trial)
    assert found.keys() - expected.keys() == {"emulation"}
    assert found["flows"][0].keys() - expected["flows"][0].keys() == {"failure"}
    for name, values in expected["series"].items():
        assert found["series"][name].shape == values.shape, name
    for flow, sent in zip(found["flows"], np.asarray(found["series"]["delivered"]), strict=True):
        assert flow["failure"] is None
        assert sent.sum() == pytest.approx(flow["delivered_bytes"], rel=0.02)


@real
def test_finite_flows_complete(astraea: Run) -> None:
    Path("finite.toml").write_text(
        f"""
        duration = "2s"
        {LINK}
        [[flow]]
        name = "file"
        path = ["bottleneck"]
        source = {{ kind = "sized", size = "200kB" }}
        [[flow]]
        name = "requests"
        path = ["bottleneck"]
        extra_delay = "10ms"
        source = {{ kind = "periodic", every = "500ms", size = "10kB" }}
        """
    )
    status, _, err = astraea("run", "finite.toml", "--backend", "quic", "-q", "--no-report")
    assert status == 0, err
    file, requests = _results("out/finite")["trials"][0]["flows"]
    assert file["completions"] == 1
    assert file["delivered_bytes"] >= 200_000
    assert file["end_ns"] < 2_000_000_000
    assert requests["completions"] == 4
    assert requests["rtt_min_ms"] >= 30


@real
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "flow.ack.loss=0.1"], "short.toml: flow.0.ack.loss: a QUIC receiver loses none"),
        (["--set", "flow.ack.aggregate=5ms"], "short.toml: flow.0.ack.aggregate: a QUIC receiver does not bunch"),
        (["--set", "flow.ack.every=300"], "short.toml: flow.0.ack.every: is 300, expected at most 255"),
    ],
)
def test_what_the_stack_cannot_do_is_one_line(astraea: Run, arguments: list[str], message: str) -> None:
    status, out, err = astraea("run", "short.toml", "--backend", "quic", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: {message}")
    assert not Path("out").exists()


@real
def test_a_python_controller_needs_the_simulator(astraea: Run) -> None:
    Path("mine.py").write_text("class Mine:\n    def decide(self, stats):\n        return None\n")
    status, _, err = astraea("run", "short.toml", "--backend", "quic", "--cc", "mine.py:Mine")
    assert (status, err) == (
        2,
        "astraea: --cc mine.py:Mine: a controller written in Python runs in the simulator only; "
        "expected --backend sim\n",
    )


@real
def test_every_scheme_runs_there(astraea: Run) -> None:
    status, out, _ = astraea("schemes", "--json")
    assert status == 0
    assert all(scheme["backends"]["quic"] is None for scheme in json.loads(out))
