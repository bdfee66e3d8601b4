"""The backend `kernel`: real TCP over emulated links. Needs root and TUN; skipped elsewhere."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from processes import inside, killed, networks

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

COMMAND = str(Path(sys.executable).with_name("astraea"))

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
ack = {{ every = 2 }}
"""


@pytest.fixture
def astraea(astraea: Run, tmp_path: Path) -> Run:
    """The command, beside a short scenario."""
    (tmp_path / "short.toml").write_text(SHORT)
    return astraea


def _undisturbed(astraea: Run, *arguments: str) -> tuple[int, str]:
    """Exit status and standard error of a run whose flows had the processor in time.

    Tried three times, and skipped where the trial says each time that the machine had too much else to do:
    `--max-lateness` is about packets, and does not cover that.
    """
    for _ in range(3):
        status, _, err = astraea(*arguments)
        if status != 0 or all(trial["emulation"]["attempts"] == 1 for trial in _results()["trials"]):
            return status, err
    if "for the processor, expected" in err:
        pytest.skip(err.strip())
    return status, err


def _results(directory: str = "out/short") -> dict[str, Any]:
    return dict(json.loads(Path(directory, "results.json").read_text()))


@real
def test_a_run_gives_complete_results(astraea: Run) -> None:
    status, _, err = astraea("run", "short.toml", "--backend", "kernel", "--cc", "cubic,newreno,bbr", "-q")
    assert status == 0, err
    real_run = _results()
    assert real_run["backend"] == "kernel"
    assert {"kernel", "processor", "load"} <= real_run["host"].keys()
    assert real_run["command"] == "astraea run short.toml --cc cubic,newreno,bbr --seed 1 --backend kernel"
    astraea("run", "short.toml", "--cc", "cubic", "--out", "sim", "-q", "--no-report")
    simulated = _results("sim")
    entry, like = real_run["trials"][0], simulated["trials"][0]
    assert entry.keys() - like.keys() == {"unfaithful", "emulation"}
    assert entry["flows"][0].keys() == like["flows"][0].keys()
    assert entry["links"][0].keys() == like["links"][0].keys()
    for trial in real_run["trials"]:
        assert 0.5 < trial["metrics"]["utilization"] <= 1.01, trial["cc"]
        assert trial["metrics"].keys() == like["metrics"].keys()
        assert trial["metrics"]["queue_delay_ms"] < 21
        assert all(flow["rtt_min_ms"] >= 10 and flow["base_rtt_ns"] == 10_000_000 for flow in trial["flows"])
    series = pl.read_parquet("out/short/series.parquet")
    assert series.columns == pl.read_parquet("sim/series.parquet").columns
    got = series.filter(pl.col("cc") == "bbr")
    assert got["pacing"].is_not_nan().any()
    assert series.filter(pl.col("cc") == "cubic")["pacing"].is_nan().all()
    assert pl.read_parquet("out/short/links.parquet")["capacity"].drop_nans().max() == pytest.approx(20 * 1448 / 1500)
    page = Path("out/short/report.html").read_text()
    assert "ms late for 99.9 % of the packets" in page


