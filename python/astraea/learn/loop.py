"""The training loop.

Roll-outs and updates go on at the same time: while the learner learns from iteration k, another thread runs the
episodes of iteration k + 1 with the policy as it was after the updates of iteration k - 1. Which policy is used where
does not depend on how long anything takes, so a training is the same on a fast machine and on a slow one, and a limit
of time only decides after which iteration it stops.
"""

from __future__ import annotations

import copy
import json
import math
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from astraea._native import Cancel
from astraea.errors import UserError
from astraea.learn import checkpoint, speed
from astraea.learn.config import Config, RunSettings, to_toml
from astraea.learn.divergence import Divergence, Watch
from astraea.learn.forms import FORMS
from astraea.learn.log import Entry, Log, flatten
from astraea.learn.replay import Layout, Replay, check_memory, check_rollouts
from astraea.learn.reward import Reward
from astraea.learn.rollouts import Rollouts, Weights
from astraea.learn.td3 import Td3
from astraea.learn.validation import Score, Validation


@dataclass(frozen=True)
class Parts:
    """What a training is made of besides its settings."""

    rollouts: Rollouts
    """Runs the episodes that are learnt from."""
    validation: Rollouts
    """Runs those that policies are compared by."""
    keep: Callable[[Weights, Best], None]
    """Keeps the best policy so far, whose weights these are."""
    show: Callable[[Entry], None]
    """Shows an entry of the log."""


@dataclass(frozen=True)
class Best:
    """The best policy so far: the latest of those whose scores the validation cannot tell from the highest."""

    score: Score
    iteration: int
    updates: int
    parameters: Tensor
    """Effective parameters of the averaged actor."""


@dataclass(frozen=True)
class Gathered:
    """An iteration's roll-outs as the learner takes them."""

    rows: NDArray[np.float32]
    decisions: int
    episodes: int
    diverged: int
    seconds: float
    reward: float


