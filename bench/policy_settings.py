"""The settings that `bench/policies.py` measures schemes on: scenarios, as the tables of a file, with their seeds."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from astraea.scenario import document

PACKET = 1500
"""Bytes of a packet on the link."""

Raw = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """One trial: `raw` is a scenario as its file would have it, `case` tells the settings of a group apart."""

    group: str
    case: str
    raw: Raw
    seed: int


@dataclass(frozen=True)
class Domain:
    """What the settings of a grid are drawn from. Times in s, rates in bit/s."""

    rate: tuple[float, float]
    rtt: tuple[float, float]
    flows: tuple[int, int]
    gap: tuple[float, float]
    """Mean time between arrivals (Poisson)."""
    buffer: tuple[float, float] = (0.1, 16)
    """In bandwidth-delay products at the mean base RTT, log-uniform."""
    packets: int = 1
    """Smallest buffer."""
    logarithmic: bool = True
    """Whether rate, RTT and number of flows are log-uniform."""
    loss: float = 0.0
    """Largest random loss, on 30 % of the settings."""
    jitter: float = 0.0
    """Largest jitter of acknowledgements, on half of the settings."""
    aggregation: float = 0.0
    """Largest time between bunches of acknowledgements, on a quarter of the settings; from 1 ms."""
    codel: float = 0.0
    """Share of settings with CoDel."""
    length: float = 60.0
    """Length of a trial."""


TABLE_3 = Domain(rate=(40e6, 160e6), rtt=(0.010, 0.140), flows=(2, 5), gap=(4, 4), logarithmic=False, length=120)
"""The ranges of Astraea's table 3, with arrivals as `MultiFlow-v0` draws them."""

DECLARED = Domain(
    rate=(5e6, 1000e6),
    rtt=(0.005, 0.300),
    flows=(1, 50),
    gap=(0.3, 8),
    packets=5,
    loss=0.02,
    jitter=0.005,
    aggregation=0.010,
    codel=0.2,
)
"""The declared domain of the default policy; neighbours and changes of the path have groups of their own."""

TINY = Domain(rate=(20e6, 300e6), rtt=(0.004, 0.020), flows=(2, 5), gap=(1, 4), buffer=(1e-4, 1e-3), length=40)
"""Fast links whose buffers hold a few packets, so that flows see little of each other but losses."""

PER_FLOW = 4
"""Packets that the path and its buffer must hold for each flow, or a setting is drawn again: with fewer in flight a
loss is only found by a timeout (fast retransmit wants three later packets), whatever the scheme."""

LEAVE = 0.3
"""Share of a grid's settings in which flows depart: each of them with probability 1/2, after 10 to 30 s."""


def _between(rng: np.random.Generator, limits: tuple[float, float], logarithmic: bool) -> float:
    low, high = limits
    return float(math.exp(rng.uniform(math.log(low), math.log(high))) if logarithmic else rng.uniform(low, high))


def draw(domain: Domain, rng: np.random.Generator) -> Raw:
    """One setting of a domain."""
    while True:
        rate = _between(rng, domain.rate, domain.logarithmic)
        low, high = domain.flows
        count = math.floor(_between(rng, (low, high + 1), domain.logarithmic))
        common = _between(rng, domain.rtt, domain.logarithmic)
        mixed = rng.random() < 0.5
        rtts = [_between(rng, domain.rtt, domain.logarithmic) if mixed else common for _ in range(count)]
        bdp = rate / 8 * float(np.mean(rtts))
        buffer = max(_between(rng, domain.buffer, True) * bdp, domain.packets * PACKET)
        if (bdp + buffer) / PACKET >= PER_FLOW * count:
            break
    loss = rng.uniform(0, domain.loss) if rng.random() < 0.3 else 0.0
    jitter = rng.uniform(0, domain.jitter) if rng.random() < 0.5 else 0.0
    bunches = rng.random() < 0.25
    aggregate = _between(rng, (0.001, domain.aggregation), True) if bunches and domain.aggregation else 0.0
    codel = rng.random() < domain.codel
    # Half of the time at most passes with arrivals, so that all are there for as long again.
    gap = min(_between(rng, domain.gap, True), domain.length / 2 / count)
    starts = [0.0, *np.cumsum(rng.exponential(gap, count - 1)).tolist()]
    leaving = rng.random() < LEAVE
    lives = [rng.uniform(10, 30) if leaving and rng.random() < 0.5 else domain.length for _ in range(count)]
    shortest = min(rtts)
    link = {
        "rate": f"{rate:.0f}bps",
        "delay": seconds(shortest / 2),
        "buffer": f"{round(buffer)}B",
        "loss": loss,
        "queue": "codel" if codel else "droptail",
    }
    flows = [
        {
            "path": ["bottleneck"],
            "start": seconds(start),
            "duration": seconds(life),
            "extra_delay": seconds((rtt - shortest) / 2),
            "ack": {"aggregate": seconds(aggregate)},
        }
        for rtt, start, life in zip(rtts, starts, lives, strict=True)
        if start < domain.length - 10
    ]
    raw = {"duration": seconds(domain.length), "link": {"bottleneck": link}, "flow": flows}
    return with_jitter(raw, jitter) if jitter else raw