@real
def test_the_answer_is_the_simulators(tmp_path: Path) -> None:
    """The same document, with what only one of the two knows beside it."""
    (tmp_path / "a.toml").write_text(SHORT)
    scenario = document.load(str(tmp_path / "a.toml"), []).validate()
    trial = resolve(scenario, registry.scheme("cubic"), {}, 1, {})
    found, expected = make("kernel").run(trial), simulate(trial)
    assert found.keys() - expected.keys() == {"emulation"}
    assert found["flows"][0].keys() - expected["flows"][0].keys() == {"failure"}
    assert found["links"][0].keys() == expected["links"][0].keys()
    for part in ("series", "links"):
        ours, theirs = found[part], expected[part]
        if part == "links":
            ours, theirs = ours[0]["series"], theirs[0]["series"]
        assert ours.keys() == theirs.keys()
        for name, values in theirs.items():
            assert ours[name].shape == values.shape, name
    moved = np.asarray(found["series"]["delivered"]).sum()
    assert moved == pytest.approx(sum(flow["delivered_bytes"] for flow in found["flows"]), rel=0.01)


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
        name = "bursts"
        path = ["bottleneck"]
        start = "100ms"
        source = {{ kind = "on_off", on = "200ms", off = "200ms", exponential = false }}
        [[flow]]
        name = "requests"
        path = ["bottleneck"]
        extra_delay = "10ms"
        source = {{ kind = "periodic", every = "500ms", size = "10kB" }}
        """
    )
    status, _, err = astraea("run", "finite.toml", "--backend", "kernel", "-q", "--no-report")
    assert status == 0, err
    file, bursts, requests = _results("out/finite")["trials"][0]["flows"]
    assert file["completions"] == 1
    assert file["delivered_bytes"] == 200_000
    assert file["end_ns"] < 2_000_000_000
    assert bursts["delivered_bytes"] > 200_000
    assert requests["completions"] == 4
    assert requests["rtt_min_ms"] >= 30
    times = pl.read_parquet("out/finite/completions.parquet").filter(pl.col("flow") == 2)["time"]
    assert times.min() >= 0.015, "one way is 15 ms"  # type: ignore[operator]


@real
def test_no_round_trip_of_the_policys_is_shorter_than_the_path(astraea: Run) -> None:
    """On a rate that changes the kernel's pacing is turned on and off all the time."""
    Path("cellular.toml").write_text(
        """
        duration = "6s"
        [link.bottleneck]
        trace = { model = "lte", mean = "9Mbps", seed = 1 }
        delay = "20ms"
        buffer = "5MB"
        [[flow]]
        count = 2
        path = ["bottleneck"]
        """
    )
    status, _, err = astraea("run", "cellular.toml", "--backend", "kernel", "--cc", "astraea", "-q", "--no-report")
    assert status == 0, err
    flows = _results("out/cellular")["trials"][0]["flows"]
    assert [flow["rtt_min_ms"] >= 40 for flow in flows] == [True, True], flows


@real
def test_two_runs_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    command = [COMMAND, "run", "short.toml", "--backend", "kernel", "-q", "--no-report", "-o"]
    with ExitStack() as all_of_them:
        started = [subprocess.Popen([*command, name], cwd=tmp_path) for name in ("one", "two")]
        running = [all_of_them.enter_context(killed(child)) for child in started]
        assert [child.wait(60) for child in running] == [0, 0]
    for name in ("one", "two"):
        (trial,) = _results(str(tmp_path / name))["trials"]
        assert trial["metrics"]["utilization"] > 0.5


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in listed for child in path.read_text().split()]


def _gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def _wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline, "nothing happened for 30 s"
        time.sleep(0.02)


@contextmanager
def _under_way(directory: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A run of a minute and its trial, which are to be ended: nobody has the trial's network namespaces after that."""
    (directory / "short.toml").write_text(SHORT.replace("1.5s", "60s"))
    # Whatever runs the tests may have told its children to ignore an interrupt.
    command = ["env", "--default-signal=INT", COMMAND, "run", "short.toml", "--backend", "kernel", "-q"]
    started = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True, start_new_session=True)
    with ExitStack() as held, killed(started) as running:

        def trials() -> list[int]:
            named = [(child, Path(f"/proc/{child}/cmdline")) for child in _children(running.pid)]
            return [child for child, path in named if path.exists() and b"--seed" in path.read_bytes()]

        _wait_for(lambda: bool(trials()))
        (trial,) = trials()
        _wait_for(lambda: len(networks(trial)) == 2)
        found = networks(trial)
        # Held open, since a namespace of another test would be given the number of one that has gone.
        for path in found.values():
            held.enter_context(path.open("rb"))
        time.sleep(0.3)
        assert not _gone(trial)
        yield running, trial
        _wait_for(lambda: not any(inside(network) for network in found))
    assert not (directory / "out/short").exists()


@real
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_whatever_ends_a_run_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    with _under_way(tmp_path) as (running, trial):
        running.send_signal(how)
        _wait_for(lambda: _gone(trial))
        status = running.wait(30)
    assert status == (130 if how == signal.SIGINT else -signal.SIGKILL)


