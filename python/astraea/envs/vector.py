"""Many environments stepped together by the native module, on all cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from astraea._native import Environment, VectorEnvironment
from astraea.envs.native import MOST_SEED, Array, require_reset, seed_of, spaces_of
from astraea.envs.settings import MultiFlowSettings, OrcaSettings, SelectorSettings, SingleFlowSettings, to_json

MOST_ENVS = 1_000_000
"""Environments that can be stepped together; each takes some kilobytes at least."""

LARGEST = float(np.finfo(np.float32).max)
"""Largest action that the native module takes."""

Scalar = TypeVar("Scalar", bound=np.generic)
Flags = NDArray[np.bool_]
Step = tuple[Array, NDArray[np.float64], Flags, Flags, dict[str, Any]]


class NativeVectorEnv(VectorEnv[Array, Array, Any]):
    """`num_envs` independent environments.

    An environment whose episode is over starts a new one in the next step, whose action it ignores and whose reward is
    0 (`AutoresetMode.NEXT_STEP`). Results do not depend on the number of threads. The interpreter lock is released
    while the environments are stepped.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 as in the base class
    kind: ClassVar[str]

    def __init__(self, num_envs: int, num_threads: int, copy: bool, settings: Any) -> None:
        if not 1 <= num_envs <= MOST_ENVS:
            raise ValueError(f"num_envs: is {num_envs}, expected 1 to {MOST_ENVS}")
        if num_threads < 0:
            raise ValueError(f"num_threads: is {num_threads}, expected at least 0")
        text = to_json(settings)
        one = Environment(self.kind, text)
        self._native = VectorEnvironment(self.kind, text, num_envs, num_threads)
        self._names, self._choices = one.info_names, one.choices
        self._seeded = False
        self._copy = copy
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = spaces_of(one)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._arrays = (
            np.zeros((num_envs, one.observation_bounds[0].size), np.float32),
            np.zeros(num_envs),
            np.zeros(num_envs, np.bool_),
            np.zeros(num_envs, np.bool_),
            np.zeros((num_envs, len(self._names))),
        )

    @property
    def num_threads(self) -> int:
        """Number of threads that step the environments."""
        return self._native.num_threads

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Starts an episode in each environment.

        Args:
            seed: Of the first environment, the others have the numbers that follow; or one for each. Without a seed the
                generators go on from where they are.
            options: Not used.

        Returns:
            Observations, shape (num_envs, observation), and infos.
        """
        first = None if seed is None or isinstance(seed, (Sequence, np.ndarray)) else seed_of(seed)
        super().reset(seed=first, options=options)
        if seed is None and not self._seeded:
            first = int(self.np_random.integers(2**63))
        seeds: NDArray[np.uint64] | None = None
        if first is not None:
            most = MOST_SEED - (self.num_envs - 1)
            if first > most:
                raise ValueError(f"seed: is {first}, expected {most} at most for {self.num_envs} environments")
            seeds = np.arange(self.num_envs, dtype=np.uint64) + np.uint64(first)
        elif isinstance(seed, (Sequence, np.ndarray)):
            if len(seed) != self.num_envs:
                raise ValueError(f"seed: are {len(seed)}, expected one whole number or {self.num_envs} of them")
            seeds = np.array([seed_of(each) for each in seed], np.uint64)
        self._native.reset(seeds, self._arrays)
        self._seeded = True
        return self._out(self._arrays[0]), self._info()

    def step(self, actions: Array) -> Step:
        """Carries out an action in each environment.

        Args:
            actions: Shape (num_envs, 1), or (num_envs,) of choices.

        Returns:
            Observations (num_envs, observation), rewards (num_envs,), terminated and truncated (num_envs,), and infos,
            whose arrays have a row for each environment. They are new arrays, or the same ones in every step if the
            environment was made with `copy=False`.

        Raises:
            ValueError: If the actions have another shape or are not all numbers, or nothing was reset yet.
        """
        require_reset(self._seeded)
        self._native.step(self._numbers(actions), self._arrays)
        observations, rewards, terminated, truncated, _ = self._arrays
        out = self._out
        return out(observations), out(rewards), out(terminated), out(truncated), self._info()

    def _numbers(self, actions: Any) -> Array:
        shape = self.action_space.shape
        given = np.asarray(actions)
        if given.shape != shape:
            raise ValueError(f"actions: have shape {given.shape}, expected {shape}")
        if self._choices is not None and not np.issubdtype(given.dtype, np.integer):
            raise ValueError(
                f"actions: are of type {given.dtype}, expected whole numbers from 0 to {self._choices - 1}"
            )
        if given.dtype.kind not in "biuf":
            raise ValueError(f"actions: are of type {given.dtype}, expected numbers")
        if given.dtype.itemsize > np.dtype(np.float32).itemsize:
            # What is beyond 32 bits is beyond any limit, but infinite it is not.
            given = np.where(np.isfinite(given), np.clip(given, -LARGEST, LARGEST), given)
        return np.ascontiguousarray(given, np.float32).reshape(-1)

    def _out(self, array: NDArray[Scalar]) -> NDArray[Scalar]:
        return array.copy() if self._copy else array

    def _info(self) -> dict[str, Any]:
        table = self._out(self._arrays[4])
        columns = self._columns(table)
        # As in Gymnasium, each number has an array that says which environments have it: here all.
        return columns | {f"_{name}": np.ones(self.num_envs, np.bool_) for name in columns}

    def _columns(self, table: NDArray[np.float64]) -> dict[str, Any]:
        return dict(zip(self._names, table.T, strict=True))


class SingleFlowVectorEnv(NativeVectorEnv):
    """Many of `SingleFlowEnv`.

    Args:
        num_envs: Number of environments.
        num_threads: Threads that step them; 0 for one per core.
        copy: Whether each step returns new arrays.
        settings: See `SingleFlowSettings`.
    """

    kind = "single_flow"

    def __init__(
        self, num_envs: int = 1, num_threads: int = 0, copy: bool = True, **settings: Unpack[SingleFlowSettings]
    ) -> None:
        super().__init__(num_envs, num_threads, copy, settings)


class OrcaVectorEnv(NativeVectorEnv):
    """Many of `OrcaEnv`.

    Args:
        num_envs: Number of environments.
        num_threads: Threads that step them; 0 for one per core.
        copy: Whether each step returns new arrays.
        settings: See `OrcaSettings`.
    """

    kind = "orca"

    def __init__(
        self, num_envs: int = 1, num_threads: int = 0, copy: bool = True, **settings: Unpack[OrcaSettings]
    ) -> None:
        super().__init__(num_envs, num_threads, copy, settings)


class SelectorVectorEnv(NativeVectorEnv):
    """Many of `SelectorEnv`; actions have the shape (num_envs,).

    Args:
        num_envs: Number of environments.
        num_threads: Threads that step them; 0 for one per core.
        copy: Whether each step returns new arrays.
        settings: See `SelectorSettings`.
    """

    kind = "selector"

    def __init__(
        self, num_envs: int = 1, num_threads: int = 0, copy: bool = True, **settings: Unpack[SelectorSettings]
    ) -> None:
        super().__init__(num_envs, num_threads, copy, settings)


class MultiFlowVectorEnv(NativeVectorEnv):
    """Many of `MultiFlowEnv`; the infos are flow, time and global_state, shape (num_envs, 12).

    Args:
        num_envs: Number of environments.
        num_threads: Threads that step them; 0 for one per core.
        copy: Whether each step returns new arrays.
        settings: See `MultiFlowSettings`.
    """

    kind = "multi_flow"

    def __init__(
        self, num_envs: int = 1, num_threads: int = 0, copy: bool = True, **settings: Unpack[MultiFlowSettings]
    ) -> None:
        super().__init__(num_envs, num_threads, copy, settings)

    def _columns(self, table: NDArray[np.float64]) -> dict[str, Any]:
        return {
            "flow": table[:, 0].astype(np.int64),
            "time": table[:, 1],
            "global_state": table[:, 2:].astype(np.float32),
        }
