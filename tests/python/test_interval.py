"""Intervals of means."""

import numpy as np
import pytest

from astraea.eval.interval import interval


def test_equal_values_have_no_width() -> None:
    assert interval([2.0, 2.0, 2.0]) == (2.0, 2.0)
    assert interval([0.1] * 3) == pytest.approx((0.1, 0.1), abs=1e-15)


def test_fewer_than_three_values_have_no_interval() -> None:
    assert interval() is None
    assert interval([]) is None
    assert interval([1.0, 2.0]) is None
    assert interval([1.0, 2.0, 3.0], [1.0, 2.0]) is None


def test_three_values() -> None:
    # Student's t of two degrees of freedom is 4.303; the standard error is 1 / sqrt(3).
    assert interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-4)


def test_what_lies_between_points_is_no_uncertainty() -> None:
    apart = interval([1.0, 2.0, 3.0], [101.0, 102.0, 103.0])
    # The standard error of each half, 1 / sqrt(3), counts half; together they have four degrees of freedom.
    half = 2.7764 * (2 / 3) ** 0.5 / 2
    assert apart == pytest.approx((52 - half, 52 + half), abs=1e-4)
    assert interval([1.0] * 3, [2.0] * 5, []) == (1.625, 1.625)


@pytest.mark.parametrize(
    ("sizes", "spreads", "share"),
    [
        ((3,), (1,), 0.95),
        ((10,), (1,), 0.95),
        # Welch's degrees of freedom are an approximation, a little wide for small samples: .965 of 400 000 draws.
        ((3, 3), (1, 1), 0.965),
        ((3, 10), (1, 5), 0.95),
    ],
)
def test_it_holds_the_mean_as_often_as_it_says(
    sizes: tuple[int, ...], spreads: tuple[float, ...], share: float
) -> None:
    rng = np.random.default_rng(7)
    centre = np.average(np.arange(len(sizes)), weights=sizes)
    held = 0
    for _ in range(2000):
        found = interval(*(rng.normal(k, spread, n) for k, (n, spread) in enumerate(zip(sizes, spreads, strict=True))))
        assert found is not None
        held += found[0] <= centre <= found[1]
    # Within four standard deviations of what 2000 draws hold.
    assert held / 2000 == pytest.approx(share, abs=4 * (share * (1 - share) / 2000) ** 0.5)
