"""The native module: simulator, environments and registries. See `crates/py`."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Cancel",
    "Environment",
    "ParallelEnvironment",
    "VectorEnvironment",
    "__version__",
    "bench",
    "build_profile",
    "check",
    "read_trace",
    "schemes",
    "simulate",
]

__version__: str
build_profile: Literal["debug", "release"]
"""How the module was compiled: a benchmark should refuse a debug build."""

@final
class Cancel:
    """A flag that stops running simulations from another thread."""

    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None:
        """Makes every `simulate` that was given this object raise KeyboardInterrupt soon."""

def bench(config_json: str, seed: int) -> tuple[float, float, int, int]:
    """Runs a configuration and returns (simulated s, wall s, packets sent, events), without building results."""

def check(config_json: str) -> None:
    """Checks a configuration without running it. ValueError with one line if it cannot be run."""

def read_trace(path: str | PathLike[str]) -> NDArray[np.int64]:
    """Delivery opportunities of a Mahimahi trace within one period, in ns; the last one ends the period.

    ValueError with one line if the file cannot be read.
    """

def schemes() -> list[dict[str, Any]]:
    """The congestion-control schemes: name, title, kind, year, reference and params.

    Each of params has name, default, min, max, unit and doc.
    """

def simulate(
    config_json: str,
    seed: int,
    controllers: Mapping[int, Any] | None = None,
    cancel: Cancel | None = None,
) -> dict[str, Any]:
    """Runs a configuration (JSON, see `crates/sim/src/config.rs`) and returns what happened.

    `controllers` maps flow indices to objects whose `decide(stats: dict) -> dict | None` is called at the end of each
    monitoring period. The interpreter lock is released meanwhile.

    The result has:

    * `flows`: a dict for each flow: start_ns, end_ns, sent_packets, retransmitted_packets, lost_packets (declared lost),
      spurious_packets (of those, arrived after all), timeouts, dropped_packets (by the network), departed_packets,
      delivered_bytes (new payload), acked_bytes, rtt_min_ns, rtt_mean_ns, completions (list of (start_ns, end_ns));
    * `links`: a dict for each link: name, offered_packets, served_packets, served_bytes (wire), dropped_packets (queue),
      lost_packets (at random), marked_packets, capacity_bytes (wire), queue_delay_mean_ns, queue_delay_p95_ns,
      queue_delay_hist (list of (from_ns, to_ns, packets)), and `series` with one value per slot: queue_delay (s, mean of
      the packets whose transmission began; NaN: none), served (wire bytes), dropped (packets), capacity (wire bytes);
    * `series`: float32 arrays of shape (flows, slots): delivered (new payload bytes that left the last queue), lost
      (packets declared lost), rtt (s, mean; NaN: no sample), cwnd (packets), pacing (bit/s; NaN: unpaced), inflight
      (packets); the last three are NaN outside the flow's life.

    Raises ValueError with one line on a bad configuration, KeyboardInterrupt when cancelled.
    """

_Bounds = tuple[NDArray[np.float32], NDArray[np.float32]]
_Arrays = tuple[
    NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]
]

@final
class Environment:
    """An environment with one decision per step; `settings` is a JSON object. ValueError on bad settings."""

    def __new__(cls, kind: str, settings: str) -> Environment: ...
    @property
    def observation_bounds(self) -> _Bounds:
        """Lowest and highest observation."""
    @property
    def action_limit(self) -> float:
        """Largest magnitude of an action; larger ones are clipped."""
    @property
    def info_names(self) -> list[str]:
        """Names of the numbers in `info`."""
    def reset(self, seed: int | None) -> NDArray[np.float32]:
        """Starts an episode; with a seed the generator starts anew from it. Returns the observation."""
    def step(self, action: float) -> tuple[NDArray[np.float32], float, bool, bool]:
        """Observation, reward, terminated, truncated. ValueError if the action is not finite."""
    def info(self) -> NDArray[np.float64]:
        """Describes the present decision."""
    def statistics(self) -> dict[str, NDArray[Any]] | None:
        """Statistics of all flows by name, or None for a single flow."""

@final
class VectorEnvironment:
    """`num_envs` environments stepped by `num_threads` threads (0: one per core), with automatic resets in the next step.

    The arrays of `reset` and `step` are observations (num_envs, observation), rewards, terminated and truncated
    (num_envs,), and info (num_envs, info); they are filled in place, with the interpreter lock released.
    """

    def __new__(cls, kind: str, settings: str, num_envs: int, num_threads: int) -> VectorEnvironment: ...
    @property
    def num_threads(self) -> int:
        """Number of threads that step the environments, the caller's included."""
    def reset(self, seeds: NDArray[np.uint64] | None, arrays: _Arrays) -> None:
        """Starts an episode in each environment."""
    def step(self, actions: NDArray[np.float32], arrays: _Arrays) -> None:
        """Steps each environment. ValueError if an action is not finite."""

@final
class ParallelEnvironment:
    """Many flows with monitoring periods that end together; `settings` is a JSON object. ValueError on bad settings."""

    def __new__(cls, settings: str) -> ParallelEnvironment: ...
    @property
    def max_agents(self) -> int:
        """Largest number of flows of an episode."""
    @property
    def observation_bounds(self) -> _Bounds:
        """Lowest and highest observation of an agent."""
    @property
    def state_bounds(self) -> _Bounds:
        """Lowest and highest global state."""
    @property
    def is_over(self) -> bool:
        """Whether the time of the episode is over."""
    @property
    def time(self) -> float:
        """Simulated time in s."""
    def reset(self, seed: int | None) -> None:
        """Starts an episode and goes on to its first decisions."""
    def step(self, actions: list[float]) -> None:
        """Carries out the actions (by flow; those of agents that are not live are ignored) and goes on."""
    def agents(self) -> tuple[list[int], list[int]]:
        """Flows whose agents are live, and those whose agents left in the last step."""
    def observation(self, flow: int) -> NDArray[np.float32]:
        """Local state of a flow, shape (40,)."""
    def reward(self) -> float:
        """The shared reward."""
    def state(self) -> NDArray[np.float32]:
        """The global state, shape (12,)."""
    def statistics(self) -> dict[str, NDArray[Any]]:
        """Statistics of all flows by name."""
