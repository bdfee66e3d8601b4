"""A training over the native roll-outs, from a configuration and a directory."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from astraea import __version__, _native
from astraea.errors import UserError, check_text, nearest
from astraea.files import write_whole
from astraea.learn import checkpoint
from astraea.learn import config as configuration
from astraea.learn.config import Config, PolicySettings
from astraea.learn.log import Entry
from astraea.learn.loop import Best, Parts, Training
from astraea.learn.rollouts import Weights

POLICY, ASIDE = "policy.safetensors", "policy.before-resume-{}.safetensors"

PERIOD = 0.03
"""Monitoring period in s unless the environment's settings say otherwise."""


def training(
    config: Config, directory: Path, *, device: str, resume: bool, show: Callable[[Entry], None], source: str
) -> Training:
    """A training that is ready to run; `UserError` with one line if it cannot be had.

    `source` is the configuration's file, for messages.
    """
    _check_directory(directory, resume=resume)
    rollouts = _rollouts(config, config.environment, f"{source}: environment")
    grid = _rollouts(config, config.validation_environment(), f"{source}: validation.environment")
    parts = Parts(rollouts, grid, _keeper(config, directory, rollouts, device), show)
    try:
        made = Training(config, directory, parts, device)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{directory}: cannot be made: {error.strerror}") from None
    with ExitStack() as lock:
        lock.callback(os.close, _lock(directory))
        _check_directory(directory, resume=resume)  # again: until now another training may have been at work
        if resume:
            _go_back(made, directory)
        write_whole(directory / configuration.RESOLVED, configuration.to_toml(config).encode())
        made.lock = lock.pop_all()
    return made


def _check_directory(directory: Path, *, resume: bool) -> None:
    """A training may begin where none has got as far as a checkpoint, and go on where one has."""
    check_text("--out", str(directory))
    begun = checkpoint.path(directory).exists()
    if begun and not resume:
        raise UserError(f"{directory}: holds a training already: --resume goes on with it, or name another --out")
    if resume and not begun:
        raise UserError(f"{directory}: there is no checkpoint to resume from: without --resume it begins")
    if not begun and (directory / POLICY).exists():
        raise UserError(f"{directory}: holds a {POLICY}, and no checkpoint to go on from: name another --out")


def _lock(directory: Path) -> int:
    """Keeps other trainings out of a directory for as long as the descriptor is open."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UserError(f"{directory}: cannot be read: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise UserError(f"{directory}: another training is at work here") from None
    return descriptor


def _go_back(made: Training, directory: Path) -> None:
    """Resume, and lose nothing.

    A session that was stopped looks once more whether its last policy is the best; the run that goes on does not, as if
    it had never been stopped. So what that session found is put aside.
    """
    policy, copy = directory / POLICY, directory / ".policy.before-resume.new"
    found = policy.read_bytes() if policy.exists() else None
    if found is not None:
        write_whole(copy, found)
    try:
        made.resume()
        if found is not None and policy.read_bytes() != found:
            copy.rename(directory / ASIDE.format(made.iteration))
    finally:
        copy.unlink(missing_ok=True)


class NativeRollouts:
    """The native roll-outs, for policies as the learner has them."""

    def __init__(self, settings: PolicySettings, environment: dict[str, Any], threads: int, seed: int) -> None:
        self._settings = settings
        self._rollout = _native.Rollout(json.dumps(environment), settings.form, settings.alpha, threads, seed)

    @property
    def global_size(self) -> int:
        """Values of the global state."""
        return self._rollout.global_size

    @property
    def largest_episode(self) -> tuple[float, float]:
        """See `rollouts.Rollouts`."""
        return self._rollout.largest_episode

    def policy(
        self, weights: Weights, metadata: dict[str, str] | None = None, period: float = PERIOD
    ) -> _native.Policy:
        """The policy of these weights."""
        activation, layers = weights
        settings = self._settings
        return _native.Policy.from_weights(settings.form, activation, layers, settings.alpha, period, metadata)

    def run(
        self,
        policy: Weights,
        iteration: int,
        episodes: int,
        noise: float,
        *,
        statistics: bool = False,
        cancel: _native.Cancel | None = None,
    ) -> _native.Batch:
        """See `rollouts.Rollouts`."""
        of = self.policy(policy)
        return self._rollout.run(of, iteration, episodes, noise, statistics=statistics, cancel=cancel)

    def score(self, policy: Weights, seeds: Sequence[int]) -> dict[str, NDArray[np.float64]]:
        """See `rollouts.Rollouts`."""
        return self._rollout.score(self.policy(policy), seeds)


def _rollouts(config: Config, environment: dict[str, Any], where: str) -> NativeRollouts:
    try:
        return NativeRollouts(config.policy, environment, config.rollouts.threads, config.seed)
    except (ValueError, TypeError) as error:
        raise UserError(f"{where}.{_without_serde(str(error))}") from None


def _without_serde(problem: str) -> str:
    """What is wrong with the environment's settings; of an unknown key, which one may be meant."""
    unknown, _, listed = problem.partition(", expected one of ")
    if "unknown field `" not in unknown:
        return problem
    keys = [key.strip(" `") for key in listed.split(",")]
    known = [key for key in keys if key != "alpha"]  # which stands in [policy]
    word = unknown.split("`")[1]
    return unknown + (nearest(word, known) or f", expected one of {', '.join(known)}")


def _keeper(config: Config, directory: Path, rollouts: NativeRollouts, device: str) -> Callable[[Weights, Best], None]:
    """Keeps policies with what one must know of them."""
    about = {
        "name": config.name,
        "seed": str(config.seed),
        "domain": json.dumps(config.environment, sort_keys=True),
        "recipe": configuration.to_toml(config),
        "astraea_version": __version__,
        "torch": str(torch.__version__),
        "device": device,
    }
    period = config.environment.get("period", PERIOD)

    def keep(policy: Weights, best: Best) -> None:
        metrics = json.dumps({"validation": best.score.as_dict()}, sort_keys=True)
        found = {"metrics": metrics, "iteration": str(best.iteration), "updates": str(best.updates)}
        try:
            rollouts.policy(policy, about | found, period).save(directory / POLICY)
        except ValueError as error:
            raise UserError(str(error)) from None

    return keep
