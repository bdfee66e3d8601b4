"""The training loop over an environment whose best policy is known."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")

from learn_toy import ToyBatch, ToyRollouts  # noqa: E402

from astraea.cli.output import err  # noqa: E402
from astraea.errors import UserError  # noqa: E402
from astraea.learn import checkpoint, loop  # noqa: E402
from astraea.learn.config import Config  # noqa: E402
from astraea.learn.divergence import Divergence  # noqa: E402
from astraea.learn.loop import Parts, Training  # noqa: E402
from astraea.learn.td3 import Progress  # noqa: E402
from astraea.learn.view import View  # noqa: E402


def config(*, run: dict[str, Any] | None = None, td3: dict[str, Any] | None = None, **others: Any) -> Config:
    learner = {"hidden": [32, 16], "batch": 64, "gamma": 0.9, "steps": 2, "replays": 4, "replay": 5000, "warm_up": 1000}
    return Config.model_validate(
        {
            "policy": {"form": "pure", "alpha": 0.1, "hidden": [16, 8], "monotone": True},
            "rollouts": {"episodes": 20},
            "td3": learner | {"learning_rate": 2e-3, "half_life": 500, "average": 0.99, "centring": 0.2} | (td3 or {}),
            "validation": {"every": 3, "episodes": 8},
            "run": {"updates": 400} | (run or {}),
        }
        | others
    )


def training(directory: Path, settings: Config | None = None, delay: float = 0.0, entries: Any = None) -> Training:
    def show(entry: dict[str, Any]) -> None:
        if entries is not None:
            entries.append(entry)

    toy = ToyRollouts(delay=delay)
    directory.mkdir(exist_ok=True)
    return Training(settings or config(), directory, Parts(toy, toy, lambda *_: None, show))


def tensors(value: Any, path: str = "") -> dict[str, Any]:
    """All leaves of a state by their path."""
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in tensors(item, f"{path}.{key}").items()}
    if isinstance(value, list | tuple):
        return {k: v for i, item in enumerate(value) for k, v in tensors(item, f"{path}.{i}").items()}
    return {path: value}


def assert_same(one: Training, other: Training) -> None:
    """The same state to the bit, wall time aside."""
    left, right = tensors(one.state()), tensors(other.state())
    assert left.keys() == right.keys()
    for name in left.keys() - {".seconds"}:
        same = (
            torch.equal(left[name], right[name]) if isinstance(left[name], torch.Tensor) else left[name] == right[name]
        )
        assert same, name


def test_a_training_that_is_interrupted_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = training(tmp_path / "whole")
    whole.run()
    assert 400 <= whole.learner.updates < 450
    assert whole.iteration > 8
    for stop_after in (1, 4):  # in the middle of warming up, and of learning
        directory = tmp_path / f"parts-{stop_after}"
        training(directory).run(minutes=0.0)  # nothing but the first look
        rounds = 1
        while True:
            # Slow roll-outs: what happens when must not depend on it.
            part = training(directory, delay=0.02 * rounds)
            part.resume()
            last = part.iteration + stop_after
            part.run(stop=lambda part=part, last=last: part.iteration >= last)
            rounds += 1
            if part.learner.updates >= 400:
                break
        assert rounds > 2
        assert_same(whole, part)


def test_the_first_look_is_taken_once(tmp_path: Path) -> None:
    begun = training(tmp_path)
    begun.run(minutes=0.0)
    resumed = training(tmp_path)
    resumed.resume()
    resumed.run(minutes=0.0)
    assert_same(begun, resumed)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


def test_a_training_outlives_who_watched_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Gone())
    view = View(err(), updates=10, minutes=None)
    names = ("score", "jain", "jain_p10", "utilization", "rtt_inflation", "loss")
    entry: dict[str, Any] = {"iteration": 1, "updates": 2, "best": 1.0, **{f"validation.{name}": 1.0 for name in names}}
    for _ in range(2):
        with view:
            view(entry)
    assert not view.shown


def test_a_training_that_breaks_goes_on_from_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(run={"checkpoint_seconds": 0.0})
    whole = training(tmp_path / "whole", settings)
    whole.run()
    broken = training(tmp_path / "parts", settings)
    update = broken._update

    def breaking(gathered: Any) -> None:
        if broken.iteration == 5:
            raise RuntimeError("broken")
        update(gathered)

    monkeypatch.setattr(broken, "_update", breaking)
    with pytest.raises(RuntimeError, match="broken"):
        broken.run()
    part = training(tmp_path / "parts", settings)
    part.resume()
    assert part.iteration == 5
    assert 0 < part.learner.updates < whole.learner.updates
    part.run()
    assert_same(whole, part)


def test_checkpoints_are_as_far_apart_as_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which each iteration takes 10 s; the first and the last one are not for the time."""
    run = training(tmp_path, config(run={"checkpoint_seconds": 25.0}))
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: 10.0 * run.iteration))
    saved: list[int] = []
    monkeypatch.setattr(checkpoint, "save", lambda _, state: saved.append(state["iteration"]))
    run.run(stop=lambda: run.iteration >= 8)
    assert saved == [0, 3, 6, 8]