def with_jitter(raw: Raw, jitter: float) -> Raw:
    """The scenario with acknowledgements that cross a link of their own, fast, and delayed by up to `jitter` s."""
    back = {"rate": "100Gbps", "delay": raw["link"]["bottleneck"]["delay"], "jitter": seconds(jitter)}
    back["buffer"] = "infinite"
    flows = [{**flow, "return_path": ["back"]} for flow in raw["flow"]]
    return {**raw, "link": {**raw["link"], "back": back}, "flow": flows}


def seconds(value: float) -> str:
    """A time in s as a scenario file has it."""
    return f"{round(value * 1e9)}ns"


def shipped(name: str, **changes: Any) -> Raw:
    """A shipped scenario without its sweep, with some keys changed: `flow__count=10` is flow.count."""
    found = document.load(name)
    found.raw.pop("sweep", None)
    for key, value in changes.items():
        found.change(key.replace("__", "."), value)
    return found.raw


def _trials(group: str, case: str, raw: Raw, count: int, offset: int) -> Iterator[Setting]:
    for trial in range(count):
        yield Setting(group, case, raw, seed=offset + trial + 1)


def three_flows(offset: int) -> Iterator[Setting]:
    yield from _trials("three-flows", "", shipped("three-flows"), 10, offset)


def _grid(group: str, domain: Domain, count: int, stream: int, offset: int) -> Iterator[Setting]:
    for index in range(count):
        rng = np.random.default_rng([stream, offset, index])
        yield Setting(group, str(index), draw(domain, rng), seed=offset + index + 1)


def training_range(offset: int) -> Iterator[Setting]:
    yield from _grid("training-range", TABLE_3, 32, 3_001, offset)


def validation_grid(offset: int) -> Iterator[Setting]:
    yield from _grid("validation-grid", DECLARED, 64, 3_002, offset)


def test_grid(offset: int) -> Iterator[Setting]:
    yield from _grid("test-grid", DECLARED, 64, 3_003, offset)


def rtt_fairness(offset: int) -> Iterator[Setting]:
    yield from _trials("rtt-fairness", "", shipped("rtt-fairness"), 5, offset)


def many(offset: int) -> Iterator[Setting]:
    for count in (10, 20, 50):
        start = {"every": "1s", "jitter": "100ms"}
        raw = shipped("many-flows", flow__count=count, flow__start=start, flow__duration=f"{count + 30}s")
        raw |= {"record": "10ms", "duration": f"{count + 30}s"}
        yield from _trials("many", str(count), raw, 5, offset)


def _beside(other: str, count: int) -> Raw:
    """One flow beside so many of another scheme, which leave after 100 s."""
    return shipped(
        "friendliness",
        flow__competitors__cc=other,
        flow__competitors__count=count,
        flow__competitors__duration="100s",
        flow__test__duration="130s",
    )


def neighbours(offset: int) -> Iterator[Setting]:
    for other in ("cubic", "bbr"):
        for count in (1, 2, 4):
            yield from _trials("neighbours", f"{count} {other}", _beside(other, count), 10, offset)


def deep_buffers(offset: int) -> Iterator[Setting]:
    for other in ("cubic", "bbr"):
        for count in (1, 4):
            raw = _beside(other, count)
            link = {**raw["link"]["bottleneck"], "buffer": "4bdp"}
            yield from _trials("deep-buffers", f"{count} {other}", {**raw, "link": {"bottleneck": link}}, 5, offset)


SMALL = (
    ("30Mbps", "10ms", "9kB"),
    ("50Mbps", "5ms", "12kB"),
    ("88Mbps", "7ms", "23kB"),
    ("120Mbps", "12ms", "40kB"),
    ("200Mbps", "4ms", "30kB"),
    ("300Mbps", "3ms", "25kB"),
)
"""Rate, one-way delay and buffer of links that hold less than flows want to keep in the queue."""


