"""`astraea train` over the real roll-outs."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astraea import _native
from astraea.cli import main

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from learn_toy import n_step  # noqa: E402
from processes import killed  # noqa: E402

from astraea.learn import start  # noqa: E402
from astraea.learn.forms import FORMS  # noqa: E402
from astraea.learn.nets import Actor  # noqa: E402

ASTRAEA = [sys.executable, "-c", "import sys; from astraea.cli import main; sys.exit(main())"]

SMALL = """
[policy]
form = "pure"
alpha = 0.1
hidden = [16, 8]
monotone = true
[environment]
duration = 5.0
bandwidth = [10e6, 40e6]
[rollouts]
episodes = 4
[td3]
hidden = [32, 16]
batch = 64
replay = 20_000
warm_up = 500
[validation]
every = 2
episodes = 4
[run]
updates = 200
"""


def small(tmp_path: Path, text: str = SMALL) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(text)
    return path


def error(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The one line on standard error of a command that ends with status 2."""
    assert main(["train", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_writes_a_policy_that_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["train", str(small(tmp_path)), "--out", str(out), "--seed", "3", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    report = json.loads(captured.out)
    assert report["updates"] >= 200
    assert report["policy"] == str(out / "policy.safetensors")
    found = {path.name for path in out.iterdir()}
    assert found == {"policy.safetensors", "checkpoint", "log.jsonl", "tensorboard", "config.toml"}
    policy = _native.Policy.load(out / "policy.safetensors")
    assert (policy.form, policy.alpha, policy.activation, policy.inputs) == ("pure", 0.1, "split", 25)
    about = policy.metadata
    assert (about["name"], about["seed"], about["period_ms"]) == ("small", "3", "30")
    assert json.loads(about["metrics"])["validation"]["score"] == pytest.approx(report["best"]["score"])
    assert json.loads(about["domain"])["duration"] == 5.0
    # Not of the end of the training, but of the policy that was kept.
    assert int(about["iteration"]) == report["best"]["iteration"]
    entries = map(json.loads, (out / "log.jsonl").read_text().splitlines())
    (kept, *_) = (entry for entry in entries if entry["iteration"] == int(about["iteration"]))
    assert int(about["updates"]) == kept["updates"]
    assert (about["torch"], about["device"]) == (torch.__version__, "cpu")
    assert str(tmp_path) not in "".join(about.values())


def test_same_seed_same_policy_and_resumed_too(tmp_path: Path) -> None:
    path = small(tmp_path)
    for name in ("one", "two", "three"):
        assert main(["train", str(path), "--out", str(tmp_path / name), "--seed", str(len(name)), "--quiet"]) == 0
    contents = [(tmp_path / name / "policy.safetensors").read_bytes() for name in ("one", "two", "three")]
    assert contents[0] == contents[1] != contents[2]
    # Interrupted at once, then gone on with, with the seed of the directory.
    parts = str(tmp_path / "parts")
    assert main(["train", str(path), "--out", parts, "--seed", "3", "--quiet", "--minutes", "0.001"]) == 0
    first = json.loads((tmp_path / "parts" / "log.jsonl").read_text().splitlines()[-1])
    assert first["updates"] < 200
    assert main(["train", str(path), "--out", parts, "--quiet", "--resume"]) == 0
    assert (tmp_path / "parts" / "policy.safetensors").read_bytes() == contents[0]


def test_ctrl_c_keeps_what_there_is(tmp_path: Path) -> None:
    path, out = small(tmp_path, SMALL.replace("updates = 200", "updates = 1_000_000")), tmp_path / "run"
    command = [*ASTRAEA, "train", path, "--out", out]
    with killed(subprocess.Popen(command, stderr=subprocess.PIPE, text=True)) as run:
        for _ in range(600):
            time.sleep(0.1)
            if (out / "log.jsonl").is_file() and (out / "log.jsonl").read_text().count("\n") > 5:
                break
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None
        errors = run.stderr.read()
    assert run.returncode == 130
    assert errors.splitlines()[-1] == f"astraea: interrupted: --resume goes on from {out}"
    assert "Traceback" not in errors
    last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
    state = torch.load(out / "checkpoint" / "state.pt", weights_only=True)
    assert state["iteration"] == last["iteration"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_an_end_does_not_wait_for_roll_outs(tmp_path: Path, signum: signal.Signals) -> None:
    """Those under way, and the validation, would take hours."""
    text = SMALL.replace(
        "duration = 5.0\nbandwidth = [10e6, 40e6]", 'duration = 3000\nbandwidth = 1e9\nlifetime = "never"'
    )
    path, out = small(tmp_path, text), tmp_path / "run"
    usual = f"import signal; signal.signal({int(signal.SIGINT)}, signal.default_int_handler); "
    command = [sys.executable, "-c", usual + ASTRAEA[-1], "train", path, "--out", out]
    with killed(subprocess.Popen(command, stderr=subprocess.PIPE, text=True)) as run:
        while not (out / "tensorboard").is_dir():
            assert run.poll() is None
            time.sleep(0.1)
        for _ in range(2 if signum == signal.SIGINT else 1):  # a second Ctrl-C ends it at once
            run.send_signal(signum)
            time.sleep(1)
        _, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (128 + signum, "")


def test_begins_again_where_nothing_was_learnt_yet(tmp_path: Path) -> None:
    path, out = small(tmp_path), tmp_path / "run"
    out.mkdir()
    (out / "config.toml").write_text("what a run that was killed at once leaves\n")
    (out / "log.jsonl").write_text("half a li")
    assert main(["train", str(path), "--out", str(out), "--quiet", "--minutes", "0.001"]) == 0
    assert (out / "policy.safetensors").is_file()


def test_resuming_loses_no_policy(tmp_path: Path) -> None:
    path, out = small(tmp_path), tmp_path / "run"
    assert main(["train", str(path), "--out", str(out), "--quiet", "--minutes", "0.001"]) == 0
    better = b"a policy that the look at the end of that session found"
    (out / "policy.safetensors").write_bytes(better)
    assert main(["train", str(path), "--out", str(out), "--quiet", "--minutes", "0", "--resume"]) == 0
    (aside,) = out.glob("policy.before-resume-*.safetensors")
    assert aside.read_bytes() == better
    assert (out / "policy.safetensors").read_bytes() != better
    assert main(["train", str(path), "--out", str(out), "--quiet", "--minutes", "0", "--resume"]) == 0
    assert [*out.glob("policy.before-resume-*.safetensors")] == [aside]
    assert aside.read_bytes() == better
    assert not list(out.glob(".policy*"))


def test_two_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = small(tmp_path), tmp_path / "run"
    assert main(["train", str(path), "--out", str(out), "--quiet", "--minutes", "0.001"]) == 0
    descriptor = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert "another training is at work here" in error(capsys, path, "--out", out, "--resume")
    finally:
        os.close(descriptor)


def test_one_that_ends_in_between_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was looked at before the directory was locked is looked at again."""
    path, out = small(tmp_path), tmp_path / "run"
    lock = start._lock

    def late(directory: Path) -> int:
        monkeypatch.setattr(start, "_lock", lock)
        assert main(["train", str(path), "--out", str(out), "--quiet", "--minutes", "0"]) == 0
        return lock(directory)

    monkeypatch.setattr(start, "_lock", late)
    assert "holds a training already: --resume goes on with it" in error(capsys, path, "--out", out, "--seed", 2)
    assert json.loads(_native.Policy.load(out / "policy.safetensors").metadata["seed"]) == 1


@pytest.mark.parametrize("minutes", ["inf", "1e308", "1000001"])
def test_more_minutes_than_a_clock_has(tmp_path: Path, capsys: pytest.CaptureFixture[str], minutes: str) -> None:
    line = error(capsys, small(tmp_path), "--out", tmp_path / "run", "--minutes", minutes)
    assert line.startswith("astraea: --minutes: expected a number of at most 1000000; ")


def test_one_directory_one_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = small(tmp_path), tmp_path / "run"
    assert "there is no checkpoint to resume from" in error(capsys, path, "--out", out, "--resume")
    assert not out.exists()
    assert main(["train", str(path), "--out", str(out), "--quiet", "--minutes", "0.001"]) == 0
    assert "holds a training already: --resume goes on with it" in error(capsys, path, "--out", out)
    assert "was begun with seed = 1, not 9: see its config.toml" in error(
        capsys, path, "--out", out, "--resume", "--seed", 9
    )
    copied = path.with_name("copied.toml")
    copied.write_text(path.read_text())
    assert 'was begun with name = "' in error(capsys, copied, "--out", out, "--resume").replace("'", '"')
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "policy.safetensors").write_bytes(b"somebody's")
    assert "holds a policy.safetensors, and no checkpoint to go on from" in error(
        capsys, path, "--out", tmp_path / "foreign"
    )
    assert "--minutes: expected a number" in error(capsys, path, "--minutes", "inf")
    (out / "log.jsonl").write_text("no log\n")
    state = torch.load(out / "checkpoint" / "state.pt", weights_only=True)
    torch.save({**state, "iteration": 7}, out / "checkpoint" / "state.pt")
    assert "log.jsonl: expected lines of a training's log, not no log" in error(capsys, path, "--out", out, "--resume")
    torch.save({key: state[key] for key in state if key != "due"}, out / "checkpoint" / "state.pt")
    assert "not a checkpoint of this training: KeyError: 'due'" in error(capsys, path, "--out", out, "--resume")
    (tmp_path / "file").touch()
    assert "cannot be made: File exists" in error(capsys, path, "--out", tmp_path / "file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("bandwidth = [10e6, 40e6]", "bandwidth = [40e6, 10e6]"), "small.toml: environment.bandwidth: is ["),
        (("bandwidth", "bandwith"), "small.toml: environment.bandwith: unknown field"),
        (("[validation]", "[validation]\nenvironment = {loss = 2}"), "small.toml: validation.environment.loss: is "),
        (("replay = 20_000", "replay = 1_000_000_000"), "td3.replay: 1000000000 transitions take"),
        (("episodes = 4", "episodes = 1_000_000"), "rollouts.episodes: 1000000 of up to 375 decisions and 2 flows"),
        (("[policy]", 'reward = "none.py:f"\n[policy]'), "none.py: no such file"),
    ],
)
def test_bad_settings_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], message: str
) -> None:
    out = tmp_path / "run"
    assert message in error(capsys, small(tmp_path, SMALL.replace(*change, 1)), "--out", out)
    assert not out.exists()


def test_of_an_unknown_setting_it_is_said_which_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(setting: str) -> str:
        return error(capsys, small(tmp_path, SMALL.replace("duration", setting, 1)), "--out", tmp_path / "run")

    assert said("bandwith").endswith(
        'small.toml: environment.bandwith: unknown field `bandwith`; did you mean "bandwidth"?\n'
    )
    assert said("reward.fair").endswith('environment.reward: unknown field `fair`; did you mean "fairness"?\n')
    line = said("xyz")
    assert "environment.xyz: unknown field `xyz`, expected one of bandwidth, bandwidth_scale, rtt, " in line
    assert "alpha" not in line  # which stands in [policy]


def test_wrong_reward_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("def f(flows, active, link):\n    return flows['thr']\n")
    path = small(tmp_path, 'reward = "mine.py:f"\n' + SMALL)
    assert "reward: mine.py:f: line 2: KeyError: 'thr'" in error(capsys, path, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "torch" else there(name))
    line = error(capsys, small(tmp_path))
    assert line == "astraea: training needs torch, of the extra train; in the checkout: make extra-train\n"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = error(capsys, small(tmp_path), "--device", "cuda", "--out", tmp_path / "run")
    assert line == "astraea: --device cuda: PyTorch finds no GPU on this machine\n"
    assert not (tmp_path / "run").exists()


def test_nothing_else_imports_pytorch() -> None:
    code = (
        "import sys, astraea, astraea.cli.app, astraea.envs, astraea.learn.config\n"
        "from astraea.cli import main\n"
        "assert main(['schemes', '--json']) == 0 and main(['train', '--help']) == 0\n"
        "assert 'torch' not in sys.modules and 'tensorboard' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(("form", "monotone"), [("paper", False), ("pure", True), ("guided", False), ("guided", True)])
def test_native_policy_is_the_network(form: Any, monotone: bool) -> None:
    inputs = FORMS[form].inputs
    generator = torch.Generator().manual_seed(1)
    actor = Actor(inputs, (256, 128, 64), FORMS[form].falling if monotone else (), generator=generator)
    with torch.no_grad():
        actor.raw.add_(0.02 * torch.randn(actor.raw.shape, generator=generator))
    activation, layers = actor.weights(actor.effective())
    policy = _native.Policy.from_weights(form, activation, layers)
    states = torch.randn(100_000, inputs, generator=generator)
    with torch.no_grad():
        ours = actor(states).numpy()
    assert np.abs(ours - policy.forward(states.numpy())).max() < 1e-5
    assert ours.std() > 0.02


def test_native_transitions_by_the_definition() -> None:
    """Against the slow reference, with one flow, whose decisions are one sequence."""
    settings = {"flows": 1, "duration": 6.0, "lifetime": None, "bandwidth": [10e6, 40e6]}
    rollout = _native.Rollout(json.dumps(settings), "pure", 0.1, seed=3)
    actor = Actor(25, (16,), generator=torch.Generator().manual_seed(1))
    batch = rollout.run(_native.Policy.from_weights("pure", *actor.weights(actor.effective())), 0, 1, 0.5)
    one = batch.transitions(0.9, 1)
    count = len(one["a"])
    assert 100 < count == batch.decisions - 1
    # Steps of one period follow each other without a gap.
    np.testing.assert_array_equal(one["s"][1:], one["s2"][:-1])
    states = {name: np.concatenate([one[name], one[f"{name}2"][-1:]]) for name in ("g", "s")}
    for n in (2, 5, 1000):
        expected = n_step((states["g"], states["s"], one["a"], one["r"].astype(np.float64)), 0.9, n)
        found = batch.transitions(0.9, n)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], np.array(values), rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_policy_is_kept_with_the_period_it_was_trained_for(tmp_path: Path) -> None:
    text = SMALL.replace("[environment]", "[environment]\nperiod = 0.02").replace("updates = 200", "updates = 1")
    out = tmp_path / "run"
    assert main(["train", str(small(tmp_path, text)), "--out", str(out), "--quiet", "--minutes", "0"]) == 0
    policy = _native.Policy.load(out / "policy.safetensors")
    assert (policy.period, policy.metadata["period_ms"]) == (0.02, "20")


@pytest.mark.timeout(600)
def test_a_minute_of_training_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An ordinary network, which knows nothing at first, on the papers' training range."""
    text = SMALL.replace("[16, 8]", "[64, 32]").replace("[32, 16]", "[64, 64]").replace("monotone = true\n", "")
    text = text.replace("duration = 5.0\nbandwidth = [10e6, 40e6]", "[environment.reward]\nfairness = 0.1")
    text = text.replace("updates = 200", "updates = 6_000").replace("replay = 20_000", "replay = 300_000")
    text = text.replace("every = 2\nepisodes = 4", "every = 10\nepisodes = 16\nsettled = 0.0")
    path, out = small(tmp_path, text.replace("batch = 64", "batch = 128\nreward_scale = 5.0")), tmp_path / "run"
    # By updates, not by minutes: a machine that is busy takes longer, and gets as far.
    assert main(["train", str(path), "--out", str(out), "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    first = json.loads((out / "log.jsonl").read_text().splitlines()[0])
    assert best["score"] > first["validation.score"] + 0.2
