"""Quantities as people write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraea.scenario import units
from astraea.scenario.units import Buffer


@pytest.mark.parametrize(
    ("text", "bits"),
    [("100Mbps", 1e8), ("1.5Gbit/s", 1.5e9), ("64 kbps", 64e3), ("9600bps", 9600.0), ("1e2Mbps", 1e8), ("20mbps", 2e7)],
)
def test_rates(text: str, bits: float) -> None:
    assert units.parse_rate(text) == bits


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30ms", 30_000_000),
        ("40s", 40 * 10**9),
        ("5min", 300 * 10**9),
        ("0.5us", 500),
        ("1.5 µs", 1500),
        (0, 0),
        ("0", 0),
    ],
)
def test_times(text: str | int, ns: int) -> None:
    assert units.parse_time(text) == ns


@pytest.mark.parametrize(
    ("text", "size"), [("4.8MB", 4_800_000), ("375kB", 375_000), ("1448B", 1448), ("1MiB", 1 << 20), ("2KiB", 2048)]
)
def test_sizes(text: str, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("value", "ratio"), [(0.01, 0.01), ("1%", 0.01), ("0.74%", 0.0074), (0, 0.0), (1, 1.0), ("100%", 1.0)]
)
def test_ratios(value: Any, ratio: float) -> None:
    assert units.parse_ratio(value) == pytest.approx(ratio, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "buffer"),
    [
        ("1bdp", Buffer(1, "bdp")),
        ("0.05BDP", Buffer(0.05, "bdp")),
        ("375kB", Buffer(375_000, "bytes")),
        ("250packets", Buffer(250, "packets")),
        ("1 packet", Buffer(1, "packets")),
        ("100ms", Buffer(100_000_000, "ns")),
        ("infinite", Buffer(0, "infinite")),
    ],
)
def test_buffers(text: str, buffer: Buffer) -> None:
    assert units.parse_buffer(text) == buffer


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (units.parse_rate, "100", 'missing unit in "100"; expected e.g. "100Mbps"'),
        (units.parse_rate, 100, 'missing unit in "100"; expected e.g. "100Mbps"'),
        (units.parse_rate, "100MBps", 'unknown unit "MBps" in "100MBps"; expected e.g. "100Mbps"'),
        (units.parse_rate, "100ms", 'unknown unit "ms" in "100ms"; expected e.g. "100Mbps"'),
        (units.parse_rate, "0Mbps", 'a rate must be above zero, not "0Mbps"'),
        (units.parse_rate, "-5Mbps", 'a rate must be above zero, not "-5Mbps"'),
        (units.parse_rate, "fast", 'cannot read "fast"; expected e.g. "100Mbps"'),
        (units.parse_rate, True, 'True is not a quantity; expected e.g. "100Mbps"'),
        (units.parse_rate, "1e999Mbps", 'cannot read "1e999Mbps"; expected e.g. "100Mbps"'),
        (units.parse_time, "30", 'missing unit in "30"; expected e.g. "30ms"'),
        (units.parse_time, "-1s", 'a time must not be negative: "-1s"'),
        (units.parse_span, "0s", 'must be above zero, not "0s"'),
        (units.parse_size, "10Mb", 'unknown unit "Mb" in "10Mb"; expected e.g. "10MB"'),
        (units.parse_size, "0B", 'a size must be at least one byte, not "0B"'),
        (units.parse_ratio, "2ms", 'unknown unit "ms" in "2ms"; expected e.g. 0.01 or "1%"'),
        (units.parse_ratio, 1.5, 'must lie between 0 and 1 (or 0% and 100%), not "1.5"'),
        (units.parse_buffer, "2.5packets", 'expected a whole number of packets, not "2.5packets"'),
        (units.parse_buffer, "0bdp", 'a buffer must be above zero, not "0bdp"'),
    ],
)
def test_mistakes_are_explained(parse: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse(value)
    assert str(caught.value) == message


@given(st.floats(1, 1e13))
def test_rates_survive_writing(rate: float) -> None:
    assert units.parse_rate(units.format_rate(rate)) == rate


@given(st.integers(0, 10**15))
def test_times_survive_writing(time: int) -> None:
    assert units.parse_time(units.format_time(time)) == time


@given(st.integers(1, 10**13))
def test_sizes_survive_writing(size: int) -> None:
    assert units.parse_size(units.format_size(size)) == size


def test_written_values_are_those_of_people() -> None:
    assert units.format_rate(1e8) == "100Mbps"
    assert units.format_rate(1.5e9) == "1.5Gbps"
    assert units.format_time(30_000_000) == "30ms"
    assert units.format_time(40 * 10**9) == "40s"
    assert units.format_size(4_800_000) == "4.8MB"
    assert units.format_buffer(Buffer(1, "bdp")) == "1bdp"
    assert units.format_buffer(Buffer(250, "packets")) == "250packets"
