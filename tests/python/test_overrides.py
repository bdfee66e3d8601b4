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
