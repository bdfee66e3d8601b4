"""Running trials: order, seeds, threads, interrupts; and what is written."""

import hashlib
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from limits import room_for

from astraea import models
from astraea.errors import UserError
from astraea.eval import results, runner
from astraea.eval.interval import interval
from astraea.scenario import document

RULES = Path(__file__).parents[2] / "crates/cc/src/remy/shipped.dna"
SHORT = ['flow.0.start={every = "1s", jitter = "30ms"}', "flow.0.duration=3s"]


def plan(directory: Path, *settings: str, cc: tuple[str, ...] = ("cubic", "newreno"), trials: int = 2) -> runner.Plan:
    loaded = document.load("three-flows", [*SHORT, *settings])
    return runner.plan(loaded, cc, seed=7, directory=directory, trials=trials)


def write(laid: runner.Plan, directory: Path, jobs: int) -> dict[str, bytes]:
    outcome = runner.run(laid, jobs=jobs)
    results.write(directory, results.build(laid, outcome, ["astraea", "run"]), outcome)
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_order_and_seeds(tmp_path: Path) -> None:
    laid = plan(tmp_path)
    found = results.build(laid, runner.run(laid, jobs=2), ["astraea", "run", "a b"])
    assert [(trial["cc"], trial["trial"], trial["seed"]) for trial in found["trials"]] == [
        ("cubic", 0, 7),
        ("cubic", 1, 8),
        ("newreno", 0, 7),
        ("newreno", 1, 8),
    ]
    assert found["command"] == "astraea run 'a b'"
    assert found["scenario"]["link"]["bottleneck"]["rate"] == "100Mbps"
    assert found["scenario"]["trials"] == 2
    values = [trial["metrics"]["jain"] for trial in found["trials"][:2]]
    entry = found["summary"]["cubic"]["jain"]
    assert entry["n"] == 2
    assert entry["mean"] == pytest.approx(sum(values) / 2)
    assert (entry["low"], entry["high"]) == (None, None)


def test_same_bytes_with_one_and_two_jobs(tmp_path: Path) -> None:
    one = write(plan(tmp_path), tmp_path / "one", 1)
    two = write(plan(tmp_path), tmp_path / "two", 2)
    assert set(one) == {"results.json", "series.parquet", "links.parquet", "completions.parquet"}
    assert one == two


def test_points_of_a_sweep(tmp_path: Path) -> None:
    loaded = document.load("vivace-tuned", SHORT)
    laid = runner.plan(loaded, ["cubic"], seed=1, directory=tmp_path, trials=2)
    found = results.build(laid, runner.run(laid, jobs=2), [])
    assert [trial["point"] for trial in found["trials"]] == [
        {"link.bottleneck.delay": "60ms"},
        {"link.bottleneck.delay": "60ms"},
        {"link.bottleneck.delay": "6ms"},
        {"link.bottleneck.delay": "6ms"},
    ]
    # A trial's number is unique within its scheme; repetitions have the same seeds at each point.
    assert [trial["trial"] for trial in found["trials"]] == [0, 1, 2, 3]
    assert [trial["seed"] for trial in found["trials"]] == [1, 2, 1, 2]
    assert [point["label"] for point in found["points"]] == ["delay 60ms", "delay 6ms"]
    assert [point["summary"]["cubic"]["utilization"]["n"] for point in found["points"]] == [2, 2]
    assert found["summary"]["cubic"]["utilization"]["n"] == 4


def test_points_of_families(tmp_path: Path) -> None:
    loaded = document.load("three-flows", [*SHORT, "flow.0.count=1"])
    rates = {"A": ["10Mbps", "20Mbps"], "B": ["20Mbps", "30Mbps"], "C": ["40Mbps"], "": ["20Mbps"]}
    loaded.raw["sweep"] = [{"label": label, "vary": {"link.bottleneck.rate": rates[label]}} for label in rates]
    laid = runner.plan(loaded, ["cubic"], seed=1, directory=tmp_path, trials=1)
    labels = [point.label for point in laid.points]
    assert labels == ["A: rate 10Mbps", "A: rate 20Mbps", "B: rate 20Mbps", "B: rate 30Mbps", "C", "rate 20Mbps"]
    found = results.build(laid, runner.run(laid, jobs=2), [])
    assert [trial["point_index"] for trial in found["trials"]] == [0, 1, 2, 3, 4, 5]


def test_what_lies_between_points_widens_no_interval(tmp_path: Path) -> None:
    loaded = document.load("vivace-tuned", SHORT)
    laid = runner.plan(loaded, ["cubic"], seed=1, directory=tmp_path, trials=3)
    found = results.build(laid, runner.run(laid, jobs=2), [])
    values = [trial["metrics"]["utilization"] for trial in found["trials"]]
    assert max(values[:3]) < min(values[3:]) - 0.05 or min(values[:3]) > max(values[3:]) + 0.05
    entry = found["summary"]["cubic"]["utilization"]
    assert (entry["low"], entry["high"]) == interval(values[:3], values[3:])
    assert entry["high"] - entry["low"] < 0.05


