"""The native module: simulator, environments and registries. See `crates/py`."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal, final, type_check_only

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "AuroraPolicy",
    "Batch",
    "Cancel",
    "Environment",
    "MoccPolicy",
    "OrcaPolicy",
    "ParallelEnvironment",
    "Policy",
    "RemyTable",
    "Rollout",
    "SelectorPolicy",
    "VectorEnvironment",
    "__version__",
    "bench",
    "build_profile",
    "check",
    "read_trace",
    "schemes",
    "simulate",
    "steady_states",
    "steady_step",
]

__version__: str
build_profile: Literal["debug", "release"]
"""How the module was compiled: a benchmark should refuse a debug build."""

@final
class Cancel:
    """A flag that stops running simulations and roll-outs from another thread."""

    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None:
        """Makes everything that was given this object raise KeyboardInterrupt soon."""

def bench(config_json: str, seed: int) -> tuple[float, float, int, int]:
    """Runs a configuration and returns (simulated s, wall s, packets sent, events), without building results."""

def check(config_json: str, policies: Mapping[str, Policy | RemyTable | AuroraPolicy | MoccPolicy | OrcaPolicy | SelectorPolicy] | None = None) -> None:
    """Checks a configuration without running it. ValueError with one line if it cannot be run."""

@final
class Policy:
    """A policy: a network and what one must know to use it."""

    @staticmethod
    def load(path: str | PathLike[str]) -> Policy:
        """Reads a policy file. ValueError with one line that begins with the path."""
    @staticmethod
    def from_bytes(content: bytes) -> Policy:
        """Reads the content of a policy file. ValueError with one line."""
    @staticmethod
    def from_weights(
        form: str,
        activation: str,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        alpha: float | None = None,
        period: float = 0.03,
        metadata: Mapping[str, str] | None = None,
    ) -> Policy:
        """A policy of these layers, each weights (outputs, inputs) and biases (outputs,).

        `form` is "paper", "pure" or "guided", `activation` that of the hidden units, "relu" or "split"; `alpha` the
        action scale (None: that of the form), `period` the monitoring period in s, `metadata` further texts for people.
        ValueError with one line if they make no policy.
        """
    def save(self, path: str | PathLike[str]) -> None:
        """Writes a policy file, as a whole or not at all. ValueError with one line that begins with the path."""
    def to_bytes(self) -> bytes:
        """The content of a policy file; the same policy gives the same bytes."""
    @property
    def form(self) -> str:
        """Name of the form: what the policy sees and what its action does."""
    @property
    def activation(self) -> str:
        """Name of the hidden units' activation."""
    @property
    def alpha(self) -> float:
        """Action scale."""
    @property
    def period(self) -> float:
        """Monitoring period in s."""
    @property
    def inputs(self) -> int:
        """Length of a state."""
    @property
    def definition(self) -> str:
        """What the numbers of a state are, and their order."""
    @property
    def metadata(self) -> dict[str, str]:
        """All metadata as the file has it, in the order of the names."""
    def weights(self) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Weights (outputs, inputs) and biases (outputs,), layer by layer."""
    def bench(self, batch: int, rounds: int) -> float:
        """Mean time in s of one evaluation of `batch` states over `rounds` of them, without Python: for benchmarks."""
    def forward(self, states: ArrayLike) -> NDArray[np.float32]:
        """Actions (n,) in -1..1 for states (n, inputs); the interpreter lock is released for many.

        The same bits for a state alone and among others, on every processor. ValueError for another shape.
        """

def read_trace(path: str | PathLike[str]) -> NDArray[np.int64]:
    """Delivery opportunities of a Mahimahi trace within one period, in ns; the last one ends the period.

    ValueError with one line if the file cannot be read.
    """

@type_check_only
class _Rival:
    """What the policies of other papers have in common."""

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a file, as a whole or not at all. ValueError with one line that begins with the path."""
    @property
    def metadata(self) -> dict[str, str]:
        """All metadata as the file has it, in the order of the names."""
    @property
    def activation(self) -> str:
        """Name of the hidden units' activation."""
    @property
    def inputs(self) -> int:
        """Length of an observation."""
    @property
    def definition(self) -> str:
        """What the numbers of an observation are, and their order."""
    def weights(self) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Weights (outputs, inputs) and biases (outputs,), layer by layer."""
    def forward(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Actions (n,) for observations (n, inputs). ValueError for another shape."""

