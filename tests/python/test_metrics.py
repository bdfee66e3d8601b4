"""Metrics of hand-made series; the comments work the answers out."""

import pytest
from handmade import flow, rates, trial
from hypothesis import given
from hypothesis import strategies as st

from astraea.eval.data import QueueData
from astraea.eval.metrics import NAMES, compute, jain_index, percentile


def test_jain() -> None:
    # Four slots of 500 ms on 100 Mbit/s: 50/50, 50/50, 60/40, 100/0. Jain's index of 60/40 is
    # 100^2 / (2 (60^2 + 40^2)) = 0.961538, of 100/0 it is 1/2.
    a = rates((1, 50), (0.5, 60), (0.5, 100))
    b = rates((1, 50), (0.5, 40), (0.5, 0))
    got = compute(trial([flow(0, 2), flow(0, 2)], [a, b], [rates((2, 100))]))
    # Mean (1 + 1 + 0.961538 + 0.5) / 4; 10th percentile of (0.5, 0.961538, 1, 1), at rank 0.3: 0.5 + 0.3 x 0.461538.
    assert got["jain"] == pytest.approx((2 + 25 / 26 + 0.5) / 4)
    assert got["jain_p10"] == pytest.approx(0.5 + 0.3 * (25 / 26 - 0.5))


def test_jain_counts_flows_that_live_through_the_whole_slot() -> None:
    # The second flow comes at 0.6 s and leaves at 1.9 s: only the slot from 1 to 1.5 s has two flows, 75/25.
    # 100^2 / (2 (75^2 + 25^2)) = 0.8.
    a, b = rates((2, 75)), rates((0.6, 0), (1.3, 25), (0.1, 0))
    got = compute(trial([flow(0, 2), flow(0.6, 1.9)], [a, b], [rates((2, 100))]))
    assert got["jain"] == pytest.approx(0.8)


def test_jain_is_one_at_the_fair_shares_of_two_bottlenecks() -> None:
    # Links of 100 and 20: two flows across both have 10 each, the two others 40 each.
    flows = [flow(0, 1), flow(0, 1), flow(0, 1, (0, 1)), flow(0, 1, (0, 1))]
    series = [rates((1, mbps)) for mbps in (40, 40, 10, 10)]
    got = compute(trial(flows, series, [rates((1, 100)), rates((1, 20))]))
    assert got["jain"] == pytest.approx(1)
    assert got["utilization"] == pytest.approx(1)


def test_jain_leaves_out_slots_in_which_nothing_can_be_sent() -> None:
    a, b = rates((0.5, 50), (0.5, 0)), rates((0.5, 50), (0.5, 0))
    got = compute(trial([flow(0, 1), flow(0, 1)], [a, b], [rates((0.5, 100), (0.5, 0))]))
    assert got["jain"] == pytest.approx(1)


def test_one_flow_has_no_jain_index() -> None:
    got = compute(trial([flow(0, 1)], [rates((1, 100))], [rates((1, 100))]))
    assert got["jain"] is None
    assert got["jain_p10"] is None


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=20))
def test_jain_index_lies_between_its_bounds(shares: list[float]) -> None:
    import numpy as np

    index = jain_index(np.array(shares))
    assert 1 / len(shares) - 1e-9 <= index <= 1 + 1e-9


def test_utilization_counts_only_while_a_flow_is_active() -> None:
    # 80 of 100 in the first and the third second; nobody is there in the second.
    series = [rates((1, 80), (2, 0)), rates((2, 0), (1, 80))]
    got = compute(trial([flow(0, 1), flow(2, 3)], series, [rates((3, 100))]))
    assert got["utilization"] == pytest.approx(0.8)


def test_utilization_of_a_changing_link() -> None:
    # 10 and then 30 Mbit/s of opportunities, 10 and 20 used: 30 / 40.
    got = compute(trial([flow(0, 2)], [rates((1, 10), (1, 20))], [rates((1, 10), (1, 30))]))
    assert got["utilization"] == pytest.approx(0.75)


