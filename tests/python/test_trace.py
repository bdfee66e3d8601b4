"""Traces: the generator, conversion, and what is said about them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraea.errors import UserError
from astraea.scenario.links import GeneratedTrace
from astraea.trace import files
from astraea.trace.info import describe
from astraea.trace.model import generate

MS = 1_000_000


def model(**values: object) -> GeneratedTrace:
    return GeneratedTrace.model_validate(values)


def test_same_seed_same_trace() -> None:
    assert (generate(model(seed=3)) == generate(model(seed=3))).all()
    assert generate(model(seed=3)).tolist() != generate(model(seed=4)).tolist()


def test_generated_trace_has_its_length_and_mean() -> None:
    times = generate(model(duration="1000s", mean="12Mbps"))
    assert (np.diff(times) >= 0).all()
    assert times[-1] == 1_000_000
    info = describe(times * MS)
    # Outages take 0.5 s about every 16 s; the walk forgets itself in about 10 s, so that 1000 s hold about a hundred
    # independent rates with a relative spread of 0.4: five standard errors are 20 %.
    assert info.mean_mbps / (1 - info.gap_share) == pytest.approx(12, rel=0.2)
    # Reflected at 1.6 times the mean; over one second Poisson counts spread by 1 / sqrt(1600) = 2.5 %.
    assert info.max_mbps < 12 * 1.6 * 1.15
    assert info.longest_gap_s > 0.5


def test_no_volatility_gives_a_poisson_process() -> None:
    times = generate(model(volatility=0, duration="100s"))
    counts = np.bincount(times[:-1] // 1000, minlength=100)[:100]
    # Variance = mean for Poisson counts; for 100 of them the ratio lies within 1 +- 5 sqrt(2/99).
    assert counts.var(ddof=1) / counts.mean() == pytest.approx(1, abs=0.71)


def test_info() -> None:
    # 10 s: one opportunity each 10 ms in the first 5 s, then one each 20 ms, but none from 7 to 9 s.
    times = np.concatenate([np.arange(10, 5001, 10), np.arange(5020, 7001, 20), np.arange(9000, 10001, 20)])
    info = describe(times * MS)
    assert info.duration_s == 10
    assert info.opportunities == 500 + 100 + 51
    assert info.mean_mbps == pytest.approx(651 * 1500 * 8 / 10 / 1e6)
    assert info.max_mbps == pytest.approx(1.2)  # 100 packets of 12 000 bit in a second
    assert info.min_mbps == 0
    assert info.longest_gap_s == 2
    assert info.gap_share == pytest.approx(0.2)


def test_windows_are_no_longer_than_the_trace() -> None:
    # A packet of 12 000 bit every 10 ms.
    assert files.rate_steps(np.arange(1, 6) * 10 * MS, 1.0) == [(0, 1.2e6)]


def test_rates_to_opportunities() -> None:
    # 1.2 Mbit/s is a packet each 10 ms; for a second, then nothing, then half of it.
    times = files.opportunities([(0, 1.2e6), (1, 0), (2, 0.6e6)])
    assert times.tolist() == [*range(10, 1001, 10), *range(2020, 3001, 20)]


@given(st.lists(st.integers(1, 50), min_size=2, max_size=20))
def test_rates_survive_conversion(mbps: list[int]) -> None:
    # Whole packets per window of one second, so that nothing is lost in rounding.
    steps = [(float(index), value * 1.2e6) for index, value in enumerate(mbps)]
    assert files.rate_steps(files.opportunities(steps) * MS, 1.0) == steps


@pytest.mark.parametrize("rows", [2, 3, 7, 19, 29, 58, 113, 1999, 2000])
def test_rows_of_100_ms_have_their_length(rows: int) -> None:
    for times in ([row * 0.1 for row in range(rows)], [row / 10 for row in range(rows)]):
        made = files.opportunities([(time, 1.2e6) for time in times])
        assert made.tolist() == list(range(10, rows * 100 + 1, 10))


@pytest.mark.parametrize("duration", [1, 2007, 2009, 8028, 16056])
def test_generated_traces_have_their_length(duration: int) -> None:
    assert generate(model(duration=f"{duration}ms"))[-1] == duration


def test_the_last_two_windows_share_what_is_left() -> None:
    """A file says how long a trace is by its last two rows."""
    even = np.arange(10, 1951, 10) * MS
    for length, times in (
        (50, [0, 0.025]),
        (100, [0, 0.05]),
        (190, [0, 0.095]),
        (200, [0, 0.1]),
        (250, [0, 0.1, 0.175]),
        (300, [0, 0.1, 0.2]),
        (1950, [*(row / 10 for row in range(19)), 1.875]),
    ):
        assert [time for time, _ in files.whole_steps(even[even <= length * MS], 0.1)] == times


@given(st.lists(st.integers(0, 3000), max_size=200), st.integers(1, 3000), st.sampled_from([0.001, 0.0333, 0.1, 1.0]))
def test_rates_of_windows_keep_length_and_packets(times: list[int], length: int, window: float) -> None:
    trace = np.array([*sorted(time for time in times if time <= length), length])
    back = files.opportunities(files.whole_steps(trace * MS, window))
    assert back[-1] == length
    assert back.size == trace.size


def test_a_step_shorter_than_any_is_a_millisecond() -> None:
    assert files.opportunities([(0, 1e6), (1e-10, 1e6)]).tolist() == [1]


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_files_of_rates(tmp_path: Path, suffix: str) -> None:
    times = files.opportunities([(0, 1.2e6), (1, 2.4e6)]) * MS
    path = tmp_path / f"x.{suffix}"
    for window in (1.0, 0.75, 5.0):
        path.write_text(files.render(times, files.format_of(path), window))
        assert files.read(path)[-1] == times[-1]
    path.write_text(files.render(times, files.format_of(path), 1.0))
    assert files.read(path).tolist() == times.tolist()


@pytest.mark.parametrize(
    ("name", "text"), [("x.csv", "time_s,rate_bps\n0,1e6\n1,2e6\n\n"), ("x.json", "[%s]"), ("x.down", "%m")]
)
def test_files_of_other_programs(tmp_path: Path, name: str, text: str) -> None:
    """A byte-order mark, as Excel writes it, and an empty line at the end."""
    steps = ", ".join(f'{{"time_s": {time}, "rate_bps": {rate}}}' for time, rate in ((0, 1e6), (1, 2e6)))
    path = tmp_path / name
    expected = files.opportunities([(0, 1e6), (1, 2e6)])
    filled = text.replace("%s", steps).replace("%m", files.mahimahi(expected.tolist()))
    path.write_text(filled, encoding="utf-8-sig")
    assert files.read(path).tolist() == (expected * MS).tolist()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "a,b\n0,1\n", 'line 1: expected the header "time_s,rate_bps"'),
        ("x.csv", "time_s,rate_bps\n0,1e6\n1,fast\n", "line 3: expected a time in s and a rate in bit/s"),
        ("x.csv", "time_s,rate_bps\n0,1e6\n", "has 1 rows; expected at least two"),
        ("x.csv", "time_s,rate_bps\n0,1e6\n0,1e6\n", "times must start at 0 and ascend"),
        ("x.csv", "time_s,rate_bps\n0,0\n1,0\n", "every rate is zero; expected one above zero"),
        ("x.csv", "time_s,rate_bps\n0,-1\n1,5\n", "rates must not be negative"),
        ("x.json", "{}", "expected a list of"),
        ("x.json", "[1]", "entry 1: expected a time in s and a rate in bit/s"),
        ("x.csv", "time_s,rate_bps\n0,1e15\n1,5\n", "8.3e+10 packets in 2.0e+00 s; expected at most 5e+07 in 24h"),
        ("x.csv", "time_s,rate_bps\n0,1e6\n1e300,5\n", "expected at most 5e+07 in 24h"),
        ("x.csv", "time_s,rate_bps\n0,1e6\nnan,1e6\n", "line 3: expected a time in s and a rate in bit/s"),
        ("x.csv", "time_s,rate_bps\n0,1e6\ninf,1e6\n", "line 3: expected a time in s and a rate in bit/s"),
        ("x.csv", f"time_s,rate_bps\n0,{'1' * 200_000}\n", "field larger than field limit"),
        ("x.json", f'[{{"time_s": {10**400}, "rate_bps": 1}}]', "entry 1: expected a time in s and a rate in bit/s"),
        ("x.json", "[", "Expecting value"),
        ("x.json", "[" * 100_000, "expected a list of"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        files.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