class Training:
    """A training that can be stopped after any iteration and gone on with."""

    def __init__(self, config: Config, directory: Path, parts: Parts, device: str = "cpu") -> None:
        self.config, self.directory, self.parts = config, directory, parts
        self.device = torch.device(device)
        speed.choose(config.run.threads, self.device)
        self.layout = Layout(parts.rollouts.global_size, FORMS[config.policy.form].inputs)
        check_memory(config.td3.replay, self.layout)
        check_rollouts(
            config.rollouts.episodes,
            parts.rollouts.largest_episode,
            config.td3.replay,
            self.layout,
            statistics=config.reward is not None,
        )
        self.reward = None if config.reward is None else Reward(config.reward)
        generator = torch.Generator().manual_seed(config.seed)
        self.learner = Td3(config.td3, config.policy, self.layout, generator).to(self.device)
        self.replay = Replay(config.td3.replay, self.layout, config.seed)
        self.validation = Validation(config.validation, parts.validation)
        self.watch = Watch()
        self.behaviour = self.learner.actor.effective().detach().clone()
        """Effective parameters of the actor in the roll-outs of this iteration."""
        self._cancel = Cancel()
        """Ends roll-outs that nobody will learn from any more."""
        self.iteration = 0
        self.due = 0.0
        """Updates that are due: more than none, less than one, between iterations."""
        self.decisions = 0
        self.seconds = 0.0
        """Wall time of the sessions before this one."""
        self.best: Best | None = None
        self.highest = -math.inf
        """Highest score so far."""
        self.stale = 0
        """Validations since that one."""
        if self.reward is not None:  # better wrong now than when everything has begun
            self._gather(self.learner.actor.weights(self.behaviour), 0, episodes=1)
        self._batch = torch.empty(config.td3.batch, self.layout.width)
        self._began = time.monotonic()
        self.lock: AbstractContextManager[Any] = nullcontext()
        """What keeps other trainings out of the directory until this one has ended."""

    def resume(self) -> None:
        """Go back to the checkpoint in the directory."""
        state = checkpoint.load(self.directory)
        try:
            self.restore(state)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise UserError(f"{checkpoint.path(self.directory)}: not a checkpoint of this training: {reason}") from None
        if self.best is not None:
            self.parts.keep(self.learner.actor.weights(self.best.parameters), self.best)

    def run(self, minutes: float | None = None, stop: Callable[[], bool] = lambda: False) -> None:
        """Train until the updates are done, `minutes` are over or `stop` says so; `Divergence` if it goes wrong.

        However it ends, there is a checkpoint and, after the first validation, a policy.
        """
        with self.lock:
            self._run(minutes, stop)

    def _run(self, minutes: float | None, stop: Callable[[], bool]) -> None:
        self._began = time.monotonic()
        deadline = None if minutes is None else self._began + 60 * minutes
        saved = self._began
        begins = self.best is None
        self._cancel = Cancel()
        log = Log(self.directory, None if begins else self.iteration)
        try:
            with ThreadPoolExecutor(1, "roll-outs") as pool, self._cancelled():
                pending = self._collect(pool, self.iteration)
                if begins:
                    self._validation_alone(log)
                    checkpoint.save(self.directory, self.state())
                while not (self._done() or stop() or (deadline is not None and time.monotonic() >= deadline)):
                    gathered = pending.result()
                    self.behaviour = self.learner.actor.effective().detach().clone()
                    pending = self._collect(pool, self.iteration + 1)
                    self._iterate(gathered, log)
                    if time.monotonic() - saved >= self.config.run.checkpoint_seconds:
                        checkpoint.save(self.directory, self.state())
                        saved = time.monotonic()
            checkpoint.save(self.directory, self.state())
            if self.iteration % self.config.validation.every:
                # The last policy may be the best. Not for the checkpoint: a run that goes on does not stop here.
                self._validation_alone(log)
        finally:
            log.close()

    @contextmanager
    def _cancelled(self) -> Iterator[None]:
        """End the roll-outs that are under way at the end, whatever that is, instead of waiting for them."""
        try:
            yield
        finally:
            self._cancel.cancel()

    def _done(self) -> bool:
        patience = self.config.run.patience
        return self.learner.updates >= self.config.run.updates or bool(patience and self.stale >= patience)

    def _collect(self, pool: ThreadPoolExecutor, iteration: int) -> Future[Gathered]:
        """Start the roll-outs of an iteration. The thread leaves PyTorch alone, whose settings are per thread."""
        policy = self.learner.actor.weights(self.behaviour)
        return pool.submit(self._gather, policy, iteration, self.config.rollouts.episodes)

    def _gather(self, policy: Weights, iteration: int, episodes: int) -> Gathered:
        td3, own = self.config.td3, self.reward
        noise = self.config.rollouts.noise
        batch = self.parts.rollouts.run(
            policy, iteration, episodes, noise, statistics=own is not None, cancel=self._cancel
        )
        rewards = None if own is None else own(batch.statistics())
        rows = self.layout.rows(batch.transitions(td3.gamma, td3.steps, rewards))
        with np.errstate(over="ignore"):
            rows[:, self.layout.reward] *= td3.reward_scale
        if own is not None and not np.isfinite(rows[:, self.layout.reward]).all():
            raise UserError(
                f"reward: {own.name}: the sum of td3.steps = {td3.steps} rewards times td3.reward_scale = "
                f"{td3.reward_scale:g} is too large for float32"
            )
        mean = batch.reward_mean if rewards is None else float(rewards.mean()) if len(rewards) else 0.0
        return Gathered(rows, batch.decisions, batch.episodes, batch.diverged, batch.seconds, mean)

    def _iterate(self, gathered: Gathered, log: Log) -> None:
        """Learn from an iteration's roll-outs, and see how far it has got."""
        settings = self.config.td3
        self.replay.add(gathered.rows)
        self.decisions += gathered.decisions
        if gathered.decisions > 0:
            self.learner.see_reward(gathered.reward * settings.reward_scale)
        # As if the largest sum of n rewards were earned again and again.
        largest = float(np.abs(gathered.rows[:, self.layout.reward]).max(initial=0.0))
        worth = largest / (1 - settings.gamma**settings.steps)
        self.watch.rollouts(len(gathered.rows), worth, gathered.diverged, gathered.episodes)
        if self.replay.size >= max(settings.warm_up, 1):
            self._update(gathered)
        self.iteration += 1
        entry: Entry = {
            "iteration": self.iteration,
            "updates": self.learner.updates,
            "decisions": self.decisions,
            "seconds": round(self.seconds + time.monotonic() - self._began, 3),
            "reward": gathered.reward,
            "diverged": gathered.diverged,
        }
        progress = self.learner.progress()
        try:
            if progress is not None:
                entry |= flatten("learner", vars(progress)) | {"learner.learning_rate": self.learner.learning_rate()}
                self.watch.updates(progress, finite=bool(self.learner.actor.raw.isfinite().all()))
            if self.iteration % self.config.validation.every == 0:
                self._validate(entry)
        finally:
            log.write(entry)
            self.parts.show(entry)

    def _update(self, gathered: Gathered) -> None:
        settings = self.config.td3
        if settings.updates_per_second is None:
            self.due += len(gathered.rows) * settings.replays / settings.batch
        else:
            self.due += gathered.seconds * settings.updates_per_second
        while self.due >= 1.0:
            self.replay.sample(self._batch.numpy())
            self.learner.update(self._batch.to(self.device))
            self.due -= 1.0

    def _validate(self, entry: Entry) -> None:
        """Score the averaged actor, keep it if it is the best so far, and add the score to the entry."""
        parameters = self.learner.average.value.clone()
        policy = self.learner.actor.weights(parameters)
        score = self.validation.score(policy)
        self.watch.score(score.score)
        self.stale = 0 if score.score > self.highest else self.stale + 1
        self.highest = max(self.highest, score.score)
        # A few dozen episodes do not tell good policies apart: the highest of many scores is luck, and often early.
        if score.score >= self.highest - self.config.validation.indifference:
            self.best = Best(score, self.iteration, self.learner.updates, parameters)
            self.parts.keep(policy, self.best)
        entry |= flatten("validation", score.as_dict()) | {"best": self.highest}
        if self.reward is None:  # what is best by a reward of one's own need not be by the validation's figures
            self.watch.validation(score.score, self.highest, self.config.validation.full())

    def _validation_alone(self, log: Log) -> None:
        """A validation that belongs to no iteration."""
        entry: Entry = {"iteration": self.iteration, "updates": self.learner.updates}
        self._validate(entry)
        log.write(entry)
        self.parts.show(entry)

    def _course(self) -> str:
        """The settings that the course of the training follows from.

        How long it goes on may be changed, and the place of a reward of one's own, but not what it says, nor the
        threads that add up the learner's sums.
        """
        own = None if self.reward is None else self.reward.identity
        run = RunSettings(updates=1, threads=self.config.run.threads)
        return to_toml(self.config.model_copy(update={"run": run, "reward": own}))

    def state(self) -> dict[str, Any]:
        """All that makes the training go on as if it had not stopped."""
        replay = self.replay.state()
        best = self.best
        return {
            "config": self._course(),
            "iteration": self.iteration,
            "due": self.due,
            "decisions": self.decisions,
            "seconds": self.seconds + time.monotonic() - self._began,
            "highest": self.highest,
            "stale": self.stale,
            "learner": self.learner.state(),
            "behaviour": self.behaviour,
            "replay": {
                "rows": torch.from_numpy(replay["rows"]),
                "position": replay["position"],
                "generator": json.dumps(replay["generator"]),
            },
            "watch": self.watch.state(),
            "best": None if best is None else {**vars(best), "score": best.score.as_dict()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a `state`."""
        begun, given = state["config"], self._course()
        if begun != given:
            raise UserError(f"{self.directory}: was begun with {_difference(begun, given)}: see its config.toml")
        replay = state["replay"]
        state = copy.deepcopy({**state, "replay": None})  # of the file that it may lie in nothing is held
        self.iteration, self.due = state["iteration"], state["due"]
        self.decisions, self.seconds = state["decisions"], state["seconds"]
        self.highest, self.stale = state["highest"], state["stale"]
        self.learner.restore(state["learner"])
        self.behaviour = state["behaviour"].to(self.device)
        self.replay.restore({**replay, "rows": replay["rows"].numpy(), "generator": json.loads(replay["generator"])})
        self.watch.restore(state["watch"])
        if (best := state["best"]) is not None:
            parameters = best["parameters"].to(self.device)
            self.best = Best(Score(**best["score"]), best["iteration"], best["updates"], parameters)


def _difference(begun: str, given: str) -> str:
    """The first setting in which two configurations differ, and what it is in each."""
    one, other = (_settings(tomllib.loads(text)) for text in (begun, given))
    key = next((key for key in one | other if one.get(key) != other.get(key)), None)
    return "other settings" if key is None else f"{key} = {one.get(key)!r}, not {other.get(key)!r}"


def _settings(table: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The values of a table by their dotted keys."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= _settings(value, f"{path}{key}.") if isinstance(value, dict) else {f"{path}{key}": value}
    return found


__all__ = ["Divergence", "Parts", "Training"]