def test_utilization_counts_the_links_that_are_bottlenecks() -> None:
    # Link 1 (100) is full in the max-min allocation, link 2 (60) never is: two flows across both, 50 each.
    # They deliver 30 + 40: 70 / 100.
    flows = [flow(0, 1, (0, 1)), flow(0, 1, (0,))]
    got = compute(trial(flows, [rates((1, 30)), rates((1, 40))], [rates((1, 100)), rates((1, 60))]))
    assert got["utilization"] == pytest.approx(0.7)


def test_queue_delay() -> None:
    # 100 packets: 90 waited up to 10 ns and 10 from 100 to 200 ns. Rank 95 is half way through the second bucket.
    assert percentile([QueueData(buckets=((0, 10, 90), (100, 200, 10)))], 0.95) == 150
    queue = QueueData(packets=100, mean_ns=2e6, buckets=((0, 1_000_000, 90), (10_000_000, 20_000_000, 10)))
    got = compute(trial([flow(0, 1)], [rates((1, 100))], [rates((1, 100))], [queue]))
    assert got["queue_delay_ms"] == pytest.approx(2)
    assert got["queue_delay_p95_ms"] == pytest.approx(15)


def test_queue_delay_of_two_bottlenecks_is_over_their_packets() -> None:
    # 300 packets waited 1 ms, 100 waited 5 ms: (300 + 500) / 400 = 2 ms. A third link is no bottleneck.
    queues = [QueueData(300, 1e6), QueueData(100, 5e6), QueueData(1000, 9e6)]
    flows = [flow(0, 1, (0, 2)), flow(0, 1, (1, 2))]
    capacity = [rates((1, 10)), rates((1, 10)), rates((1, 100))]
    got = compute(trial(flows, [rates((1, 10)), rates((1, 10))], capacity, queues))
    assert got["queue_delay_ms"] == pytest.approx(2)


def test_rtt_inflation_and_loss() -> None:
    flows = [
        flow(0, 1, base_rtt_ns=30_000_000, rtt_mean_ns=45e6, sent=600, lost=6),  # 1.5
        flow(0, 1, base_rtt_ns=40_000_000, rtt_mean_ns=40e6, sent=400, lost=4),  # 1.0
        flow(0, 1, base_rtt_ns=40_000_000),  # no sample: does not count
    ]
    got = compute(trial(flows, [rates((1, 30))] * 3, [rates((1, 100))]))
    assert got["rtt_inflation"] == pytest.approx(1.25)
    assert got["loss"] == pytest.approx(0.01)


def test_completion_times() -> None:
    # 1, 2 and 3 s; the 99th percentile lies at rank 1.98: 2 + 0.98 x 1.
    flows = [
        flow(0, 5, completions=((0, 10**9), (10**9, 3 * 10**9))),
        flow(0, 5, completions=((10**9, 4 * 10**9),)),
    ]
    got = compute(trial(flows, [rates((5, 1))] * 2, [rates((5, 100))]))
    assert got["fct_s"] == pytest.approx(2)
    assert got["fct_p99_s"] == pytest.approx(2.98)


def test_throughput_ratio() -> None:
    # Together from 1 to 3 s: under test 20, competitors 30 and 50: 20 / 40. What these had alone does not count.
    flows = [flow(1, 3), flow(0, 3, under_test=False), flow(0, 3, under_test=False)]
    series = [rates((1, 0), (2, 20)), rates((1, 90), (2, 30)), rates((1, 10), (2, 50))]
    got = compute(trial(flows, series, [rates((3, 100))]))
    assert got["throughput_ratio"] == pytest.approx(0.5)


def test_throughput_ratio_needs_both_kinds() -> None:
    got = compute(trial([flow(0, 1)], [rates((1, 100))], [rates((1, 100))]))
    assert got["throughput_ratio"] is None


def test_flows_that_pause_have_no_fairness() -> None:
    flows = [flow(0, 2), flow(0, 2, greedy=False)]
    got = compute(trial(flows, [rates((2, 50)), rates((2, 1))], [rates((2, 100))]))
    assert got["jain"] is None
    assert got["convergence_first_s"] is None
    assert got["utilization"] == pytest.approx(0.51)


def test_names_and_order() -> None:
    got = compute(trial([flow(0, 1)], [rates((1, 100))], [rates((1, 100))]))
    assert tuple(got) == NAMES