def test_a_time_limit_only_decides_where_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which each iteration takes a minute."""
    part = training(tmp_path / "part", config(run={"updates": 1000}), delay=0.02)
    with monkeypatch.context() as patched:
        patched.setattr(loop, "time", SimpleNamespace(monotonic=lambda: 1e6 + 60.0 * part.iteration))
        part.run(minutes=6.5)
    assert part.iteration == 7
    assert 0 < part.learner.updates < 1000
    whole = training(tmp_path / "whole", config(run={"updates": 1000}))
    whole.run(stop=lambda: whole.iteration >= part.iteration)
    assert_same(whole, part)


def test_rewards_are_remembered_scaled(tmp_path: Path) -> None:
    """While nothing is learnt yet the roll-outs are the same, and everything else in them is."""
    found = {}
    for scale in (1.0, 5.0):
        run = training(tmp_path / str(scale), config(td3={"reward_scale": scale}))
        run.run(stop=lambda run=run: run.iteration >= 2)
        assert run.learner.updates == 0
        found[scale] = run
    plain, scaled = (found[scale].replay.state()["rows"] for scale in (1.0, 5.0))
    column = found[1.0].layout.reward
    assert plain[:, column].std() > 0.1
    np.testing.assert_array_equal(scaled[:, column], 5 * plain[:, column])
    np.testing.assert_array_equal(np.delete(scaled, column, axis=1), np.delete(plain, column, axis=1))
    assert found[5.0].learner.centre == pytest.approx(5 * found[1.0].learner.centre)


def test_updates_by_simulated_seconds(tmp_path: Path) -> None:
    """20 episodes of 20 decisions, .03 s each, are 12 s an iteration: 27.6 updates, whole ones only."""
    entries: list[dict[str, Any]] = []
    run = training(tmp_path, config(td3={"updates_per_second": 2.3, "warm_up": 0}), entries=entries)
    run.run(stop=lambda: run.iteration >= 4)
    updates = {entry["iteration"]: entry["updates"] for entry in entries}
    assert updates == {0: 0, 1: 27, 2: 55, 3: 82, 4: 110}
    assert run.learner.updates == 110


def test_learns_and_records(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = []
    done = training(tmp_path, config(run={"updates": 1500}), entries=entries)
    done.run()
    assert done.best is not None
    scores = [entry["validation.score"] for entry in entries if "validation.score" in entry]
    assert done.best.score.score == max(scores) > scores[0] + 0.1
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert logged == entries
    iterations = [entry["iteration"] for entry in logged]
    assert sorted(set(iterations)) == list(range(done.iteration + 1))
    assert logged[done.iteration]["learner.critic_loss"] > 0
    scalars = board(tmp_path)
    shown = scalars.Scalars("validation/score")
    assert [each.step for each in shown] == [each["iteration"] for each in logged if "validation.score" in each]
    assert [each.value for each in shown] == pytest.approx(scores)
    assert "iteration" not in scalars.Tags()["scalars"]


def test_log_goes_on_where_the_checkpoint_is(tmp_path: Path) -> None:
    first = training(tmp_path)
    first.run(stop=lambda: first.iteration >= 6)
    log = tmp_path / "log.jsonl"
    # As if it had been killed later, in the middle of a line.
    log.write_text(log.read_text() + '{"iteration": 7}\n{"iteration": 8}\n{"iterat')
    second = training(tmp_path)
    second.resume()
    second.run()
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["iteration"] for entry in logged] == list(range(second.iteration + 1))
    assert "reward" in logged[7]
    # TensorBoard shows each iteration once, too.
    steps = [each.step for each in board(tmp_path).Scalars("updates")]
    assert steps == list(range(second.iteration + 1))


@pytest.mark.parametrize(
    "end",
    [
        b"\0" * 5000,
        b'{"iterat' + b"\0" * 5000,
        b"\0\0\n\0\0\n",
        b'\xff\xfe{"iteration": 4}\n',
        b'{"iteration": 1e999}\n',
        b"[" * 100_000 + b"\n",
        b'what another file said\n{"iteration": null}\n',
    ],
)
def test_a_log_whose_end_cannot_be_read_goes_on(tmp_path: Path, end: bytes) -> None:
    first = training(tmp_path)
    first.run(stop=lambda: first.iteration >= 3)
    log = tmp_path / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + end)
    second = training(tmp_path)
    second.resume()
    second.run(stop=lambda: second.iteration >= 4)
    assert log.read_bytes().startswith(whole)
    assert [json.loads(line)["iteration"] for line in log.read_text().splitlines()] == [0, 1, 2, 3, 4, 4]


def test_a_log_that_is_gone_is_begun_anew(tmp_path: Path) -> None:
    first = training(tmp_path)
    first.run(stop=lambda: first.iteration >= 3)
    (tmp_path / "log.jsonl").write_bytes(b"\0" * 5000)  # what a power cut may leave of it all
    second = training(tmp_path)
    second.resume()
    second.run(stop=lambda: second.iteration >= 4)
    assert [json.loads(line)["iteration"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == [4, 4]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"what another file said", "what another file said"),
        (b"\xff\0\x1b[31m", "\ufffd\ufffd\ufffd[31m"),
        (b'{"iteration": 1e999}', '{"iteration": 1e999}'),
    ],
)
def test_a_log_that_cannot_be_read_in_its_middle_is_left_alone(tmp_path: Path, line: bytes, shown: str) -> None:
    first = training(tmp_path)
    first.run(stop=lambda: first.iteration >= 3)
    log = tmp_path / "log.jsonl"
    begin, _, rest = log.read_bytes().partition(b"\n")
    log.write_bytes(damaged := begin + b"\n" + line + b"\n" + rest)
    second = training(tmp_path)
    second.resume()
    with pytest.raises(UserError) as error:
        second.run()
    assert str(error.value) == f"{log}: expected lines of a training's log, not {shown}"
    assert log.read_bytes() == damaged


def board(directory: Path) -> Any:
    """What TensorBoard reads."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(directory / "tensorboard"))
    found.Reload()
    return found


