"""The scenarios that are shipped."""

import re

import pytest

from astraea.scenario import document
from astraea.scenario.points import points
from astraea.scenario.resolve import SchemeSpec, TraceFile, resolve

CUBIC = SchemeSpec("cubic", "cubic")

PAPERS = {
    "three-flows",
    "aurora-unfair",
    "vivace-slow",
    "vivace-tuned",
    "rtt-fairness",
    "diverse",
    "many-flows",
    "multi-bottleneck",
    "background",
    "cellular",
    "friendliness",
    "buffers",
    "satellite",
    "high-speed",
    "overhead",
    "aurora-sensitivity",
    "dynamic-link",
    "fct",
}
OWN = {"ack-jitter", "changing-path", "short-flows"}
EXPECTED = PAPERS | OWN


def test_all_are_there() -> None:
    assert set(document.names()) == EXPECTED


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_point_resolves(name: str) -> None:
    for point in points(document.load(name)):
        traces = {link: TraceFile("x", 9e6) for link, spec in point.scenario.link.items() if spec.trace}
        trial = resolve(point.scenario, CUBIC, dict.fromkeys(range(len(point.scenario.flow)), CUBIC), 1, traces)
        assert trial.flows


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_comment_and_title_name_the_figure(name: str) -> None:
    loaded = document.load(name)
    text = loaded.path.read_text(encoding="utf-8")
    comment = text[: text.index("title =")]
    assert comment.startswith("# ")
    assert re.search(r"figures? \d", comment)
    scenario = loaded.validate()
    assert scenario.title
    assert re.search(r"fig\. \d", scenario.source)


@pytest.mark.parametrize("name", sorted(OWN))
def test_what_no_paper_has_says_so(name: str) -> None:
    loaded = document.load(name)
    text = loaded.path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "Of no paper" in text[: text.index("title =")]
    scenario = loaded.validate()
    assert scenario.title
    assert not scenario.source


def test_points_of_sweeps() -> None:
    labels = [point.label for point in points(document.load("dynamic-link"))]
    assert labels == ["lossy", "alternating", "redrawn"]
    sensitivity = points(document.load("aurora-sensitivity"))
    # One property at a time: the others keep the standard link's values.
    assert [point.label for point in sensitivity if point.scenario.link["bottleneck"].delay != 30_000_000] == [
        f"latency: delay {2**power}ms" for power in range(10)
    ]