@real
def test_a_trial_that_is_killed_is_one_line(tmp_path: Path) -> None:
    with _under_way(tmp_path) as (running, trial):
        os.kill(trial, signal.SIGKILL)
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (2, "astraea: kernel: astraead trial failed: ended with status -9\n")


@real
def test_settings_of_the_host_are_left_alone(astraea: Run) -> None:
    def settings() -> dict[Path, str]:
        found = {}
        for path in (file for part in ("core", "ipv4") for file in Path("/proc/sys/net", part).iterdir()):
            # Which schemes there are changes when somebody registers one.
            if path.is_file() and "available" not in path.name and "allowed" not in path.name:
                with suppress(OSError):
                    found[path] = path.read_text()
        return found

    before = settings()
    assert astraea("run", "short.toml", "--backend", "kernel", "-q", "--no-report")[0] == 0
    subprocess.run([COMMAND, "link", "--rate", "10Mbps", "--", "true"], check=True)
    assert settings() == before


@real
def test_late_packets_make_a_trial_unfaithful_and_it_is_repeated(astraea: Run) -> None:
    status, _, err = astraea("run", "short.toml", "--backend", "kernel", "--max-lateness", "1ns", "-q")
    assert status == 0
    assert err.startswith("astraea: 1 of 1 trials is unfaithful: cubic, seed 1: one packet in a thousand was")
    (trial,) = _results()["trials"]
    assert trial["unfaithful"] is True
    assert trial["emulation"]["attempts"] == 2
    page = Path("out/short/report.html").read_text()
    assert "<b>Unfaithful:</b>" in page
    _undisturbed(astraea, "run", "short.toml", "--backend", "kernel", "--max-lateness", "10s", "-q")
    (trial,) = _results()["trials"]
    assert (trial["unfaithful"], trial["emulation"]["attempts"]) == (False, 1)
    assert "<b>Unfaithful:</b>" not in Path("out/short/report.html").read_text()