@pytest.mark.parametrize("file", ["log.jsonl", "tensorboard"])
def test_disk_full_while_logging(tmp_path: Path, file: str) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom astraea.learn.log import Log\n"
        "log = Log(Path(sys.argv[1]), None)\n"
        "full = os.open('/dev/full', os.O_WRONLY)\n"
        "inner = log._file if sys.argv[2] == 'log.jsonl' else log._board._records._writer\n"
        "os.dup2(full, inner.fileno())\n"
        "for work in (lambda: log.write({'iteration': 1, 'updates': 3}), log.close):\n"
        "    try:\n        work()\n"
        "    except Exception as error:\n        print(type(error).__name__, error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path, file], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(rf"UserError {tmp_path}/{file}\S*: cannot be written: No space left on device", line)


def test_other_settings_cannot_resume(tmp_path: Path) -> None:
    first = training(tmp_path)
    first.run(stop=lambda: first.iteration >= 1)
    longer = training(tmp_path, config(run={"updates": 500}))
    longer.resume()
    assert longer.iteration == 1
    gamma = config().td3.gamma
    for other, said in (
        (config(seed=2), "begun with seed = 1, not 2"),
        (config(td3={"gamma": 0.8}), f"begun with td3.gamma = {gamma}, not 0.8"),
        (config(run={"updates": 500, "threads": 2}), "begun with run.threads = 1, not 2"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            training(tmp_path, other).resume()


def test_own_reward_is_what_is_learnt(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def away(flows, active, link):\n"
        "    assert list(flows) == ['position'] and list(link) == ['scale'] and active.dtype == bool\n"
        "    assert not active[:, 1].any() and active[:, 0].all()\n"
        "    return link['scale'] * np.abs(flows['position'][:, 0])\n"
    )
    done = training(tmp_path, config(reward=f"{tmp_path}/mine.py:away", run={"updates": 1000}))
    done.run()
    # The built-in reward wants x = 0; this one drives it to the end at 2, where the built-in one is -3.
    final = ToyRollouts().score(done.learner.actor.weights(done.learner.average.value), range(8))
    assert final["jain"].mean() < -1


def test_rewards_whose_sum_is_no_number_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef large(flows, active, link):\n    return np.full(len(active), 1e38)\n"
    )
    with pytest.raises(UserError, match=r"reward: mine.py:large: the sum of td3.steps = 2 rewards times td3.reward_sc"):
        training(tmp_path, config(reward=f"{tmp_path}/mine.py:large", td3={"reward_scale": 1e6}))


@pytest.mark.parametrize("change", ["edited", "removed"])
def test_what_becomes_of_the_file_of_a_reward_is_nothing_to_a_training(tmp_path: Path, change: str) -> None:
    path = tmp_path / "mine.py"
    text = "import numpy as np\ndef away(flows, active, link):\n    return np.abs(flows['position'][:, 0])\n"
    path.write_text(text)
    settings = config(reward=f"{path}:away")
    whole = training(tmp_path / "whole", settings)
    whole.run()
    first = training(tmp_path / "parts", settings)
    if change == "edited":
        path.write_text(text.replace("np.abs", "-np.abs"))
    else:
        path.unlink()
    first.run(stop=lambda: first.iteration >= 5)
    if change == "edited":
        with pytest.raises(UserError, match=r"begun with reward = 'mine\.py:away "):
            training(tmp_path / "parts", settings).resume()
    path.write_text(text)
    second = training(tmp_path / "parts", settings)
    second.resume()
    second.run()
    assert_same(whole, second)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("estimates", "no policy can be worth more"),
        ("numbers", "no longer numbers"),
        ("windows", "windows stay at"),
        ("nothing", "nothing to learn from: in 20 iterations"),
    ],
)
def test_divergence_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, reason: str) -> None:
    run = training(tmp_path, config(run={"updates": 5000}))
    if what == "windows":
        monkeypatch.setattr("learn_toy.ToyBatch.diverged", 15)
    elif what == "nothing":
        whole = ToyBatch.transitions
        empty = lambda *given: {name: values[:0] for name, values in whole(*given).items()}  # noqa: E731
        monkeypatch.setattr(ToyBatch, "transitions", empty)
    else:
        with torch.no_grad():
            run.learner.target_critics.fill_(1e3 if what == "estimates" else float("nan"))
    with pytest.raises(Divergence, match=reason):
        run.run()
    assert run.learner.updates < 5000
    assert run.best is not None


