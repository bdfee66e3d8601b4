"""Max-min fair shares, worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraea.eval.fairshare import allocate, crossings, fair_shares


def shares(capacity: list[float], paths: list[list[int]]) -> list[float]:
    return allocate(np.array(capacity), crossings(paths, len(capacity)))[0].tolist()


def full(capacity: list[float], paths: list[list[int]]) -> list[bool]:
    return allocate(np.array(capacity), crossings(paths, len(capacity)))[1].tolist()


def test_single_link() -> None:
    assert shares([100], [[0], [0], [0], [0]]) == [25, 25, 25, 25]
    assert full([100], [[0]]) == [True]


def test_parking_lot() -> None:
    # One flow over three links, one flow on each: the long flow and its neighbour halve the tightest link (20 -> 10
    # each); the neighbours on the others take what is left, 30 - 10 and 100 - 10.
    paths = [[0, 1, 2], [0], [1], [2]]
    assert shares([20, 30, 100], paths) == [10, 10, 20, 90]
    assert full([20, 30, 100], paths) == [True, True, True]


@pytest.mark.parametrize("count", [2, 4, 6, 8, 10, 16])
def test_two_bottlenecks_of_the_paper(count: int) -> None:
    # Link 1 has 100, link 2 has 20. Up to eight flows in set 1: set 2 is held to 20 / 2 by link 2, set 1 shares 80.
    # More: all count + 2 flows share link 1.
    paths = [[0]] * count + [[0, 1]] * 2
    first, second = (80 / count, 10) if count <= 8 else (100 / (count + 2), 100 / (count + 2))
    assert shares([100, 20], paths) == pytest.approx([first] * count + [second] * 2)
    assert full([100, 20], paths) == [True, count <= 8]


def test_link_that_nobody_crosses() -> None:
    assert shares([100, 20], [[0], [0]]) == [50, 50]
    assert full([100, 20], [[0], [0]]) == [True, False]


def test_piecewise_in_time() -> None:
    # Flow 0 on both links, flow 1 on the first. Flow 1 comes in slot 1, link 1 shrinks in 2, flow 0 goes in 3.
    capacity = np.array([[60.0, 60, 60, 60], [50, 50, 10, 10]])
    active = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], dtype=bool)
    got, links = fair_shares(capacity, crossings([[0, 1], [0]], 2), active)
    assert got.tolist() == [[50, 30, 10, 0], [0, 30, 50, 60]]
    assert links.tolist() == [[False, True, True, True], [True, False, True, False]]


def test_one_link_in_time() -> None:
    capacity = np.array([[60.0, 60, 30, 30]])
    active = np.array([[1, 1, 1, 0], [0, 1, 1, 0]], dtype=bool)
    got, links = fair_shares(capacity, crossings([[0], [0]], 1), active)
    assert got.tolist() == [[60, 30, 15, 0], [0, 30, 15, 0]]
    assert links.tolist() == [[True, True, True, False]]


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[float], list[list[int]]]:
    links = draw(st.integers(1, 5))
    capacity = draw(st.lists(st.floats(1, 1000), min_size=links, max_size=links))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True)
    return capacity, draw(st.lists(path, min_size=1, max_size=8))


@given(networks())
def test_definition_of_max_min(network: tuple[list[float], list[list[int]]]) -> None:
    capacity, paths = network
    got = shares(capacity, paths)
    load = [sum(share for share, path in zip(got, paths, strict=True) if link in path) for link in range(len(capacity))]
    assert all(used <= limit * (1 + 1e-9) for used, limit in zip(load, capacity, strict=True))
    # Every flow has a full link on which nobody has more (Bertsekas and Gallager, section 6.5.2).
    for share, path in zip(got, paths, strict=True):
        assert any(
            load[link] >= capacity[link] * (1 - 1e-9)
            and all(other <= share * (1 + 1e-9) for other, way in zip(got, paths, strict=True) if link in way)
            for link in path
        )
