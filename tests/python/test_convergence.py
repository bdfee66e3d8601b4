"""Convergence and stability of hand-made series; the comments work the answers out."""

import numpy as np
import pytest
from handmade import flow, rates, trial

from astraea.eval.convergence import events, response
from astraea.eval.metrics import compute

S = 10**9


def test_events() -> None:
    # Arrivals at 0, 2 and 2.03 s (one event: less than 100 ms apart), a departure at 4 s, the last at 5 s: nobody left.
    flows = [flow(0, 4), flow(2, 5), flow(2.03, 5)]
    found = events(trial(flows, [rates((6, 1))] * 3, [rates((6, 100))]))
    assert [(event.time_ns, event.until_ns) for event in found] == [
        (0, 2 * S),
        (2_030_000_000, 4 * S),
        (4 * S, 5 * S),
    ]
    assert [event.arrived for event in found] == [(0,), (1, 2), ()]
    assert [event.active for event in found] == [(0,), (0, 1, 2), (1, 2)]


def test_the_end_of_the_trial_is_no_event() -> None:
    found = events(trial([flow(0, 6), flow(0, 6)], [rates((6, 1))] * 2, [rates((6, 100))]))
    assert len(found) == 1


A = rates((2, 100), (0.1, 90), (0.1, 70), (0.1, 54), (0.3, 50), *[(0.1, 48), (0.1, 52)] * 12)
B = rates((2, 0), (0.1, 10), (0.1, 30), (0.1, 46), (0.3, 50), *[(0.1, 52), (0.1, 48)] * 12)
"""A alone on 100 Mbit/s for 2 s, then B comes; from 2.6 to 5 s both swing by 2 around 50."""


def test_arrival() -> None:
    got = compute(trial([flow(0, 5), flow(2, 5)], [A, B], [rates((5, 100))]))
    # First: A has 100 of 100 in its first 100 ms: 0.1 s. B is within 45..55 in its third, which ends after 0.3 s.
    assert got["convergence_first_s"] == pytest.approx((0.1 + 0.3) / 2)
    # Settled. A: nothing before 0, so its trailing mean is 100 t / 0.5, which reaches 90 at 0.45 s. After B came the
    # means over 500 ms at 2.6 s are (70 + 54 + 50 + 50 + 50) / 5 = 54.8 and (30 + 46 + 50 + 50 + 50) / 5 = 45.2, within
    # 10 % for the first time: 10 ms earlier they were 54.8 + (90 - 50) / 50 = 55.6 and 45.2 - 0.8 = 44.4.
    assert got["convergence_settle_s"] == pytest.approx((0.45 + 0.6) / 2)
    assert got["unsettled_events"] == 0
    # Stability: A from 0.45 to 2 s is constant, B from 2.6 to 5 s swings by 2: (0 + 2) / 2.
    assert got["stability_mbps"] == pytest.approx(1)


def test_departure_is_the_mean_over_those_who_remain() -> None:
    # Three flows at 33 1/3; one leaves at 2 s. The others go to 50: one in 0.2 s, the other in 0.4 s.
    third = 100 / 3
    flows = [flow(0, 2), flow(0, 4), flow(0, 4)]
    series = [
        rates((2, third), (2, 0)),
        rates((2, third), (0.1, 40), (1.9, 50)),
        rates((2, third), (0.3, 40), (1.7, 50)),
    ]
    data = trial(flows, series, [rates((4, 100))])
    got = response(data, events(data)[1])
    assert got.first_s == pytest.approx((0.2 + 0.4) / 2)
    assert got.deviation_mbps is None
    # Trailing mean of the slower at 2.55 s: 0.25 s at 50 and 0.25 s at 40 = 45, the lower bound; of the faster earlier.
    assert got.settle_s == pytest.approx(0.55)


def test_flows_that_never_settle_count_the_time_to_the_next_event() -> None:
    # A has 80, B 20 until A leaves at 6 s; B then has everything at once.
    a, b = rates((2, 100), (4, 80), (4, 0)), rates((2, 0), (4, 20), (4, 100))
    got = compute(trial([flow(0, 6), flow(2, 10)], [a, b], [rates((10, 100))]))
    # First: 0.1 s, then never within 4 s, then 0.1 s. Settled: 0.45, never within 4 s, and after the departure
    # 20 (0.5 - t) + 100 t >= 45 at t = 0.4375: of the trailing mean with 90 as the bound, (0.5 - t) 20 + 100 t = 45.
    assert got["convergence_first_s"] == pytest.approx((0.1 + 4 + 0.1) / 3)
    assert got["unsettled_events"] == 1
    assert got["convergence_settle_s"] == pytest.approx((0.45 + 4 + 0.44) / 3)


@pytest.mark.parametrize(("disturbed_at", "settled"), [(1.40, 0.45), (1.39, 1.94)])
def test_settled_means_for_one_second(disturbed_at: float, settled: float) -> None:
    # From its start both have 50; for 100 ms the second flow loses everything to the first. With nothing before the
    # start the trailing means are 100 t and reach 45 at 0.45 s; they must hold until 1.45 s. A disturbance from 1.40 s
    # leaves (0.45 x 50) / 0.5 = 45 at 1.45 s: held. One from 1.39 s leaves 44, and the count begins when only 50 ms of
    # it are left in the window, at 1.44 + 0.5 = 1.94 s.
    rest = 5 - disturbed_at - 0.1
    a = rates((disturbed_at, 50), (0.1, 100), (rest, 50))
    b = rates((disturbed_at, 50), (0.1, 0), (rest, 50))
    data = trial([flow(0, 5), flow(0, 5)], [a, b], [rates((5, 100))])
    assert response(data, events(data)[0]).settle_s == pytest.approx(settled)


def test_events_too_close_to_settle() -> None:
    # 1.2 s to the next event: the trailing mean is right from 0.45 s, but the second after it does not fit.
    data = trial([flow(0, 1.2)], [rates((1.2, 100), (0.8, 0))], [rates((2, 100))])
    got = response(data, events(data)[0])
    assert got.settle_s is None
    assert got.interval_s == pytest.approx(1.2)


def test_shares_follow_a_changing_link() -> None:
    # The link halves at 2 s and the flow with it, at once: settled all the time.
    series = rates((2, 100), (2, 50))
    data = trial([flow(0, 4)], [series], [series])
    assert response(data, events(data)[0]).settle_s == pytest.approx(0.45)


def test_event_between_slots() -> None:
    # The flow comes at 1.004 s: the first whole slot begins at 1.01 s, its first 100 ms end at 1.11 s.
    data = trial([flow(1.004, 4)], [rates((1.01, 0), (2.99, 100))], [rates((4, 100))])
    assert response(data, events(data)[0]).first_s == pytest.approx(0.106)


def test_slots_of_100_ms() -> None:
    # The same series as in test_arrival, recorded ten times coarser: the settling times are rounded up to slots.
    fine = trial([flow(0, 5), flow(2, 5)], [A, B], [rates((5, 100))])
    coarse = type(fine)(
        10 * fine.slot_ns,
        fine.flows,
        fine.delivered.reshape(2, -1, 10).sum(axis=2),
        fine.capacity.reshape(1, -1, 10).sum(axis=2),
        fine.queues,
    )
    got = compute(coarse)
    assert got["convergence_first_s"] == pytest.approx(0.2)
    assert got["convergence_settle_s"] == pytest.approx((0.5 + 0.6) / 2)
    assert np.isclose(got["stability_mbps"] or 0, 1)