@real
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cc", "vegas"], "--cc vegas: the kernel backend has no vegas"),
        (["--cc", "cubic:hystart=off"], "--cc cubic:hystart=off: the kernel's cubic takes no parameters"),
        (["--set", "flow.0.cc=vegas"], "short.toml: flow.0.cc: the kernel backend has no vegas"),
        (["--set", "flow.ack.every=8"], "short.toml: flow.0.ack.every: the kernel cannot acknowledge every 8th"),
        (["--set", "flow.ack.loss=0.1"], "short.toml: flow.0.ack.loss: the kernel loses none"),
        (["--set", "flow.ack.aggregate=5ms"], "short.toml: flow.0.ack.aggregate: the kernel does not bunch"),
    ],
)
def test_what_the_kernel_cannot_do_is_one_line(astraea: Run, arguments: list[str], message: str) -> None:
    status, out, err = astraea("run", "short.toml", "--backend", "kernel", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: {message}")
    assert not Path("out").exists()


def _controller_obstacle() -> str | None:
    listed = registry.backends()["astraea"]["kernel"]
    return _obstacle() or listed


@pytest.mark.skipif(_controller_obstacle() is not None, reason=f"no policies here: {_controller_obstacle()}")
def test_policies_decide_in_the_kernel(astraea: Run) -> None:
    shutil.copy(models.path("astraea"), "mine.safetensors")
    schemes = "astraea-pure,astraea-paper,mine.safetensors"
    late = ("--max-lateness", "10s")
    arguments = ("run", "short.toml", "--backend", "kernel", "--cc", schemes, *late, "-q", "--no-report")
    status, err = _undisturbed(astraea, *arguments)
    assert (status, err) == (0, "")
    trials = _results()["trials"]
    assert [trial["cc"] for trial in trials] == ["astraea-pure", "astraea-paper", "mine.safetensors"]
    assert all(flow["delivered_bytes"] > 500_000 for trial in trials for flow in trial["flows"])
    assert all(trial["metrics"]["utilization"] > 0.5 for trial in trials)


@real
@pytest.mark.parametrize(
    ("file", "what"),
    [
        (TABLE, "a rule table"),
        (AURORA, "a policy of Aurora's"),
        (MOCC, "a policy of MOCC's"),
        (ORCA, "a policy of Orca's"),
        (HACC, "a policy of HACC's"),
    ],
)
def test_some_files_do_not_run_in_the_kernel(astraea: Run, file: Path, what: str) -> None:
    name = f"mine{file.suffix}"
    shutil.copy(file, name)
    status, _, err = astraea("run", "short.toml", "--backend", "kernel", "--cc", name)
    assert status == 2
    assert err == f"astraea: --cc {name}: {what} does not run in the kernel; expected --backend sim or quic\n"


@real
def test_a_python_controller_needs_the_simulator(astraea: Run) -> None:
    Path("mine.py").write_text("class Mine:\n    def decide(self, stats):\n        return None\n")
    status, _, err = astraea("run", "short.toml", "--backend", "kernel", "--cc", "mine.py:Mine")
    assert status == 2
    assert err == (
        "astraea: --cc mine.py:Mine: a controller written in Python runs in the simulator only; "
        "expected --backend sim\n"
    )


def test_unknown_backends_and_options_that_do_not_fit(astraea: Run) -> None:
    status, _, err = astraea("run", "short.toml", "--backend", "kernle")
    assert (status, err) == (
        2,
        'astraea: --backend kernle: no such backend; did you mean "kernel"?; expected sim or kernel or quic\n',
    )
    status, _, err = astraea("run", "short.toml", "--max-lateness", "1ms")
    assert (status, err) == (
        2,
        "astraea: --max-lateness: only emulated links are late; expected --backend kernel or quic with it\n",
    )


@pytest.mark.skipif(not shutil.which("setpriv") or os.geteuid() != 0, reason="only root can give up its rights")
def test_without_rights_one_line_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    command = [COMMAND, "run", "short.toml", "--backend", "kernel"]
    done = subprocess.run([*powerless, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("astraea: --backend kernel: rights: ")
    assert "sudo astraea" in done.stderr
    assert done.stderr.endswith("; or use --backend sim\n")
    assert not (tmp_path / "out").exists()


FAKE = """#!{python}
import json, pathlib, sys
if sys.argv[1] == "doctor":
    print(json.dumps({{"kernel": "0", "checks": [], "schemes": []}}))
elif "--check" not in sys.argv:
    sys.stdin.read()
    calls = pathlib.Path({calls!r})
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    late = {lateness}[len(calls.read_text()) - 1]
    if late is None:
        sys.exit("thread 'main' panicked")
    emulation = {{"lateness_p999_ns": late or None, "problems": [] if 0 < late <= 100 else ["late"]}}
    print(json.dumps({{"flows": [], "links": [], "series": {{}}, "emulation": emulation, "arrays": []}}))
"""


@pytest.mark.parametrize(
    ("lateness", "kept", "attempts"),
    [([50], 50, 1), ([500, 50], 50, 2), ([300, 500], 300, 2), ([500, 300], 300, 2), ([0, 300], None, 2)],
)
def test_the_more_faithful_of_two_attempts_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lateness: list[int], kept: int | None, attempts: int
) -> None:
    """A lateness of 0 stands for none: no packet crossed a link."""
    backend = _fake(tmp_path, monkeypatch, lateness)
    result = backend.run(_trial(tmp_path))
    assert (result["emulation"]["lateness_p999_ns"], result["emulation"]["attempts"]) == (kept, attempts)
    assert len((tmp_path / "calls").read_text()) == attempts


def test_a_failure_of_the_program_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = _fake(tmp_path, monkeypatch, [None])
    with pytest.raises(UserError, match=r"^kernel: astraead trial failed: thread 'main' panicked$"):
        backend.run(_trial(tmp_path))


def _fake(directory: Path, monkeypatch: pytest.MonkeyPatch, lateness: list[Any]) -> kernel.Kernel:
    """A backend whose program answers at once."""
    path = directory / "astraead"
    path.write_text(FAKE.format(python=sys.executable, calls=str(directory / "calls"), lateness=lateness))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("ASTRAEAD", str(path))
    return kernel.Kernel()


def _trial(directory: Path) -> Any:
    (directory / "a.toml").write_text(SHORT)
    scenario = document.load(str(directory / "a.toml"), []).validate()
    return resolve(scenario, registry.scheme("cubic"), {}, 1, {})