def test_an_actor_that_is_no_numbers_any_more_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its actions have reached the critics."""
    run = training(tmp_path)

    def progress() -> Progress:
        with torch.no_grad():
            run.learner.actor.raw[0] = float("nan")
        return Progress(critic_loss=0.1, value=0.0, largest=0.1, actor_value=0.0, saturated=0.0)

    monkeypatch.setattr(run.learner, "progress", progress)
    with pytest.raises(Divergence, match="the actor's weights are no longer numbers"):
        run.run()
    assert run.iteration == 1


def test_collapsed_validation_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = training(tmp_path, config(run={"updates": 50_000}))
    healthy = ToyRollouts.score

    def score(self: ToyRollouts, policy: Any, seeds: Any) -> Any:
        measured = dict(healthy(self, policy, seeds))
        return measured | ({"jain": np.full(8, -2.0)} if run.iteration > 6 else {})

    monkeypatch.setattr(ToyRollouts, "score", score)
    with pytest.raises(Divergence, match=r"validation score collapsed.* 5 times in a row"):
        run.run()
    assert run.best is not None
    assert run.best.iteration <= 6


def test_nothing_is_kept_for_a_score_that_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reward of one's own, too."""
    (tmp_path / "mine.py").write_text("def none(flows, active, link):\n    return link['scale']\n")
    run = training(tmp_path, config(reward=f"{tmp_path}/mine.py:none"))
    healthy = run.validation.score
    monkeypatch.setattr(run.validation, "score", lambda policy: replace(healthy(policy), score=float("inf")))
    with pytest.raises(Divergence, match="the validation score is inf"):
        run.run()
    assert run.best is None


