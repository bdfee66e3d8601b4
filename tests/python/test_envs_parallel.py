"""The PettingZoo environment against the upstream conformance tests, and what agents see of flows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from pettingzoo.test.state_test import state_test

from astraea.envs import multi_flow_v0

# How many flows come, and whether one leaves before its slow start is over, is drawn in each episode.
not_all_come = pytest.mark.filterwarnings("ignore:No agents present but not all possible_agents")


@not_all_come
def test_parallel_api() -> None:
    parallel_api_test(multi_flow_v0.parallel_env(), num_cycles=1100)


def test_parallel_api_when_all_flows_come() -> None:
    parallel_api_test(multi_flow_v0.parallel_env(flows=3, arrival_gap=0.5, lifetime=None, duration=10), num_cycles=500)


def test_parallel_seed() -> None:
    parallel_seed_test(multi_flow_v0.parallel_env, num_cycles=500)


def test_state() -> None:
    state_test(multi_flow_v0.env(), multi_flow_v0.parallel_env())


@not_all_come
def test_turn_based_api() -> None:
    with warnings.catch_warnings():
        # It warns of observations that are not images.
        warnings.filterwarnings("ignore", message="Observation is not NumPy array")
        api_test(multi_flow_v0.env(duration=3), num_cycles=300)


def test_turn_based_episodes_end_wherever_flows_come() -> None:
    """A flow that first asks when the episode is over never was an agent."""
    ends = set()
    for seed in range(40):
        env = multi_flow_v0.env(flows=30, arrival_gap=0.1, lifetime=None, duration=3.0)
        env.reset(seed=seed)
        for _ in env.agent_iter():
            terminated, truncated = env.last()[2:4]
            env.step(None if terminated or truncated else np.zeros(1, np.float32))
        assert env.agents == []
        parallel = multi_flow_v0.parallel_env(flows=30, arrival_gap=0.1, lifetime=None, duration=3.0)
        parallel.reset(seed=seed)
        acted: set[str] = set()
        while parallel.agents:
            acted |= set(parallel.agents)
            step = parallel.step({agent: np.zeros(1, np.float32) for agent in parallel.agents})
            truncated_now = {agent for agent, over in step[3].items() if over}
        assert truncated_now <= acted
        ends.add(len(parallel._native.agents()[0]) - len(truncated_now))
    assert ends > {0}, "in some episodes a flow comes too late"


def test_agents_come_and_go() -> None:
    env = multi_flow_v0.parallel_env(flows=5, arrival_gap=1.0, lifetime=5.0)
    came, left, waited = set(), set(), 0
    for seed in range(5):
        _, infos = env.reset(seed=seed)
        assert len(env.possible_agents) == 5
        time = infos[env.agents[0]]["time"]
        agents = set(env.agents)
        while env.agents:
            actions = {agent: np.zeros(1, np.float32) for agent in env.agents}
            observations, rewards, terminated, truncated, infos = env.step(actions)
            assert len(set(rewards.values())) == 1, "all agents share one reward"
            new = set(observations) - agents
            gone = {agent for agent in observations if terminated[agent] or truncated[agent]}
            assert set(env.agents) == (agents | new) - gone
            came |= new
            left |= {agent for agent in gone if terminated[agent]}
            before, time = time, next(iter(infos.values()))["time"]
            periods = (time - before) / 0.03
            assert periods == pytest.approx(round(periods)), "periods end together"
            waited += round(periods) > 1
            agents = set(env.agents)
        assert time >= 30 or len(left) == 5
    assert came
    assert left
    assert waited


def test_global_state_counts_flows() -> None:
    env = multi_flow_v0.parallel_env(flows=3, arrival_gap=0.0, lifetime=None, bandwidth=100e6, rtt=0.04, buffer=1)
    env.reset(seed=1)
    for _ in range(200):
        env.step({agent: np.zeros(1, np.float32) for agent in env.agents})
    state = env.state()
    assert state[8] == np.float32(0.3)
    assert env.statistics()["active"].tolist() == [True] * 3
    # d0 = 40 ms on a logarithmic scale of five decades from 0.1 ms.
    assert state[9] == pytest.approx(np.log10(0.04 / 1e-4) / 5, abs=1e-6)
    assert 0.9 < state[0] < 1.05, "three flows that no longer change their windows fill the link"


def test_bad_actions_are_one_line() -> None:
    env = multi_flow_v0.parallel_env(flows=2, arrival_gap=0.0)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"actions: are those of \['nobody'\], expected \['flow_"):
        env.step({"nobody": np.zeros(1, np.float32)})
    with pytest.raises(ValueError, match="action: is NaN, expected a number"):
        env.step({agent: np.array([np.nan], np.float32) for agent in env.agents})


def test_an_episode_too_short_for_anybody_has_no_agents() -> None:
    env = multi_flow_v0.parallel_env(duration=0.001)
    observations, infos = env.reset(seed=1)
    assert (observations, infos, env.agents) == ({}, {}, [])
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_an_episode_in_which_nobody_could_act_is_passed_over() -> None:
    # Of these seeds two thirds begin with an episode that is over before its only flow has heard of a packet.
    settings = {"flows": 1, "duration": 5.0, "lifetime": 0.5}
    for seed in range(60):
        multi_flow_v0.env(**settings).reset(seed=seed)
    first, again = (multi_flow_v0.parallel_env(**settings) for _ in range(2))
    for seed in range(60):
        one, other = first.reset(seed=seed)[0], again.reset(seed=seed)[0]
        assert list(one) == list(other) == first.agents != []
        assert all((one[agent] == other[agent]).all() for agent in one)
