"""`--set`, and how it meets sweeps."""

from pathlib import Path

import pytest

from astraea.errors import UserError
from astraea.scenario import document, overrides
from astraea.scenario.links import CoDel
from astraea.scenario.points import points


def test_values_are_toml_or_text() -> None:
    assert overrides.parse("trials=3") == ("trials", 3)
    assert overrides.parse("link.b.rate=50Mbps") == ("link.b.rate", "50Mbps")
    assert overrides.parse('flow.0.path=["a", "b"]') == ("flow.0.path", ["a", "b"])
    assert overrides.parse("a.b={x = 1}") == ("a.b", {"x": 1})
    assert overrides.parse("title=") == ("title", "")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rate", '--set rate: expected key=value, e.g. "link.bottleneck.rate=50Mbps"'),
        ("link.bottleneck.rte=5Mbps", '--set link.bottleneck.rte: unknown key; did you mean "rate"?'),
        ("link.botleneck.rate=5Mbps", '--set link.botleneck: no such link; did you mean "bottleneck"?'),
        ("link.bottleneck.rate=5", '--set link.bottleneck.rate: missing unit in "5"; expected e.g. "100Mbps"'),
        ("link.bottleneck.delay.x=5", "--set link.bottleneck.delay: is not a table, it has no keys"),
        ("flow.5.count=5", "--set flow.5: no such entry; expected one of flow.0"),
        ("flow.-1.count=5", "--set flow.-1: no such entry; expected one of flow.0"),
        ("flow.0=5", "--set flow.0: expected a key of it, e.g. flow.0.count"),
        ("a..b=5", '--set "a..b" has an empty part; expected e.g. "link.bottleneck.rate"'),
        ("trials=many", '--set trials: expected a valid integer, not "many"'),
    ],
)
def test_mistakes_name_the_option(setting: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        points(document.load("three-flows", [setting]))
    assert str(caught.value) == message


def test_digits_that_are_no_numbers_are_no_index() -> None:
    with pytest.raises(UserError, match=r"flow\.0\.²: unknown key"):
        points(document.load("three-flows", ["flow.².count=5"]))


def test_shorthand_becomes_a_table() -> None:
    settings = ["link.bottleneck.queue=codel", "link.bottleneck.queue.target=2ms", "flow.0.start=7s"]
    scenario = document.load("three-flows", settings).validate()
    queue = scenario.link["bottleneck"].queue
    assert isinstance(queue, CoDel)
    assert queue.target == 2_000_000
    assert scenario.flow[0].start.at == 7 * 10**9


def test_groups_by_index_by_name_and_alone() -> None:
    named = document.load("friendliness", ["flow.competitors.count=4", "flow.0.period=20ms"])
    assert [flow.count for flow in named.validate().flow] == [1, 4]
    assert named.validate().flow[0].period == 20_000_000
    assert document.load("three-flows", ["flow.count=7"]).validate().flow[0].count == 7


def test_one_capacity_replaces_another() -> None:
    loaded = document.load("three-flows", ['link.bottleneck.schedule=[["0s", "20Mbps"]]'])
    link = loaded.validate().link["bottleneck"]
    assert link.rate is None
    assert link.schedule == [(0, 2e7)]


STEPS = 'link.b.schedule=[["0s", "20Mbps"], ["500ms", "2Mbps"]]'

ONE_LINK = """
[link.b]
rate = "10Mbps"
[[flow]]
duration = "1s"
path = ["b"]
"""


def one_link(directory: Path, *settings: str, more: str = "", capacity: str = 'rate = "10Mbps"') -> document.Document:
    (directory / "one.toml").write_text(ONE_LINK.replace('rate = "10Mbps"', capacity) + more)
    return document.load(str(directory / "one.toml"), settings)


def test_a_schedule_keeps_its_period(tmp_path: Path) -> None:
    written = 'schedule = [["0s", "1Mbps"]]\nperiod = "1s"'
    for settings, capacity in (
        ([STEPS], written),
        (["link.b.period=1s", STEPS], 'rate = "10Mbps"'),
        ([STEPS, "link.b.period=1s"], 'rate = "10Mbps"'),
    ):
        link = one_link(tmp_path, *settings, capacity=capacity).validate().link["b"]
        assert (link.schedule, link.period) == ([(0, 2e7), (500_000_000, 2e6)], 10**9)
    swept = """[[sweep]]\nvary."link.b.schedule" = [[["0s", "20Mbps"]]]"""
    assert points(one_link(tmp_path, capacity=written, more=swept))[0].scenario.link["b"].period == 10**9


def test_a_period_goes_with_its_schedule(tmp_path: Path) -> None:
    capacity = 'schedule = [["0s", "1Mbps"]]\nperiod = "1s"'
    assert one_link(tmp_path, "link.b.rate=5Mbps", capacity=capacity).validate().link["b"].period is None
    [_, alternating, _] = points(document.load("dynamic-link", ["link.bottleneck.rate=5Mbps"]))
    assert alternating.values == {"duration": "25s"}


@pytest.mark.parametrize(
    ("swept", "setting", "left"),
    [
        ('"link.b.queue" = ["codel", "red"]', "link.b.queue.kind=pie", False),
        ('"link.b.queue.kind" = ["codel", "pie"]', "link.b.queue=pie", False),
        ('"link.b.queue.target" = ["5ms", "9ms"]', "link.b.queue=pie", True),
        ('"link.b.queue.target" = ["5ms", "9ms"]', "link.b.queue={kind = 'pie'}", True),
        ('"link.b.queue.target" = ["5ms", "9ms"]', "link.b={rate = '1Mbps', queue = {kind = 'pie'}}", True),
        ('"link.b.queue.target" = ["5ms", "9ms"]', "link.b.queue={kind = 'pie', target = '2ms'}", False),
        ('"flow.start" = ["0s", "100ms"]', "flow.start.at=50ms", False),
        ('"flow.start" = ["0s", "100ms"]', "flow.start.every=300ms", False),
        ('"flow.start.at" = ["0s", "100ms"]', "flow.start=50ms", False),
        ('"flow.start.at" = ["0s", "100ms"]', "flow.start.every=300ms", True),
        ('"flow.start.at" = ["0s", "100ms"]', "flow=[{path = ['b'], duration = '1s', start = '50ms'}]", False),
        ('"flow.source" = ["bulk"]', "flow.source.kind=bulk", False),
        ('"link.b.rate" = ["1Mbps", "2Mbps"]', "link.b={rate = '3Mbps'}", False),
        ('"link.b.rate" = ["1Mbps", "2Mbps"]', STEPS, False),
    ],
)
def test_a_set_key_leaves_the_sweep_of_its_table(tmp_path: Path, swept: str, setting: str, left: bool) -> None:
    """However the two are written: what was set holds at every point."""
    found = points(one_link(tmp_path, setting, more=f"[[sweep]]\nvary.{swept}"))
    assert [bool(point.values) for point in found] == ([True, True] if left else [False])
    assert setting in found[0].scenario.title
    set_alone = one_link(tmp_path, setting).validate()
    if not left:
        assert found[0].scenario.model_copy(update={"title": ""}) == set_alone.model_copy(update={"title": ""})


def test_what_is_swept_of_a_value_goes_with_it(tmp_path: Path) -> None:
    drawn = 'rate = { low = "1Mbps", high = "9Mbps", every = "1s" }'
    swept = '[[sweep]]\nvary."link.b.rate.low" = ["2Mbps", "3Mbps"]'
    for setting in ("link.b.rate=5Mbps", STEPS):
        assert len(points(one_link(tmp_path, setting, more=swept, capacity=drawn))) == 1


def test_a_set_key_leaves_the_sweep() -> None:
    swept = points(document.load("diverse"))
    assert len(swept) == 5 * 5 * 7
    fixed = points(document.load("diverse", ["link.bottleneck.rate=10Mbps", "flow.0.count=2"]))
    assert len(fixed) == 5
    assert {point.scenario.link["bottleneck"].rate for point in fixed} == {1e7}
    assert set(fixed[0].values) == {"link.bottleneck.delay"}


def test_a_set_key_can_leave_a_family_without_points() -> None:
    labels = [point.label for point in points(document.load("aurora-sensitivity", ["link.bottleneck.loss=1%"]))]
    assert not [label for label in labels if label.startswith("loss")]
    assert len(labels) == 8 + 10 + 5


def test_the_title_names_what_was_set() -> None:
    assert document.load("three-flows").raw["title"] == "Three flows, 40 s apart"
    changed = document.load("three-flows", iter(["flow.0.start.every=10s", "trials=1"])).validate()
    assert changed.title == "Three flows, 40 s apart (flow.0.start.every=10s, trials=1)"
    assert document.load("three-flows", ["title=Mine", "trials=1"]).validate().title == "Mine"
    with pytest.raises(UserError, match="title"):
        document.load("three-flows", ["title=3", "trials=1"]).validate()


def test_a_title_that_is_none_stays_a_mistake(tmp_path: Path) -> None:
    text = document.find("three-flows").read_text().replace('title = "Three flows, 40 s apart"', "title = false")
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(UserError, match=r"^wrong\.toml: title: "):
        document.load(str(tmp_path / "wrong.toml"), ["trials=1"]).validate()