def test_series(tmp_path: Path) -> None:
    write(plan(tmp_path, cc=("cubic",), trials=1), tmp_path / "out", 1)
    series = pl.read_parquet(tmp_path / "out" / "series.parquet")
    assert series.columns == [
        "trial", "cc", "flow", "t", "throughput", "rtt", "cwnd", "pacing", "inflight", "loss",
    ]  # fmt: skip
    entry = json.loads((tmp_path / "out" / "results.json").read_text())["trials"][0]
    for flow in entry["flows"]:
        rows = series.filter(pl.col("flow") == flow["flow"])
        # Rows begin with the flow's first slot; what they sum up to is what was delivered.
        assert rows["t"][0] == pytest.approx(flow["start_ns"] // 10_000_000 / 100)
        assert rows["throughput"].cast(pl.Float64).sum() * 0.01 * 1e6 / 8 == pytest.approx(
            flow["delivered_bytes"], rel=1e-3
        )
    links = pl.read_parquet(tmp_path / "out" / "links.parquet")
    assert links.columns == ["trial", "cc", "link", "t", "queue_delay", "delivered", "capacity", "dropped"]
    # 100 Mbit/s of packets carry 100 x 1448 / 1500 of payload.
    assert links["capacity"].to_list()[:100] == pytest.approx([100 * 1448 / 1500] * 100, rel=1e-6)


@pytest.mark.parametrize(("series", "trials"), [("all", {0, 1}), ("first", {0}), ("none", set())])
def test_which_series_are_kept(tmp_path: Path, series: str, trials: set[int]) -> None:
    write(plan(tmp_path, f"series={series}", cc=("cubic",)), tmp_path / "out", 1)
    for name in ("series.parquet", "links.parquet"):
        assert set(pl.read_parquet(tmp_path / "out" / name)["trial"]) == trials


def test_fixed_schemes_need_no_cc(tmp_path: Path) -> None:
    loaded = document.load("three-flows", [*SHORT, "flow.0.cc=newreno"])
    laid = runner.plan(loaded, [], seed=1, directory=tmp_path, trials=1)
    assert [key.cc for key in laid.keys] == ["newreno"]
    with pytest.raises(UserError, match=r"three-flows\.toml: fixes the scheme of every flow; --cc has nothing to set"):
        runner.plan(loaded, ["cubic"], seed=1, directory=tmp_path, trials=1)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background jobs ignore interrupts; here they come through however the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_keeps_finished_trials(tmp_path: Path) -> None:
    (tmp_path / "stopper.py").write_text(
        "import os, signal\n"
        "class Stopper:\n"
        "    made = 0\n"
        "    def start(self, mss):\n"
        "        Stopper.made += 1\n"
        "        self.number = Stopper.made\n"
        "    def decide(self, stats):\n"
        "        if self.number == 2 and stats.now > 1:\n"
        "            self.number = 0  # once: what comes later would interrupt pytest\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
    )
    laid = plan(tmp_path, "flow.0.count=1", cc=(f"{tmp_path}/stopper.py:Stopper",), trials=50)
    outcome = runner.run(laid, jobs=1)
    assert outcome.interrupted
    assert [result.key.repeat for result in outcome.results] == list(range(len(outcome.results)))
    assert 1 <= len(outcome.results) < 50
    found = results.build(laid, outcome, [])
    assert found["interrupted"] is True


def test_error_in_a_trial_is_raised(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("class Late:\n    def decide(self, stats):\n        return {'cwnd': -1}\n")
    laid = plan(tmp_path, cc=(f"{tmp_path}/late.py:Late",))
    with pytest.raises(UserError, match=r"late\.py: Late\.decide\(\) returned {'cwnd': -1}"):
        runner.run(laid, jobs=2)


def test_earlier_results_are_replaced_and_other_files_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    (out / "results.json").write_text("old")
    found = write(plan(tmp_path, cc=("cubic",), trials=1), out, 1)
    assert found["notes.txt"] == b"mine"
    assert json.loads(found["results.json"])["schema"] == 1


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laid = plan(tmp_path, cc=("cubic",), trials=1)
    outcome = runner.run(laid, jobs=1)

    def full(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(results, "text", full)
    with pytest.raises(UserError, match="out: results cannot be written: disk full"):
        results.write(tmp_path / "out", {}, outcome)
    assert list(tmp_path.iterdir()) == []


def test_what_finds_no_room_leaves_the_earlier_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = write(plan(out, cc=("cubic",), trials=1), out, 1)
    assert len(before) == 4
    (out / "report.html").write_bytes(b"page")
    other = plan(out, cc=("newreno",), trials=1)
    outcome = runner.run(other, jobs=1)
    with room_for(3000), pytest.raises(UserError, match="out: results cannot be written: "):
        results.write(out, results.build(other, outcome, ["astraea", "run"]), outcome)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before | {"report.html": b"page"}
    fresh = tmp_path / "fresh"
    with room_for(3000), pytest.raises(UserError, match="fresh: results cannot be written: "):
        results.write(fresh, results.build(other, outcome, ["astraea", "run"]), outcome)
    assert not fresh.exists()


def test_report_of_an_earlier_run_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    write(plan(tmp_path, cc=("cubic",), trials=1), tmp_path, 1)
    assert not (tmp_path / "report.html").exists()


def test_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="exists and is not a directory"):
        results.check_writable(tmp_path / "file")
    with pytest.raises(UserError, match="cannot be written"):
        results.check_writable(tmp_path / "file" / "below")
    with pytest.raises(UserError, match="File name too long"):
        results.check_writable(tmp_path / ("x" * 300))
    results.check_writable(tmp_path / "new" / "deep")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(UserError, match="exists and is not a directory"):
        results.check_writable(tmp_path / "dangling")
    (tmp_path / "out" / "results.json").mkdir(parents=True)
    with pytest.raises(UserError, match=r"results\.json in it is a directory"):
        results.check_writable(tmp_path / "out")


@pytest.mark.parametrize(("burst", "mean", "p95"), [("0ms", 0.0, 0.0), ("1ms", 0.18, 0.36)])
def test_a_burst_of_four_packets_waits_for_itself(tmp_path: Path, burst: str, mean: float, p95: float) -> None:
    """50 Mbit/s are four packets in 1 ms; a link of 100 Mbit/s takes .12 ms for each, so they wait 0 to .36 ms."""
    settings = [f"flow.0.burst={burst}", "flow.0.count=1", "flow.0.duration=2s", "duration=2s"]
    loaded = document.load("three-flows", settings)
    laid = runner.plan(loaded, ["constant-rate:rate=50Mbps"], seed=1, directory=tmp_path, trials=1)
    (trial,) = results.build(laid, runner.run(laid, jobs=1), [])["trials"]
    found = trial["metrics"]
    assert (found["queue_delay_ms"], found["queue_delay_p95_ms"]) == pytest.approx((mean, p95), abs=0.005)


TWO_LINKS = """
[link.a]
trace = "t.trace"
[link.b]
rate = "5Mbps"
[[flow]]
name = "first"
duration = "1s"
path = ["a", "b"]
cc = "C.py:C"
[[flow]]
name = "second"
duration = "1s"
path = ["b"]
cc = "cubic"
"""
CONTROLLER = "class C:\n    def decide(self, stats):\n        return {window}\n"


def test_files_of_one_name_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is relative to where it is typed, what is written to the scenario's file."""
    for directory, period in ((tmp_path, 5), (tmp_path / "sub", 1)):
        directory.mkdir(exist_ok=True)
        (directory / "t.trace").write_text("".join(f"{ms}\n" for ms in range(period, 101, period)))
        (directory / "C.py").write_text(CONTROLLER.format(window=period))
    (tmp_path / "sub" / "two.toml").write_text(TWO_LINKS)
    monkeypatch.chdir(tmp_path)
    for link in ("link.b.trace=t.trace", "link.b={trace = 't.trace'}"):
        laid = runner.plan(
            document.load("sub/two.toml", [link, "flow.second.cc=C.py:C"]), [], seed=1, directory=tmp_path
        )
        trial = laid.resolve(laid.keys[0])
        assert [link["rate"] for link in trial.config["links"]] == [{"trace": "sub/t.trace"}, {"trace": "t.trace"}]
        assert [flow.scheme.factory().decide(None) for flow in trial.flows if flow.scheme.factory] == [1, 5]
        assert laid.keys[0].cc == "C.py:C"


def test_results_say_what_was_in_the_files_that_took_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for directory, period in ((tmp_path, 5), (tmp_path / "sub", 1)):
        directory.mkdir(exist_ok=True)
        (directory / "t.trace").write_text("".join(f"{ms}\n" for ms in range(period, 101, period)))
        (directory / "C.py").write_text(CONTROLLER.format(window=period))
    generated = TWO_LINKS.replace('rate = "5Mbps"', 'trace = { model = "lte", mean = "9Mbps" }')
    (tmp_path / "sub" / "two.toml").write_text(generated.replace('cc = "cubic"\n', ""))
    shutil.copy(models.path("astraea"), "mine.safetensors")
    shutil.copy(RULES, "mine.dna")

    def inputs(*settings: str) -> dict[str, str]:
        schemes = ["mine.safetensors", "mine.dna", "C.py:C", "cubic", "astraea", "remy"]
        laid = runner.plan(document.load("sub/two.toml", settings), schemes, seed=1, directory=tmp_path / "scratch")
        return dict(results.build(laid, runner.Outcome(), [])["inputs"])

    (tmp_path / "scratch").mkdir()
    found = inputs()
    names = ["sub/two.toml", "mine.safetensors", "mine.dna", "C.py", "sub/C.py", "sub/t.trace"]
    assert list(found) == names
    for name in names:
        assert found[name] == hashlib.sha256(Path(name).read_bytes()).hexdigest()
    (tmp_path / "C.py").write_text(CONTROLLER.format(window=6))
    later = inputs("link.a.trace=t.trace")
    assert [name for name in later if later[name] != found.get(name)] == ["C.py", "t.trace"]
    assert "sub/t.trace" not in later
    # What is shipped is known by the version.
    assert runner.plan(document.load("cellular"), ["astraea"], seed=1, directory=tmp_path / "scratch").inputs == {}
