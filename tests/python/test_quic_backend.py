"""The backend `quic`: any scheme on real packets over emulated links. Needs root and TUN; skipped elsewhere."""

import json
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from astraea import host, models
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

MOCC = Path(__file__).parents[2] / "crates/policy/src/mocc/shipped.mocc"
AURORA = Path(__file__).parents[2] / "crates/policy/src/aurora/shipped.aurora"
ORCA = Path(__file__).parents[2] / "crates/policy/src/orca/shipped.orca"
HACC = Path(__file__).parents[2] / "crates/policy/src/selector/shipped.hacc"

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
def astraea(astraea: Run, tmp_path: Path) -> Run:
    """The command, beside a short scenario."""
    (tmp_path / "short.toml").write_text(SHORT)
    return astraea


def _results(directory: str = "out/short") -> dict[str, Any]:
    return dict(json.loads(Path(directory, "results.json").read_text()))


@real
def test_schemes_that_no_kernel_has_give_complete_results(astraea: Run) -> None:
    shutil.copy(models.path("astraea"), "mine.safetensors")
    shutil.copy(TABLE, "table.dna")
    shutil.copy(AURORA, "mine.aurora")
    shutil.copy(MOCC, "mine.mocc")
    shutil.copy(ORCA, "mine.orca")
    shutil.copy(HACC, "mine.hacc")
    files = ["mine.safetensors", "table.dna", "mine.aurora", "mine.mocc:latency=0.8,loss=0.5", "mine.orca", "mine.hacc"]
    schemes = ["copa:delta=0.1", "astraea", *files]
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


@contextmanager
def _service() -> Iterator[tuple[subprocess.Popen[bytes], list[list[str]], str]]:
    """An inference service of the default policy: its process, options that ask it, and where its metrics are."""
    with tempfile.TemporaryDirectory(prefix="astraea-") as directory:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            udp.bind(("127.0.0.1", 0))
            metrics, listen = (f"127.0.0.1:{free.getsockname()[1]}" for free in (tcp, udp))
        addresses = [f"unix:{directory}/serve.sock", f"udp:{listen}"]
        key = Path(directory, "key")
        key.touch(0o600)
        key.write_text("0f" * 32)
        deciding = [[f"--decide=service={addresses[0]}"], [f"--decide=service={addresses[1]}", f"--key={key}"]]
        command = [
            str(host.program()),
            "serve",
            f"--metrics={metrics}",
            f"--key={key}",
            *(f"--listen={address}" for address in addresses),
        ]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                until = time.monotonic() + 20
                while not Path(directory, "serve.sock").exists():
                    assert process.poll() is None
                    assert time.monotonic() < until
                    time.sleep(0.01)
                yield process, deciding, f"http://{metrics}/metrics"
            finally:
                process.kill()


@real
def test_a_service_decides_for_learned_schemes(astraea: Run) -> None:
    """The links are in other network namespaces than the service; the sockets to ask it by are not."""
    with _service() as (_, deciding, _):
        for decide in deciding:
            status, _, err = astraea("run", "short.toml", "--backend", "quic", "--cc", "astraea,cubic", "-q", *decide)
            assert status == 0, err
            learned, classic = _results()["trials"]
            assert learned["decisions"]["service"] > 0
            assert classic["decisions"] == {"service": 0, "rule": 0}
            assert all(flow["delivered_bytes"] > 0 for flow in learned["flows"])
        status, out, err = astraea("run", "short.toml", "--backend", "quic", "--cc", "astraea-pure", *decide)
        address = decide[0].removeprefix("--decide=service=")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"astraea: --cc astraea-pure: {address}: serves policy ")
    status, out, err = astraea("run", "short.toml", "--backend", "quic", "--cc", "astraea", decide[0])
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: short.toml: decide: {address}: no ")


@real
def test_flows_outlive_their_service(astraea: Run) -> None:
    with _service() as (process, ((decide,), _), metrics):

        def kill_at_work() -> None:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                lines = urllib.request.urlopen(metrics).read().decode().splitlines()
                if any(re.fullmatch("astraea_serve_decisions_total [1-9].*", line) for line in lines):
                    break
                time.sleep(0.01)
            process.kill()

        killer = threading.Thread(target=kill_at_work)
        killer.start()
        status, _, err = astraea(
            "run",
            "short.toml",
            "--backend",
            "quic",
            "--cc",
            "astraea",
            decide,
            "-q",
            "--trials=1",
            "--max-lateness=10s",  # a second attempt would find no service
        )
        killer.join()
    assert status == 0, err
    (trial,) = _results()["trials"]
    assert trial["decisions"]["rule"] > 0
    assert f"the service left {trial['decisions']['rule']} of " in err
    assert all("failure" not in flow and flow["delivered_bytes"] > 0 for flow in trial["flows"])


@real
def test_flows_of_the_kernel_cannot_ask_a_service(astraea: Run) -> None:
    status, out, err = astraea("run", "short.toml", "--backend", "kernel", "--decide", "service")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("astraea: --decide: flows of the kernel's TCP cannot ask a service")


@real
def test_every_scheme_runs_there(astraea: Run) -> None:
    status, out, _ = astraea("schemes", "--json")
    assert status == 0
    assert all(scheme["backends"]["quic"] is None for scheme in json.loads(out))