def test_wait_for_better_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyRollouts, "rewards", lambda *_: np.zeros(8))
    run = training(tmp_path, config(run={"updates": 50_000, "patience": 2}))
    run.run()
    assert run.iteration == 6


def test_of_scores_that_cannot_be_told_apart_the_latest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = [0.5, 0.9, 0.81, 0.85, 0.7]

    def score(self: ToyRollouts, policy: Any, seeds: Any) -> Any:
        del self, policy
        measured = {key: np.zeros(len(seeds)) for key in healthy}
        looks = min(run.iteration // 2, len(scores) - 1)
        return measured | {"jain": np.full(len(seeds), scores[looks]), "settled": np.zeros(len(seeds))}

    settings = config(run={"updates": 50_000}, validation={"every": 2, "episodes": 8, "indifference": 0.1})
    run = training(tmp_path, settings)
    healthy = ToyRollouts().score(run.learner.actor.weights(run.behaviour), range(8))
    monkeypatch.setattr(ToyRollouts, "score", score)
    run.run(stop=lambda: run.iteration >= 8)
    assert run.best is not None
    assert (run.best.iteration, run.best.score.score, run.highest) == (6, pytest.approx(0.85), pytest.approx(0.9))
    gone_on = training(tmp_path, settings)
    gone_on.resume()
    assert gone_on.best is not None
    assert (gone_on.best.iteration, gone_on.highest, gone_on.stale) == (6, run.highest, 3)


SAVER = """
import os, signal, sys, torch
from pathlib import Path
from astraea.learn import checkpoint

directory, point = Path(sys.argv[1]), sys.argv[2]
save, replace = torch.save, os.replace
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

def half(state, file):
    save(state, file)
    file.flush()
    file.truncate(file.tell() // 2)
    die()

def renamed(*names):
    replace(*names)
    die()

checkpoint.save(directory, {"count": 1, "rows": torch.ones(100_000)})
if point == "writing": torch.save = half
if point == "written": os.fsync = die
if point == "synced": os.replace = die
if point == "renamed": os.replace = renamed
checkpoint.save(directory, {"count": 2, "rows": torch.ones(100_000)})
"""


@pytest.mark.parametrize(("point", "count"), [("writing", 1), ("written", 1), ("synced", 1), ("renamed", 2)])
def test_killed_while_saving(tmp_path: Path, point: str, count: int) -> None:
    run = subprocess.run([sys.executable, "-c", SAVER, tmp_path, point], check=False)
    assert run.returncode == -signal.SIGKILL
    state = checkpoint.load(tmp_path)
    assert state["count"] == count
    assert (state["rows"] == 1).all()
    checkpoint.save(tmp_path, {"count": 3})
    assert checkpoint.load(tmp_path)["count"] == 3
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["state.pt"]


def test_a_checkpoint_is_on_the_disk_before_its_name_is_and_then_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def syncing(descriptor: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    def replacing(old: Path, new: Path) -> None:
        done.append("replaced")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", replacing)
    checkpoint.save(tmp_path, {"count": 1})
    directory = tmp_path / "checkpoint"
    assert done == [str(directory / ".state.pt.new"), "replaced", str(directory)]


ENDED = """
import signal, sys, torch
from pathlib import Path
from astraea.cli import ending
from astraea.learn import checkpoint

directory, signum = Path(sys.argv[1]), int(sys.argv[2])
signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
if sys.argv[3] == "impatient": ending._PATIENCE[signum] = 0
save = torch.save

class Disturbed:
    def __init__(self, file): self.file, self.left = file, 3
    def write(self, content):
        self.left -= 1
        if self.left == 0: signal.raise_signal(signum)
        return self.file.write(content)
    def flush(self): self.file.flush()

checkpoint.save(directory, {"count": 1})
torch.save = lambda state, file: save(state, Disturbed(file))
try:
    with ending.by_signals():
        checkpoint.save(directory, {"count": 2, "rows": torch.ones(100_000)})
        while True: signal.pause()
except BaseException as end:
    print(type(end).__name__)
"""


@pytest.mark.parametrize(("how", "count"), [("patient", 2), ("impatient", 1)])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_while_saving(tmp_path: Path, signum: signal.Signals, how: str, count: int) -> None:
    """The end waits until the checkpoint is written; one that can wait no longer is no failure to write."""
    program = [sys.executable, "-c", ENDED, tmp_path, str(int(signum)), how]
    run = subprocess.run(program, capture_output=True, text=True, check=True)
    name = "KeyboardInterrupt" if signum == signal.SIGINT else "ToldToEnd"
    assert (run.stdout, run.stderr) == (f"{name}\n", "")
    assert checkpoint.load(tmp_path)["count"] == count
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["state.pt"]


def test_disk_full_while_saving(tmp_path: Path) -> None:
    """A limit on the size of files fails like a full disk: in the middle of writing."""
    checkpoint.save(tmp_path, {"count": 1})
    code = (
        "import resource, signal, sys, torch\nfrom pathlib import Path\nfrom astraea.learn import checkpoint\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))\n"
        "try:\n    checkpoint.save(Path(sys.argv[1]), {'count': 2, 'rows': torch.zeros(1_000_000)})\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    expected = f"UserError {checkpoint.path(tmp_path)}: cannot be written: File too large; the one before is kept\n"
    assert (run.stdout, run.stderr) == (expected, "")
    assert checkpoint.load(tmp_path)["count"] == 1
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["state.pt"]


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 cut off"])
def test_checkpoint_that_is_none(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UserError, match="there is no checkpoint"):
        checkpoint.load(tmp_path)
    checkpoint.save(tmp_path, {})
    checkpoint.path(tmp_path).write_bytes(content)
    with pytest.raises(UserError, match="not a readable checkpoint"):
        checkpoint.load(tmp_path)
    torch.save({"format": 0}, checkpoint.path(tmp_path))
    with pytest.raises(UserError, match="not a checkpoint of this version"):
        checkpoint.load(tmp_path)


RESUMED = """
import re, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_learn_loop import config, training
from astraea.learn import checkpoint

def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

made = training(Path(sys.argv[1]), config(td3={"replay": 300_000}))
if sys.argv[3] == "save":
    made.replay.memory[:] = 1
    made.replay.size = len(made.replay.memory)
    checkpoint.save(made.directory, made.state())
else:
    restore, before = made.restore, anonymous()
    def measured(state):
        print((anonymous() - before) / made.replay.memory.nbytes)
        restore(state)
    made.restore = measured
    made.resume()
    assert (made.replay.memory == 1).all()
    assert "state.pt" not in Path("/proc/self/maps").read_text()
"""


def test_a_replay_memory_need_not_fit_twice_to_resume(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RESUMED, tmp_path, Path(__file__).parent]
    subprocess.run([*command, "save"], check=True)
    run = subprocess.run([*command, "resume"], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 0.5


def test_rollouts_and_updates_overlap(tmp_path: Path) -> None:
    """Each iteration's roll-outs begin before the updates of the one before."""
    order: list[str] = []
    begun: defaultdict[int, Event] = defaultdict(Event)
    run = training(tmp_path, config(run={"updates": 200}))
    gather, update = run._gather, run._update

    def gathering(policy: Any, iteration: int, episodes: int) -> Any:
        order.append(f"roll-outs {iteration}")
        begun[iteration].set()
        time.sleep(0.05)
        return gather(policy, iteration, episodes)

    def updating(gathered: Any) -> None:
        begun[run.iteration + 1].wait(5)  # the other thread may be slow to begin, but does not wait for this one
        order.append(f"updates {run.iteration}")
        update(gathered)

    run._gather, run._update = gathering, updating  # type: ignore[method-assign]
    run.run()
    for iteration in range(3, run.iteration):
        assert order.index(f"roll-outs {iteration + 1}") < order.index(f"updates {iteration}")
