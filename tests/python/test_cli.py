"""The command `astraea`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from astraea import __version__
from astraea.cli.output import table
from astraea.cli.run import _real_time
from astraea.eval import backend
from astraea.eval.simulated import Simulator
from astraea.report import page

Run = Callable[..., tuple[int, str, str]]

QUICK = [
    "--set", "flow.0.start.every=1s", "--set", "flow.0.duration=3s", "--trials", "1", "--no-report",
]  # fmt: skip


def test_version(astraea: Run) -> None:
    assert astraea("--version") == (0, f"astraea {__version__}\n", "")


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["run"],
        ["schemes"],
        ["models"],
        ["export"],
        ["scenarios"],
        ["report"],
        ["trace"],
        ["trace", "info"],
        ["trace", "generate"],
        ["trace", "convert"],
        ["bench"],
        ["bench", "sim"],
    ],
)
def test_help(astraea: Run, command: list[str]) -> None:
    status, out, err = astraea(*command, "--help")
    assert (status, err) == (0, "")
    assert f"Usage: {' '.join(['astraea', *command])}" in out


def test_run(astraea: Run, tmp_path: Path) -> None:
    status, out, err = astraea("run", "three-flows", "--cc", "cubic,newreno", *QUICK)
    assert (status, err) == (0, "")
    for word in ("Three flows, 40 s apart", "cubic", "newreno", "Jain's index", "out/three-flows/results.json"):
        assert word in out
    assert {path.name for path in (tmp_path / "out" / "three-flows").iterdir()} == {
        "results.json",
        "series.parquet",
        "links.parquet",
        "completions.parquet",
    }


def test_report_is_written_beside_the_results(astraea: Run, tmp_path: Path) -> None:
    status, out, _ = astraea("run", "three-flows", *QUICK[:-1], "--out", "here")
    assert status == 0
    assert "here/report.html" in out
    assert (tmp_path / "here" / "report.html").read_text().lstrip().startswith("<!doctype html>")
    status, out, err = astraea("report", "here", "--out", "again.html", "--json")
    assert (status, json.loads(out), err) == (0, {"report": "again.html"}, "")
    assert (tmp_path / "again.html").is_file()


def test_json_is_alone_on_standard_output(astraea: Run, tmp_path: Path) -> None:
    status, out, _ = astraea("run", "three-flows", *QUICK, "--json", "--out", "here", "--jobs", "1")
    assert status == 0
    assert out == (tmp_path / "here" / "results.json").read_text(encoding="utf-8")
    found = json.loads(out)
    assert list(found) == [
        "schema",
        "astraea_version",
        "command",
        "scenario",
        "inputs",
        "backend",
        "host",
        "interrupted",
        "trials",
        "points",
        "summary",
    ]
    assert found["inputs"] == {}  # what is shipped goes by the version
    # What does not change the results is not part of the command that gives them.
    assert found["command"] == (
        "astraea run three-flows --set flow.0.start.every=1s --set flow.0.duration=3s --trials 1 --seed 1"
    )


def test_what_a_controller_prints_is_not_on_standard_output(astraea: Run, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("class Loud:\n    def decide(self, stats):\n        print('hello')\n")
    status, out, err = astraea("run", "three-flows", "--cc", "loud.py:Loud", *QUICK, "--json")
    assert status == 0
    assert list(json.loads(out)["summary"]) == ["loud.py:Loud"]
    assert err.startswith("hello\n")


def test_scheme_in_a_scenario(astraea: Run, tmp_path: Path) -> None:
    # Files that a scenario names lie beside it; mistakes name its key.
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.py").write_text("class Mine:\n    def decide(self, stats): ...\n")
    text = astraea("scenarios", "three-flows")[1]
    path = tmp_path / "deep" / "mine.toml"
    path.write_text(text.replace("count = 3", 'cc = "mine.py:Mine"\ncount = 3'))
    assert astraea("run", "deep/mine.toml", *QUICK)[0] == 0
    path.write_text(text.replace("count = 3", 'cc = "cubik"\ncount = 3'))
    status, _, err = astraea("run", "deep/mine.toml", *QUICK)
    assert (status, err.partition(";")[0]) == (2, 'astraea: mine.toml: flow.0.cc: unknown scheme "cubik"')
    assert "--set flow.0.cc: mine.py: no such file" in astraea("run", "three-flows", "--set", "flow.cc=mine.py:Mine")[2]


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    # As a process of its own: what is left in its buffers must not lead to a complaint at exit either.
    program = "import sys; from astraea.cli import main; sys.exit(main(['scenarios', '--json']))"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path
        )
    assert (done.returncode, done.stderr) == (2, "astraea: output: No space left on device\n")


def process(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line of a shell in which `astraea` is this one."""
    program = f"{sys.executable} -c 'import sys; from astraea.cli import main; sys.exit(main())'"
    script = f'astraea() {{ {program} "$@"; }}; {command}'
    run = ["bash", "-c", script]
    return subprocess.run(run, capture_output=True, text=True, check=False, env=os.environ | environment)


