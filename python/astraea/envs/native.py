"""What the Gymnasium environments share: spaces and arrays around a native environment."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from numpy.typing import NDArray

from astraea._native import Environment
from astraea.envs.settings import to_json

Array = NDArray[np.float32]


def spaces_of(native: Environment) -> tuple[Space[Array], Space[Array]]:
    """Observation and action space of a native environment."""
    observations = box(*native.observation_bounds)
    if native.choices is not None:
        # Its type says that all actions are arrays.
        return observations, cast(Space[Array], Discrete(native.choices))
    limit = native.action_limit
    assert limit is not None, "what is no choice has a limit"
    return observations, box(np.array([-limit], np.float32), np.array([limit], np.float32))


def box(low: Array, high: Array) -> Space[Array]:
    """A box of 32-bit numbers (its type does not know of what)."""
    return cast(Space[Array], Box(low, high, dtype=np.float32))


def number_of(action: Any) -> float:
    """The number in an action of shape (1,)."""
    array = np.asarray(action)
    if array.shape != (1,):
        raise ValueError(f"action: has shape {array.shape}, expected (1,)")
    if np.iscomplexobj(array):
        raise ValueError(f"action: is {array[0]}, expected a number without an imaginary part")
    return float(array[0])


def choice_of(action: Any, choices: int) -> float:
    """The number of a choice."""
    plain = action.item() if isinstance(action, np.generic | np.ndarray) and action.shape == () else action
    if type(plain) is not int or not 0 <= plain < choices:
        said = " ".join(repr(action).split())
        raise ValueError(f"action: is {said}, expected a whole number from 0 to {choices - 1}")
    return float(plain)


MOST_SEED = 2**64 - 1
"""Largest seed of an environment."""


def seed_of(given: Any) -> int:
    """A seed as the native module takes it."""
    if not isinstance(given, (int, np.integer)) or not 0 <= given <= MOST_SEED:
        raise ValueError(f"seed: is {given!r}, expected a whole number from 0 to {MOST_SEED}")
    return int(given)


def require_reset(begun: bool) -> None:
    """Raise `ValueError` if no episode has begun."""
    if not begun:
        raise ValueError("step: no episode has begun; call reset() first")


class NativeEnv(gymnasium.Env[Array, Array]):
    """An environment whose work is done by the native module."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 as in the base class
    kind: ClassVar[str]

    def __init__(self, settings: Any) -> None:
        self._native = Environment(self.kind, to_json(settings))
        self._names = self._native.info_names
        self._seeded = False
        self.observation_space, self.action_space = spaces_of(self._native)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: The generator starts anew from it; without one it goes on from where it is.
            options: Not used.

        Returns:
            The first observation and its info.
        """
        seed = None if seed is None else seed_of(seed)
        super().reset(seed=seed, options=options)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._seeded = True
        return self._native.reset(seed), self._info()

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Carries out an action of shape (1,), or a choice, and goes on to the next decision.

        Returns:
            Observation, reward, terminated (never), truncated (the episode is over), info.

        Raises:
            ValueError: If the action has another shape, is not a number or no choice, or nothing was reset yet.
        """
        require_reset(self._seeded)
        choices = self._native.choices
        number = number_of(action) if choices is None else choice_of(action, choices)
        observation, reward, terminated, truncated = self._native.step(number)
        return observation, reward, terminated, truncated, self._info()

    def _info(self) -> dict[str, Any]:
        return dict(zip(self._names, self._native.info().tolist(), strict=True))
