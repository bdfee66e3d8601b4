"""A researcher's own reward: one function over arrays, named in the configuration."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astraea.errors import UserError, nearest, said

ACTIVE = "active"
"""Name of the statistic that says which flows take part."""


class Reward:
    """`function(flows, active, link) -> rewards` from a file, checked whenever it is called.

    For N decisions and F flows, `flows` maps names of statistics to arrays of shape (N, F) with NaN where a flow is not
    active, `active` is boolean of the same shape, and `link` maps names to arrays of shape (N,). It returns the reward
    of each decision, shape (N,). The file is read once: what becomes of it later is nothing to a training under way.
    """

    def __init__(self, reference: str) -> None:
        path, _, name = reference.rpartition(":")
        if not path or not name.isidentifier():
            raise UserError(f'reward: expected "file.py:function", not "{reference}"')
        self.path = Path(path)
        self.name = f"{self.path.name}:{name}"
        content = self._read()
        self.identity = f"{self.name} {hashlib.sha256(content).hexdigest()}"
        """What a training knows it again by: file, function and a hash of what the file says."""
        self._function = self._load(content, name)

    def _read(self) -> bytes:
        if not self.path.is_file():
            raise UserError(f"reward: {self.path}: {'is no file' if self.path.exists() else 'no such file'}")
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise UserError(f"reward: {self.path}: {error.strerror}") from None

    def _load(self, content: bytes, name: str) -> Callable[..., Any]:
        # A name of its own, so that no installed package can be meant; registered, as dataclasses and pickle want it.
        module = ModuleType(f"astraea_reward_{self.path.stem}")
        module.__file__ = str(self.path)
        sys.modules[module.__name__] = module
        try:
            with redirect_stdout(sys.stderr):  # what a reward prints is no result
                exec(compile(content, self.path, "exec", dont_inherit=True), vars(module))
        except (Exception, SystemExit) as error:
            raise UserError(f"reward: {self.path.name}: {self._describe(error)}") from None
        function: Callable[..., Any] | None = getattr(module, name, None)
        if not callable(function):
            functions = [key for key, value in vars(module).items() if callable(value)]
            raise UserError(f'reward: {self.path.name} has no function "{name}"{nearest(name, functions)}')
        return function

    def __call__(self, statistics: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Rewards, shape (N,), from the statistics of a batch. `UserError` with one line if the function is wrong."""
        active = statistics[ACTIVE]
        flows = {key: value for key, value in statistics.items() if value.ndim == 2 and key != ACTIVE}
        link = {key: value for key, value in statistics.items() if value.ndim == 1}
        try:
            with redirect_stdout(sys.stderr):
                given = np.asarray(self._function(flows, active, link))
            if np.iscomplexobj(given):
                raise TypeError("rewards are real numbers, not complex ones")
            rewards = given.astype(np.float64)
        except (Exception, SystemExit) as error:
            raise UserError(f"reward: {self.name}: {self._describe(error)}") from None
        if rewards.shape != (len(active),):
            raise UserError(
                f"reward: {self.name}: returned an array of shape {rewards.shape}, expected ({len(active)},): "
                "one reward for each decision"
            )
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(rewards.astype(np.float32))  # as which they are learnt from
        if wrong.any():
            first = int(np.argmax(wrong))
            raise UserError(
                f"reward: {self.name}: {int(wrong.sum())} of {len(rewards)} rewards are not finite numbers, "
                f"first that of decision {first}: {rewards[first]}"
            )
        return rewards

    def _describe(self, error: BaseException) -> str:
        """What went wrong, and the line of the file where it did."""
        reason = f"{type(error).__name__}: {said(error)}"
        if isinstance(error, SyntaxError) and error.lineno:
            return f"line {error.lineno}: {error.msg}"
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(self.path)
        ]
        return f"line {lines[-1]}: {reason}" if lines else reason
