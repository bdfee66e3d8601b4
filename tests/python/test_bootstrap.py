"""Intervals of means."""

import numpy as np
import pytest

from astraea.eval.bootstrap import interval


def test_equal_values_have_no_width() -> None:
    assert interval([2.0, 2.0, 2.0]) == (2.0, 2.0)


def test_one_value_has_no_interval() -> None:
    assert interval([2.0]) is None
    assert interval([]) is None


def test_two_values() -> None:
    # The mean of two draws from {0, 1} is 0, 1/2 or 1 with 1/4, 1/2, 1/4: both 2.5 % tails lie at the ends.
    assert interval([0.0, 1.0]) == (0.0, 1.0)


def test_same_values_same_interval() -> None:
    assert interval([1.0, 2.0, 4.0]) == interval([1.0, 2.0, 4.0])


def test_normal_sample() -> None:
    # For 100 normal values the interval is near mean +- 1.96 s / sqrt(n).
    values = np.random.default_rng(7).normal(10, 2, 100)
    half = 1.96 * values.std() / 10
    found = interval(values.tolist())
    assert found is not None
    assert found[0] == pytest.approx(values.mean() - half, abs=0.05)
    assert found[1] == pytest.approx(values.mean() + half, abs=0.05)