@pytest.mark.parametrize("command", ["schemes", "schemes --json", "scenarios three-flows", "run --help"])
def test_a_reader_that_has_gone_is_no_failure(command: str) -> None:
    done = process(f"astraea {command} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")


def test_standard_output_and_error_may_be_closed() -> None:
    assert process("astraea schemes >&-").returncode == 0
    assert process("astraea run nosuch 2>&-").returncode == 2


def hears(signum: signal.Signals) -> list[str]:
    """The command, which a signal reaches also where the tests run under `nohup`."""
    usual = "default_int_handler" if signum == signal.SIGINT else "SIG_DFL"
    program = f"import signal; signal.signal({int(signum)}, signal.{usual}); "
    return [sys.executable, "-c", program + "import sys; from astraea.cli import main; sys.exit(main())"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_is_told_to_end_leaves_nothing_behind(tmp_path: Path, signum: signal.Signals) -> None:
    command = [*hears(signum), "run", "three-flows", "--trials", "5000", "--quiet"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = os.environ | {"TMPDIR": str(scratch)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as running:
        try:
            until = time.monotonic() + 60
            while not list(scratch.iterdir()):
                assert running.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
            running.send_signal(signum)
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, said) == (128 + signum, "")
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_being_told_to_end_is_not_lost_in_an_import(tmp_path: Path, signum: signal.Signals) -> None:
    # As modules in C do it: whatever goes wrong while they look for a feature means that there is none.
    (tmp_path / "deaf.py").write_text(
        "import signal, time\n"
        "try:\n"
        f"    signal.raise_signal({int(signum)})\n"
        "    time.sleep(0.1)\n"
        "except BaseException:\n"
        "    pass\n"
        "class Deaf:\n"
        "    def decide(self, stats): ...\n"
    )
    command = [*hears(signum), "run", "three-flows", "--cc", "deaf.py:Deaf", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    # Who presses Ctrl-C is told what is left of work that has begun.
    told = {signal.SIGINT: "astraea: interrupted before a trial had finished; nothing was written\n"}
    assert done.returncode == 128 + signum
    assert done.stderr in ("", told.get(signum, ""))
    assert not (tmp_path / "out").exists()


def test_who_keeps_pressing_ctrl_c_gets_out_of_an_import_that_never_returns(tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(
        "import signal, time\nwhile True:\n    signal.raise_signal(signal.SIGINT)\n    time.sleep(0.1)\n"
    )
    command = [*hears(signal.SIGINT), "run", "three-flows", "--cc", "stuck.py:Stuck", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_does_not_take_the_place_of_an_end_that_waits(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(
        "import signal, time\n"
        "signal.raise_signal(signal.SIGTERM)\n"
        "signal.raise_signal(signal.SIGINT)\n"
        "class Both:\n"
        "    def decide(self, stats): ...\n"
    )
    command = [*hears(signal.SIGINT), "run", "three-flows", "--cc", "both.py:Both", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")


def test_an_end_that_waits_comes_before_another_program() -> None:
    # So late in the imports that nothing looks for it any more before the process becomes `astraead`.
    late = (
        "import signal, sys\n"
        "class Late:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'astraea.cli.train':\n"
        "            signal.raise_signal(signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Late())\n"
        "from astraea.cli import main\n"
        "sys.exit(main(['serve', '--help']))\n"
    )
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_an_output_does_not_have(encoding: str) -> None:
    done = process("astraea schemes", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "bbr3" in done.stdout
    # Documents for programs are UTF-8.
    for document in ("schemes --json", "scenarios three-flows"):
        assert process(f"astraea {document}", PYTHONIOENCODING=encoding).stdout == process(f"astraea {document}").stdout


def test_brackets_in_names_are_no_markup(astraea: Run) -> None:
    status, out, err = astraea("run", "three-flows", *QUICK, "--set", "title=x[/b]y", "--out", "a[bold]b")
    assert (status, err) == (0, "")
    assert "x[/b]y" in out
    assert "results: a[bold]b/results.json" in out
    status, out, _ = astraea("trace", "generate", "t[b].csv", "--duration", "2s")
    assert (status, out.startswith("t[b].csv: ")) == (0, True)
    assert "t[b].csv" in astraea("trace", "info", "t[b].csv")[1]


def test_names_that_are_no_text(astraea: Run, tmp_path: Path) -> None:
    odd = os.fsdecode(b"k\xff")
    commands = [
        ["run", "three-flows", *QUICK, *option] for option in (["--set", f"title={odd}"], ["--cc", f"{odd}.py:X"])
    ]
    commands += [["run", "three-flows", "--out", odd], ["run", f"{odd}.toml"], ["train", "astraea", "--out", odd]]
    for command in commands:
        status, _, err = astraea(*command)
        assert (status, err.count("\n")) == (2, 1)
        assert "is not UTF-8 text" in err
    assert list(tmp_path.iterdir()) == []
    assert astraea("report", odd)[0] == 2


def test_a_scenario_in_another_encoding(astraea: Run, tmp_path: Path) -> None:
    (tmp_path / "wide.toml").write_text("duration = '5s'", encoding="utf-16")
    for command in (["scenarios", "wide.toml"], ["run", "wide.toml"]):
        assert astraea(*command) == (2, "", "astraea: wide.toml: is not UTF-8 text\n")


def test_quiet(astraea: Run) -> None:
    assert astraea("run", "three-flows", *QUICK, "--quiet") == (0, "", "")


def test_where_room_is_short_one_column_stays_whole() -> None:
    console = Console(width=24)
    with console.capture() as capture:
        console.print(table(["setting", "scheme", "ms"], [["50 Mbit/s, 10 ms", "astraea", "3.2"]], numbers=1, whole=1))
    assert [line.split() for line in capture.get().splitlines()[1:]] == [
        ["50", "Mbit/s,", "astraea", "3.2"],
        ["10", "ms"],
    ]


def test_sweep_table(astraea: Run) -> None:
    status, out, _ = astraea("run", "vivace-tuned", *QUICK)
    assert status == 0
    assert "delay 60ms" in out
    assert "delay 6ms" in out


class RealTime(Simulator):
    """Trials one at a time, as real traffic has it."""

    parallel = False


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "6 trials of 5 s in real time: about 30 s\n"),
        (["--json"], "6 trials of 5 s in real time: about 30 s\n"),
        (["--quiet"], ""),
    ],
)
def test_how_long_real_time_takes_is_said_at_the_start(
    astraea: Run, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.setattr(backend, "make", lambda *_: RealTime())
    quick = [option if option != "1" else "3" for option in QUICK]
    status, _, err = astraea("run", "three-flows", "--backend", "kernel", "--cc", "cubic,bbr", *quick, *options)
    assert (status, err) == (0, said)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ([200.02] * 30, "30 trials of 200 s in real time: about 100 min"),
        ([20.0, 61.0], "2 trials of 20 to 61 s in real time: about 81 s"),
        ([50.0], "1 trial of 50 s in real time: about 50 s"),
        ([200.0] * 175 * 6, "1050 trials of 200 s in real time: about 58.3 h"),
    ],
)
def test_real_time_in_words(seconds: list[float], said: str) -> None:
    assert _real_time(seconds) == said


TWO_PARAMETERS = """
title = "Two"
trials = 2
[link.bottleneck]
rate = "20Mbps"
delay = "15ms"
buffer = "1bdp"
[[flow]]
name = "test"
duration = "3s"
path = ["bottleneck"]
[[flow]]
name = "competitors"
cc = "cubic"
duration = "3s"
path = ["bottleneck"]
[[sweep]]
vary."link.bottleneck.rate" = ["10Mbps", "50Mbps"]
vary."flow.competitors.count" = [1, 2]
"""


@pytest.mark.parametrize("columns", ["50", "80", "120", None])
def test_a_sweep_table_breaks_no_word(
    astraea: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS")
    else:
        monkeypatch.setenv("COLUMNS", columns)
    (tmp_path / "two.toml").write_text(TWO_PARAMETERS)
    status, out, _ = astraea("run", "two.toml", "--cc", "astraea,cubic:hystart=off", "--no-report")
    assert status == 0
    for scheme in ("astraea", "cubic:hystart=off"):
        assert len(re.findall(rf"^rate \d+Mbps, count \d  {scheme} +\d", out, re.MULTILINE)) == 4
    title, *_, caption, _ = out.splitlines()
    assert title.strip() == "Two"
    headings = out.partition("rate 10Mbps")[0].split()[1:]
    known = "point scheme Jain's index Settled Utilization Queueing delay Loss Throughput ratio s % ms ×"
    assert {heading.rstrip(",") for heading in headings} <= set(known.split())
    # What the scenario is about is the last to give way.
    assert "Throughput" in headings
    if columns == "50":
        assert "Loss" not in headings
    else:
        assert caption.strip() == "2 trials of each scheme at each point; mean (more is in the report)"
        assert max(map(len, out.splitlines())) <= int(columns or 999)
    assert ("Throughput ratio, ×" in out) == (columns is None)


def test_where_no_terminal_is_nothing_is_wrapped(astraea: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    status, out, _ = astraea("scenarios")
    assert (status, len(out.splitlines())) == (0, 1 + len(json.loads(astraea("scenarios", "--json")[1])))


def test_generated_trace(astraea: Run, tmp_path: Path) -> None:
    arguments = ["run", "cellular", "--set", "flow.0.duration=5s", "--trials", "1", "--no-report", "--json"]
    status, out, _ = astraea(*arguments)
    assert status == 0
    found = json.loads(out)
    assert found["scenario"]["link"]["bottleneck"]["trace"]["seed"] == 1
    # Where the generated file lay is nobody's business.
    assert str(tmp_path) not in out
    assert "/tmp" not in out
    assert astraea(*arguments)[1] == out


def test_trace_option(astraea: Run, tmp_path: Path) -> None:
    (tmp_path / "even.trace").write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    status, out, _ = astraea("run", "three-flows", "--trace", "even.trace", *QUICK, "--json")
    assert status == 0
    found = json.loads(out)
    assert found["scenario"]["link"]["bottleneck"]["trace"] == "even.trace"
    # One packet each millisecond: 12 Mbit/s.
    link = found["trials"][0]["links"][0]
    assert link["capacity_bytes"] == pytest.approx(12e6 / 8 * found["trials"][0]["duration_ns"] / 1e9, rel=1e-3)
    assert link["limit"] == {"bytes": 45_000}  # 12 Mbit/s x 30 ms / 8


def test_controller_in_python(astraea: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def decide(self, stats):\n        return {'cwnd': 20}\n")
    status, out, _ = astraea("run", "three-flows", "--cc", "mine.py:Mine", *QUICK, "--json")
    assert status == 0
    assert list(json.loads(out)["summary"]) == ["mine.py:Mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "tree-flows"], 'no scenario "tree-flows"; did you mean "three-flows"?'),
        (["run", "x/y.toml"], "x/y.toml: no such scenario file"),
        (["run", "three-flows", "--cc", "cubik"], 'unknown scheme "cubik"; did you mean "cubic"?'),
        (["run", "three-flows", "--cc", "mine.py:Mine"], "mine.py: no such file"),
        (
            ["run", "three-flows", "--cc", "bbr,cubic:beta=2"],
            "--cc cubic:beta=2: scheme cubic: beta: is 2; expected 0.1 to 0.95",
        ),
        (
            ["run", "three-flows", "--set", "rate=50Mbps"],
            '--set rate: unknown key; did you mean "link.bottleneck.rate"?',
        ),
        (["run", "three-flows", "--set", "count=5"], '--set count: unknown key; did you mean "flow.count"?'),
        (["run", "three-flows", "--set", "link.bottleneck.rate=100"], 'missing unit in "100"; expected e.g. "100Mbps"'),
        (["run", "three-flows", "--set", "trails=3"], '--set trails: unknown key; did you mean "trials"?'),
        (["run", "three-flows", "--set", "flow.00.count=2"], "flow.00: no such entry; expected one of flow."),
        (["run", "three-flows", "--set", "link.bottleneck.rate=\u0661\u0660Mbps"], "expected"),
        (["run", "three-flows", "--set", "duration=10s"], "three-flows.toml: flow.0.start: flow 2 of 3 never starts"),
        (["run", "three-flows", "--trace", "no.trace"], "--trace no.trace: no such trace file"),
        (
            ["run", "three-flows", "--set", "link.bottleneck.trace=no.trace"],
            "--set link.bottleneck.trace=no.trace: no such trace file",
        ),
        (["run", "multi-bottleneck", "--trace", "x"], 'no link "bottleneck"; expected --set link.link1.trace=FILE'),
        (["run", "three-flows", "--trials", "0"], "Invalid value for '--trials': "),
        (["run", "three-flows", "--trials", "99999999"], "Invalid value for '--trials': "),
        (["run", "three-flows", "--jobs", "0"], "Invalid value for '--jobs' / '-j': "),
        (["run", "three-flows", "--seed", "-1"], "Invalid value for '--seed': "),
        (["run", "three-flows", "--cc", ""], '--cc "": names no scheme; expected e.g. cubic,newreno'),
        (["run", "three-flows", "--set", "flow.duration=2000h"], "expected at most 1e+08; a longer `record` makes"),
        (["trace", "generate", "x.trace", "--duration", "1000h"], "duration must be at most 24h"),
        (["trace", "generate", "x.trace", "--mean", "9000Gbps"], "packets; expected at most 5e+07"),
        (["trace", "generate", "x.trace", "--volatility", "nan"], "--volatility: expected a finite number, not nan"),
        (["run", "three-flows", "--bogus"], "No such option: --bogus"),
        (["run"], "Missing argument"),
        (["rnu"], "No such command 'rnu'"),
        (["report", "nowhere"], "nowhere: no such directory"),
        (["trace", "info", "no.trace"], "no.trace: "),
        (["trace", "generate", "x.trace", "--mean", "9"], '--mean: missing unit in "9"; expected e.g. "100Mbps"'),
        (["trace", "generate", "no/x.trace"], "no/x.trace: cannot be written: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(astraea: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    status, out, err = astraea(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("astraea: ")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "line"), [("", ""), ("1\n5\n3\n", "line 3"), ("1\nx\n", "line 2"), ("0\n0\n", "")])
def test_bad_traces(astraea: Run, tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "bad.trace").write_text(text)
    status, out, err = astraea("run", "three-flows", "--trace", "bad.trace", *QUICK)
    assert (status, out) == (2, "")
    assert err.startswith("astraea: ")
    assert err.count("\n") == 1
    assert "bad.trace" in err
    assert line in err
    assert not (tmp_path / "out").exists()


def test_interrupt(astraea: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from astraea.eval import runner

    run = runner.run

    def interrupted(laid: runner.Plan, **_: object) -> runner.Outcome:
        def stop(_: object) -> None:
            raise KeyboardInterrupt

        return run(laid, jobs=1, on_done=stop)

    monkeypatch.setattr(runner, "run", interrupted)
    status, _, err = astraea("run", "three-flows", *QUICK[:4], "--trials", "40", "--no-report", "--out", "here")
    assert status == 130
    assert "of 40 trials in here" in err
    found = json.loads((tmp_path / "here" / "results.json").read_text())
    assert found["interrupted"] is True
    assert 1 <= len(found["trials"]) < 40


def test_interrupt_while_the_report_is_made(astraea: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(page, "render", stop)
    status, out, err = astraea("run", "three-flows", *QUICK[:-1], "--out", "here")
    assert (status, out) == (130, "")
    assert err == "astraea: interrupted: the results are in here, without a report\n"
    assert json.loads((tmp_path / "here" / "results.json").read_text())["interrupted"] is False


def test_interrupt_while_starting() -> None:
    # As a process of its own: most of the start is the import of libraries, before any command runs.
    program = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from astraea.cli import main\n"
        "sys.exit(main(['schemes']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_lists(astraea: Run) -> None:
    assert {entry["name"] for entry in json.loads(astraea("schemes", "--json")[1])} >= {"cubic", "newreno"}
    assert {entry["name"] for entry in json.loads(astraea("scenarios", "--json")[1])} >= {"three-flows", "cellular"}
    assert "cubic" in astraea("schemes")[1]
    assert "three-flows" in astraea("scenarios")[1]
    assert astraea("scenarios", "three-flows")[1].startswith("# The papers' main experiment")


def test_traces(astraea: Run, tmp_path: Path) -> None:
    assert astraea("trace", "generate", "x.trace", "--duration", "20s", "--seed", "3")[0] == 0
    assert astraea("trace", "convert", "x.trace", "x.csv", "--window", "1s")[0] == 0
    assert (tmp_path / "x.csv").read_text().startswith("time_s,rate_bps\n0.0,")
    status, out, _ = astraea("trace", "info", "x.trace", "x.csv", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["x.trace"]["duration_s"] == 20
    # A window of a second more or less.
    assert found["x.csv"]["duration_s"] == pytest.approx(20, abs=1)
    assert "x.trace" in astraea("trace", "info", "x.trace")[1]
    # A device is written to; as root it could be replaced.
    assert astraea("trace", "generate", "/dev/null", "--duration", "1s")[0] == 0
    assert Path("/dev/null").is_char_device()
    status, out, err = astraea("trace", "convert", "x.trace", "y.csv", "--window", "1ns")
    assert (status, out, err) == (
        2,
        "",
        'astraea: --window: expected at least 1ms, the resolution of traces, not "1ns"\n',
    )


@pytest.mark.parametrize("command", [[], ["trace"], ["bench"]])
def test_groups_alone_print_their_help(astraea: Run, command: list[str]) -> None:
    status, out, err = astraea(*command)
    assert (status, err) == (2, "")
    assert "Commands" in out


def test_bench(astraea: Run) -> None:
    status, out, _ = astraea("bench", "sim", "--repeat", "1", "--json")
    assert status == 0
    cases = json.loads(out)["cases"]
    assert cases[0]["case"] == "three-flows, cubic"
    assert all(case["simulated_s_per_s"] > 0 and case["packets"] > 0 for case in cases)


def test_the_host_s_commands_get_their_arguments_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "astraead"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ASTRAEAD", str(program))
    arguments = ["link", "--rate", "1Mbps", "--", "sh", "-c", "exit 3", "--", "--help"]
    command = [sys.executable, "-c", "import sys; from astraea.cli import main; sys.exit(main())", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == arguments


def test_more_schemes_than_columns_are_listed_in_rows(astraea: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    schemes = "cubic,newreno,vegas,compound,copa,bbr,bbr3,allegro,vivace,remy"
    short = ["--set", "duration=3s", "--set", "flow.0.start.every=1s", "--trials", "1", "--no-report"]
    status, out, err = astraea("run", "three-flows", "--cc", schemes, *short)
    assert status == 0, err
    names = [line.split()[0] for line in out.splitlines() if line and line.split()[0] in schemes.split(",")]
    assert names == schemes.split(",")