@final
class AuroraPolicy(_Rival):
    """A policy of Aurora's: from the features of the last monitor intervals to a change of the rate.

    `layers` are weights (outputs, inputs) and biases (outputs,), with tanh between them and a linear output; `alpha` is
    the change of the rate by an action of 1, `action_limit` the largest magnitude of an action, `interval` the length of
    an interval in mean round-trip times of the one before; `metadata` holds further texts for people. ValueError with one
    line if they make no policy.
    """

    def __new__(
        cls,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        alpha: float = 0.025,
        action_limit: float = 1.0,
        interval: float = 0.5,
        metadata: Mapping[str, str] | None = None,
    ) -> AuroraPolicy: ...
    @staticmethod
    def shipped() -> AuroraPolicy:
        """The policy of the scheme `aurora`."""
    @staticmethod
    def load(path: str | PathLike[str]) -> AuroraPolicy:
        """Reads a `.aurora` file. ValueError with one line that begins with the path."""
    @property
    def action_limit(self) -> float:
        """Largest magnitude of an action."""

@final
class MoccPolicy(_Rival):
    """A policy of MOCC's: from the features of the last monitor intervals, and what is asked for, to a change of the rate.

    `preference` are weights (units, 3) and biases (units,) of the layer that sees how much throughput, latency and losses
    weigh. Its units, with tanh, join the intervals at the input of `layers`, which are as those of an `AuroraPolicy`, and
    so are the other arguments. ValueError with one line if they make no policy.
    """

    def __new__(
        cls,
        preference: tuple[ArrayLike, ArrayLike],
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        alpha: float = 0.025,
        action_limit: float = 1.0,
        interval: float = 0.5,
        metadata: Mapping[str, str] | None = None,
    ) -> MoccPolicy: ...
    @staticmethod
    def shipped() -> MoccPolicy:
        """The policy of the scheme `mocc`."""
    @staticmethod
    def load(path: str | PathLike[str]) -> MoccPolicy:
        """Reads a `.mocc` file. ValueError with one line that begins with the path."""
    @property
    def action_limit(self) -> float:
        """Largest magnitude of an action."""
    def preference(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights (units, 3) and biases (units,) of the layer for the preference."""
    def prefer(self, throughput: float, latency: float, loss: float) -> AuroraPolicy:
        """The policy of Aurora's that this one is while the objectives weigh so much; only the ratios count.

        ValueError unless each is from 0.001 to 1.
        """

@final
class OrcaPolicy(_Rival):
    """A policy of Orca's: from the features of the last reports to the power of four that multiplies CUBIC's window.

    `layers` are weights (outputs, inputs) and biases (outputs,), with max(0, x) between them and a tanh at the end;
    `period` is the time between reports in s, `metadata` holds further texts for people. ValueError with one line if they
    make no policy.
    """

    def __new__(
        cls,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        period: float = 0.02,
        metadata: Mapping[str, str] | None = None,
    ) -> OrcaPolicy: ...
    @property
    def period(self) -> float:
        """Time between reports in s."""
    @staticmethod
    def shipped() -> OrcaPolicy:
        """The policy of the scheme `orca`."""
    @staticmethod
    def load(path: str | PathLike[str]) -> OrcaPolicy:
        """Reads a `.orca` file. ValueError with one line that begins with the path."""

@final
class SelectorPolicy:
    """A policy of a selector's: for each scheme that it chooses from, what the next interval would be worth under it.

    `form` is "antelope" or "hacc". `models` has for each of `candidates` a number that all trees start from, and three
    arrays: features (trees, questions), thresholds (trees, questions) and answers (trees, questions + 1) of complete
    trees, level by level from the root; a feature above the threshold leads to the right. `metadata` holds further texts
    for people. ValueError with one line if they make no policy.
    """

    candidates: ClassVar[tuple[str, ...]]
    """The schemes that it chooses from; a choice is an index into it."""

    def __new__(
        cls,
        form: str,
        models: Mapping[str, tuple[float, ArrayLike, ArrayLike, ArrayLike]],
        *,
        metadata: Mapping[str, str] | None = None,
    ) -> SelectorPolicy: ...
    @staticmethod
    def shipped(form: str) -> SelectorPolicy:
        """The policy of the scheme `antelope` or `hacc`."""
    @staticmethod
    def load(path: str | PathLike[str]) -> SelectorPolicy:
        """Reads a `.antelope` or `.hacc` file. ValueError with one line that begins with the path."""
    def save(self, path: str | PathLike[str]) -> None:
        """Writes a file, as a whole or not at all. ValueError with one line that begins with the path."""
    @property
    def form(self) -> str:
        """Which selector it is for: "antelope" or "hacc"."""
    @property
    def inputs(self) -> int:
        """Length of an observation."""
    @property
    def definition(self) -> str:
        """What the numbers of an observation are, and their order."""
    @property
    def metadata(self) -> dict[str, str]:
        """All metadata as the file has it, in the order of the names."""
    def models(self) -> dict[str, tuple[float, NDArray[np.uint32], NDArray[np.float32], NDArray[np.float32]]]:
        """The models by the name of the scheme, as given to the constructor."""
    def predict(self, observations: ArrayLike) -> NDArray[np.float32]:
        """What each scheme would be worth (n, schemes) after observations (n, inputs). ValueError for another shape."""

@final
class RemyTable:
    """A rule table of RemyCC."""

    @staticmethod
    def load(path: str | PathLike[str]) -> RemyTable:
        """Reads a `.dna` file. ValueError with one line that begins with the path."""
    def __len__(self) -> int:
        """Number of rules."""

def schemes() -> list[dict[str, Any]]:
    """The congestion-control schemes: name, title, kind, year, reference and params.

    Each of params has name, default, min, max, unit and doc.
    """

def steady_states(form_name: str, flows: ArrayLike) -> NDArray[np.float32]:
    """What policies of the form called `form_name` see of flows at rest, shape (n, inputs).

    `flows` (n, 6): packets/s, queueing delay in s, share of packets lost, mean less smallest round-trip time of a
    period in s, base round-trip time in s and largest rate seen in packets/s; only "paper" uses the last two.
    All periods that a policy remembers were alike; the window is rate x round-trip time, in flight and paced.
    ValueError with one line if there is no such form or the shape is another.
    """

def steady_step(flows: ArrayLike, network: ArrayLike) -> NDArray[np.float64]:
    """The guided form's law and network together, for flows at rest (see `steady_states`): relative change of the window in
    a round trip. `network` is what the network's answers change, one for each flow; with zeros the steps are the law's.

    The law hurries on a path that keeps showing no queue, which is not counted: flows at rest have one.
    """

def simulate(
    config_json: str,
    seed: int,
    controllers: Mapping[int, Any] | None = None,
    cancel: Cancel | None = None,
    policies: Mapping[str, Policy | RemyTable | AuroraPolicy | MoccPolicy | OrcaPolicy | SelectorPolicy] | None = None,
) -> dict[str, Any]:
    """Runs a configuration (JSON, see `crates/sim/src/config.rs`) and returns what happened.

    `controllers` maps flow indices to objects whose `decide(stats: dict) -> dict | None` is called at the end of each
    monitoring period. The interpreter lock is released meanwhile. `policies` are schemes from files that a flow may name besides
    the built-in ones.

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
    def action_limit(self) -> float | None:
        """Largest magnitude of an action; larger ones are clipped. None where actions are choices."""
    @property
    def choices(self) -> int | None:
        """Actions are whole numbers from 0 to below this. None where they are not."""
    @property
    def info_names(self) -> list[str]:
        """Names of the numbers in `info`."""
    def reset(self, seed: int | None) -> NDArray[np.float32]:
        """Starts an episode; with a seed the generator starts anew from it. Returns the observation."""
    def step(self, action: float) -> tuple[NDArray[np.float32], float, bool, bool]:
        """Observation, reward, terminated, truncated. ValueError if the action is not finite, or no choice."""
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
        """Steps each environment. ValueError if an action is not finite, or no choice."""

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

@final
class Rollout:
    """Whole episodes of the multi-flow environment with a policy that is evaluated natively, on `threads` threads.

    `config_json` has the settings of the environment and its reward (see the guide to environments); the form
    ("paper", "pure" or "guided") and alpha say how the policy is embedded. 0 threads: one per core. Episodes depend on
    `seed`, the iteration and their number alone. ValueError with one line on bad settings, which `alpha` is none of, and
    on episodes that would not fit into memory.
    """

    def __new__(cls, config_json: str, form: str, alpha: float, threads: int = 0, seed: int = 0) -> Rollout: ...
    @property
    def threads(self) -> int:
        """Number of threads."""
    @property
    def global_size(self) -> int:
        """Length of a global state: 12, or 13 in a domain with neighbours, whose number comes last."""
    @property
    def local_size(self) -> int:
        """Length of a local state."""
    @property
    def largest_episode(self) -> tuple[float, float]:
        """About how large an episode can be: its decisions, and the flows that are there at one of them, short ones aside."""
    def run(
        self,
        policy: Policy,
        iteration: int,
        episodes: int,
        noise: float,
        *,
        statistics: bool = False,
        cancel: Cancel | None = None,
    ) -> Batch:
        """Runs the episodes of an iteration, with the interpreter lock released.

        The exploration noise of a flow is autoregressive with coefficient 0.7; its standard deviation is `noise` times
        U(0.2, 1.5), drawn for each episode. With `statistics`, those of all flows are kept for each decision.
        ValueError with one line on a policy of another form, KeyboardInterrupt when cancelled.
        """
    def score(
        self, policy: Policy, seeds: Sequence[int], *, cancel: Cancel | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Runs an episode for each seed, without noise; what was measured, each of shape (seeds,). See `run`.

        * `jain`: mean Jain index of the throughputs over the 500 ms slots that at least two flows share for their whole
          length, 1 without any; `jain_own`: the same without neighbours; `shared`: number of those slots;
        * `utilization`: delivered bytes over what the link could carry while any flow was there;
        * `rtt_inflation`: mean round-trip time of the flows that ask for actions, in units of the base one;
        * `queue_delay_ms`: mean wait at the bottleneck;
        * `loss`: share of the packets that the queue dropped, so without random loss;
        * `settled`: share of arrivals, departures and changes of the path (those followed by 3 s without another) after
          which all flows come within 10 % of equal shares (500 ms means) and stay there, NaN if there are none to judge
          or there are neighbours;
        * `neighbour_ratio`: mean throughput of a flow that asks over that of a neighbour, NaN without;
        * `reward`: mean of the built-in reward; `decisions`; `seconds` simulated; `diverged`: 0 or 1.
        """

@final
class Batch:
    """The decisions of the episodes of an iteration, in the order of the episodes and of time."""

    @property
    def decisions(self) -> int:
        """Number of decisions."""
    @property
    def episodes(self) -> int:
        """Number of episodes."""
    @property
    def diverged(self) -> int:
        """Episodes that were ended because for 5 s a window stood at its cap, or a flow lost half of what it sent."""
    @property
    def reward_mean(self) -> float:
        """Mean of the built-in reward over the decisions."""
    @property
    def seconds(self) -> float:
        """Simulated time in s."""
    def rewards(self) -> NDArray[np.float32]:
        """Built-in reward at the moment of each decision, shape (decisions,)."""
    def statistics(self) -> dict[str, NDArray[Any]]:
        """Statistics at the moment of each decision, from which rewards of one's own can be made.

        Of shape (decisions, flows), active flows first, NaN where there is none: `throughput`, `mean_throughput`,
        `deviation`, `loss`, `pacing_rate` (bit/s), `latency`, `base_rtt` (s), `cwnd`, `in_flight` (bytes), and bool:
        `active`, `neighbour` (has a scheme of its own). Of shape (decisions,): `time` (s), `capacity` (payload bit/s),
        `buffer` (payload bits), `rtt` (mean base round-trip time, s).
        """
    def transitions(
        self, gamma: float, n: int, rewards: ArrayLike | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Transitions of up to n steps: g, s, a, r, g2, s2, discount.

        A step goes from one decision of a flow to its next, one period later, and its reward is the one at the latter
        moment. Where a flow leaves, its episode ends or its policy is not asked, transitions have fewer steps; where an
        episode diverged, the discount is 0. `rewards`, numbers of shape (decisions,) in the order of `statistics`, replace
        the built-in ones. ValueError with one line for another shape.
        """