def small_buffers(offset: int) -> Iterator[Setting]:
    for rate, delay, buffer in SMALL:
        for count in (2, 5, 9):
            raw = shipped(
                "three-flows",
                link__bottleneck={"rate": rate, "delay": delay, "buffer": buffer},
                flow__count=count,
                flow__start={"every": "2s", "jitter": "30ms"},
                flow__duration="40s",
            )
            yield from _trials("small-buffers", f"{count} at {rate}", raw, 3, offset)


def tiny_buffers(offset: int) -> Iterator[Setting]:
    for index in range(48):
        rng = np.random.default_rng([3_004, offset, index])
        raw = draw(TINY, rng)
        raw["link"]["bottleneck"]["buffer"] = f"{rng.integers(5, 13) * PACKET}B"
        yield Setting("tiny-buffers", str(index), raw, seed=offset + index + 1)


def short_flows(offset: int) -> Iterator[Setting]:
    yield from _trials("short-flows", "", shipped("short-flows"), 5, offset)


LINKS = (
    ("20Mbps", "5ms", "1bdp"),
    ("100Mbps", "15ms", "1bdp"),
    ("10Mbps", "50ms", "2bdp"),
    ("50Mbps", "20ms", "100packets"),
)
"""Rate, one-way delay and buffer of links that applications send over now and then."""


def _sources(rate: int) -> dict[str, Raw]:
    """What applications send that need a fifth to a half of a link of so many Mbit/s."""
    return {
        "messages, a fifth": {"kind": "poisson", "every": "100ms", "size": f"{2500 * rate}B"},
        "messages, a half": {"kind": "poisson", "every": "200ms", "size": f"{12500 * rate}B"},
        "chunks": {"kind": "periodic", "every": "2s", "size": f"{100 * rate}kB"},
        "stream": {"kind": "periodic", "every": "20ms", "size": f"{rate}kB"},
        "on and off": {"kind": "on_off", "on": "1s", "off": "1s"},
    }


def applications(offset: int) -> Iterator[Setting]:
    for case, bulk in (("alone", 0), ("beside", 1)):
        for rate, delay, buffer in LINKS:
            for source in _sources(int(rate.removesuffix("Mbps"))).values():
                link = {"rate": rate, "delay": delay, "buffer": buffer}
                flow = {"path": ["bottleneck"], "duration": "40s"}
                raw = {"link": {"bottleneck": link}, "flow": [{**flow, "source": source}, *[flow] * bulk]}
                yield from _trials("applications", case, raw, 3, offset)


def uploads(offset: int) -> Iterator[Setting]:
    link = {"delay": "15ms", "buffer": "100packets"}
    for other in ("cubic", "bbr"):
        for rate in ("20Mbps", "5Mbps", "1Mbps"):
            download = {"path": ["down"], "return_path": ["up"], "duration": "60s"}
            upload = {"path": ["up"], "return_path": ["down"], "cc": other, "start": "5s", "duration": "55s"}
            links = {"down": {"rate": "20Mbps", **link}, "up": {"rate": rate, **link}}
            yield from _trials("uploads", other, {"link": links, "flow": [download, upload]}, 3, offset)


def jitter(offset: int) -> Iterator[Setting]:
    for amount in ("2ms", "5ms"):
        yield from _trials("jitter", amount, shipped("ack-jitter", link__back__jitter=amount), 5, offset)


def loss(offset: int) -> Iterator[Setting]:
    for count in (1, 3):
        raw = shipped("three-flows", flow__count=count, link__bottleneck__loss="1%")
        yield from _trials("loss", str(count), raw, 5, offset)


def changing(offset: int) -> Iterator[Setting]:
    for count in (1, 3):
        yield from _trials("changing", str(count), shipped("changing-path", flow__count=count), 10, offset)


def satellite(offset: int) -> Iterator[Setting]:
    yield from _trials("satellite", "", shipped("satellite"), 5, offset)


GROUPS: dict[str, Callable[[int], Iterator[Setting]]] = {
    "three-flows": three_flows,
    "training-range": training_range,
    "test-grid": test_grid,
    "validation-grid": validation_grid,
    "rtt-fairness": rtt_fairness,
    "many": many,
    "neighbours": neighbours,
    "deep-buffers": deep_buffers,
    "small-buffers": small_buffers,
    "tiny-buffers": tiny_buffers,
    "short-flows": short_flows,
    "applications": applications,
    "uploads": uploads,
    "jitter": jitter,
    "loss": loss,
    "changing": changing,
    "satellite": satellite,
}
"""The settings of each group, from the seed offset."""

GRIDS = ("test-grid", "validation-grid")
"""Groups that are only measured when they are asked for."""
