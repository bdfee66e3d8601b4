"""The PettingZoo form of many flows on one bottleneck: one agent per flow, which all act once a monitoring period."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
from gymnasium.spaces import Space
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import parallel_to_aec

from astraea._native import ParallelEnvironment
from astraea.envs.native import Array, box, number_of, seed_of
from astraea.envs.settings import MultiFlowSettings, to_json

MOST_EPISODES = 1000
"""Episodes in which nobody could act that are passed over."""

Step = tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]


class ParallelMultiFlowEnv(ParallelEnv[str, Array, Array]):  # type: ignore[misc]  # PettingZoo has no types
    """Many flows that share one policy (Astraea, EuroSys'24, §3), with monitoring periods that end together.

    The agent of a flow appears when its slow start is over, acts once a period, and terminates when its flow leaves;
    the others are truncated when the time of the episode is over. When no agent is live, time passes until one is.

    Action and observation of an agent are those of `MultiFlowEnv`; all agents get the same reward. `state()` is the
    global state for a central critic, float32, shape (12,).

    Args:
        settings: See `MultiFlowSettings`. There are as many possible agents as an episode may have flows.

    Raises:
        ValueError: Names the setting that is unknown or out of range.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "multi_flow_v0",
        "render_modes": [],
        "is_parallelizable": True,
    }
    render_mode = None

    def __init__(self, **settings: Unpack[MultiFlowSettings]) -> None:
        self._native = ParallelEnvironment(to_json(settings))
        self._seeded = False
        self.possible_agents = [f"flow_{i}" for i in range(self._native.max_agents)]
        self.agents: list[str] = []
        bounds, limit = self._native.observation_bounds, np.ones(1, np.float32)
        # Each agent's spaces are its own, so that they can be seeded apart.
        self._observation_spaces = {a: box(*bounds) for a in self.possible_agents}
        self._action_spaces = {a: box(-limit, limit) for a in self.possible_agents}
        self.state_space = box(*self._native.state_bounds)

    def observation_space(self, agent: str) -> Space[Array]:
        """Space of an agent's observations, shape (40,)."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Array]:
        """Space of an agent's actions, shape (1,)."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Starts an episode and goes on to its first decisions.

        Args:
            seed: The generator starts anew from it; without one it goes on from where it is.
            options: Not used.

        Returns:
            Observations and infos of the live agents, of whom there is one at least: an episode that is over before
            anybody could act is passed over. (Where nearly all are so short, there may be none.)

        Raises:
            ValueError: If the seed is none.
        """
        del options
        if seed is not None:
            seed = seed_of(seed)
        elif not self._seeded:
            seed = int(seeding.np_random()[0].integers(2**63))
        self._seeded = True
        self._native.reset(seed)
        for _ in range(MOST_EPISODES):
            if not self._native.is_over:
                break
            self._native.reset(None)
        live, _ = self._native.agents()
        self.agents = [] if self._native.is_over else self._names(live)
        return self._observations(self.agents), self._infos(self.agents)

    def step(self, actions: dict[str, Array]) -> Step:
        """Carries out the actions of all live agents and goes on to the next decisions.

        Returns:
            Observations, rewards, terminations, truncations and infos (time in s) of the agents that acted and of those
            that have appeared, unless the episode is over: who could not act any more never was an agent.

        Raises:
            ValueError: If a live agent has no action, or something else has one.
        """
        if set(actions) != set(self.agents):
            raise ValueError(f"actions: are those of {sorted(map(str, actions))}, expected {self.agents}")
        if not self.agents:
            return {}, {}, {}, {}, {}
        self._native.step([number_of(actions[agent]) if agent in actions else 0.0 for agent in self.possible_agents])
        indices, left = self._native.agents()
        over = self._native.is_over
        live = [agent for agent in self._names(indices) if not over or agent in actions]
        agents = live + self._names(left)
        reward = self._native.reward()
        self.agents = [] if over else live
        return (
            self._observations(agents),
            dict.fromkeys(agents, reward),
            {agent: agent not in live for agent in agents},
            {agent: over and agent in live for agent in agents},
            self._infos(agents),
        )

    def state(self) -> Array:
        """The global state (table 2 of the paper), float32, shape (12,)."""
        return self._native.state()

    def statistics(self) -> dict[str, NDArray[Any]]:
        """See `MultiFlowEnv.statistics`."""
        return self._native.statistics()

    def render(self) -> None:
        """There is nothing to see."""

    def close(self) -> None:
        """There is nothing to close."""

    def _names(self, flows: list[int]) -> list[str]:
        return [self.possible_agents[flow] for flow in flows]

    def _observations(self, agents: list[str]) -> dict[str, Array]:
        return {agent: self._native.observation(self.possible_agents.index(agent)) for agent in agents}

    def _infos(self, agents: list[str]) -> dict[str, dict[str, Any]]:
        return {agent: {"time": self._native.time} for agent in agents}


def parallel_env(**settings: Unpack[MultiFlowSettings]) -> ParallelMultiFlowEnv:
    """The environment in PettingZoo's parallel form."""
    return ParallelMultiFlowEnv(**settings)


def env(**settings: Unpack[MultiFlowSettings]) -> AECEnv[str, Array, Array]:
    """The environment in PettingZoo's turn-based form: live agents act one after the other."""
    return parallel_to_aec(parallel_env(**settings))
