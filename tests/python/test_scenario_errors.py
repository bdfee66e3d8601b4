"""Every mistake in a scenario is one line that names file, key and what was expected."""

from pathlib import Path

import pytest

from astraea.errors import UserError
from astraea.scenario import document
from astraea.scenario.points import points

GOOD = """
[link.bottleneck]
rate = "100Mbps"
delay = "15ms"

[[flow]]
count = 3
start = { every = "40s" }
duration = "120s"
path = ["bottleneck"]
"""


def complaint(directory: Path, text: str) -> str:
    """What is said about a scenario file with this text."""
    path = directory / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        points(document.load(str(path)))
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"100Mbps"', '"100"', 'mine.toml: link.bottleneck.rate: missing unit in "100"; expected e.g. "100Mbps"'),
        ('"100Mbps"', "100", 'mine.toml: link.bottleneck.rate: missing unit in "100"; expected e.g. "100Mbps"'),
        ('"100Mbps"', '"0Mbps"', 'mine.toml: link.bottleneck.rate: a rate must be above zero, not "0Mbps"'),
        ('"100Mbps"', '"-1Mbps"', 'mine.toml: link.bottleneck.rate: a rate must be above zero, not "-1Mbps"'),
        ("rate =", "rte =", 'mine.toml: link.bottleneck.rte: unknown key; did you mean "rate"?'),
        ("count =", "cuont =", 'mine.toml: flow.0.cuont: unknown key; did you mean "count"?'),
        ("every =", "evry =", 'mine.toml: flow.0.start.evry: unknown key; did you mean "every"?'),
        ('delay = "15ms"', 'queue = "codl"', 'mine.toml: link.bottleneck.queue: unknown kind "codl"; did you mean'),
        ('delay = "15ms"', 'delay = "-1ms"', 'mine.toml: link.bottleneck.delay: a time must not be negative: "-1ms"'),
        (
            'delay = "15ms"',
            'trace = "x"',
            "mine.toml: link.bottleneck: expected exactly one of rate, schedule and trace",
        ),
        (
            'rate = "100Mbps"',
            "",
            "mine.toml: link.bottleneck: expected exactly one of rate, schedule and trace, not none",
        ),
        ('path = ["bottleneck"]', "", "mine.toml: flow.0.path: this key is required"),
        ("count = 3", 'name = "1"', 'mine.toml: flow.0.name: "1" reads like a position; expected a name with a letter'),
        (
            'path = ["bottleneck"]',
            'path = ["bottleneck"]\nname = "a"\n[[flow]]\nname = "a"\npath = ["bottleneck"]',
            'mine.toml: flow.1.name: flow.0 has the name "a" too',
        ),
        ('["bottleneck"]', "[]", "mine.toml: flow.0.path: expected at least one link"),
        ('["bottleneck"]', '["botleneck"]', 'mine.toml: flow.0.path: no link "botleneck"; did you mean "bottleneck"?'),
        ("count = 3", "count = 0", "mine.toml: flow.0.count: expected greater than or equal to 1, not 0"),
        ("count = 3", 'count = "3"', 'mine.toml: flow.0.count: expected a valid integer, not "3"'),
        ('"120s"', '"0s"', 'mine.toml: flow.0.duration: must be above zero, not "0s"'),
        ("[[flow]]", "[flow]", "mine.toml: flow: expected a valid list"),
        ("[[flow]]", "[[flow]", "mine.toml: not valid TOML: "),
        ("[[flow]]", '[[sweep]]\nvary."link.x.rate" = ["1Mbps"]\n[[flow]]', "link.x: no such link"),
        (
            "[[flow]]",
            '[[sweep]]\nvary."link.bottleneck.rate" = ["0Mbps"]\n[[flow]]',
            "mine.toml: sweep rate 0Mbps: link.bottleneck.rate: a rate must be above zero",
        ),
        (
            "[[flow]]",
            '[[sweep]]\nmode = "zip"\nvary."link.bottleneck.rate" = ["1Mbps"]\nvary."flow.0.count" = [1, 2]\n[[flow]]',
            "mine.toml: sweep.0: with mode zip, every key needs the same number of values",
        ),
        (
            'rate = "100Mbps"',
            'schedule = [["0s", "1Mbps"], ["5s", "2Mbps"], ["5s", "3Mbps"]]',
            "mine.toml: link.bottleneck.schedule: times of a schedule must ascend, but 5s follows 5s",
        ),
        ("count = 3", 'count = 3\nextra_delay = ["1ms"]', "mine.toml: flow.0: extra_delay has 1 values for count = 3"),
        (
            '{ every = "40s" }',
            '{ every = "4s", poisson = "4s" }',
            "mine.toml: flow.0.start: a list of times, every and",
        ),
        # Forms
        ('"15ms"', "{ a = 1 }", "mine.toml: link.bottleneck.delay.a: unknown key; expected one of low, high, every"),
        (
            '"15ms"',
            '{ low = "2ms", high = "1ms", every = "1s" }',
            "mine.toml: link.bottleneck.delay: high must not be below low",
        ),
        (
            "count = 3",
            "extra_delay = { a = 1 }",
            "mine.toml: flow.0.extra_delay: expected a value or a list, not {'a': 1}",
        ),
        ('"15ms"', '[["0s"]]', "mine.toml: link.bottleneck.delay.0: expected a list of two, not ['0s']"),
        (
            'delay = "15ms"',
            'ends = ["a", "b", "c"]',
            "mine.toml: link.bottleneck.ends: expected a list of two, not ['a', 'b', 'c']",
        ),
        (
            'delay = "15ms"',
            'queue = { kind = "red", min = "80%", max = "20%" }',
            "mine.toml: link.bottleneck.queue: max must be above min",
        ),
        ("[link.bottleneck]", "[link]", "mine.toml: link.rate: expected a table"),
        # Numbers that no simulation has use for
        ('"100Mbps"', '"1e300Mbps"', "mine.toml: link.bottleneck.rate: a rate must lie between 1bps and 10000Gbps"),
        ('"100Mbps"', '"1e-9bps"', "mine.toml: link.bottleneck.rate: a rate must lie between 1bps and 10000Gbps"),
        ('"15ms"', '"1e300s"', "mine.toml: link.bottleneck.delay: a time must be at most 10000000s"),
        (
            "count = 3",
            'count = 3\nack = { timeout = "3000h" }',
            'mine.toml: flow.0.ack.timeout: a time must be at most 10000000s (115 days), not "3000h"',
        ),
        (
            'delay = "15ms"',
            'queue = { kind = "fq_codel", quantum = "5GB" }',
            'mine.toml: link.bottleneck.queue.quantum: must be at most 4294967295B, not "5GB"',
        ),
        ('"15ms"', '"1ms"\nbuffer = "1e300bdp"', "mine.toml: link.bottleneck.buffer: a buffer must be at most 1e+09"),
        ("count = 3", 'source = { kind = "sized", size = "1e300GB" }', "flow.0.source.size: a size must be at most"),
        (
            "count = 3",
            'source = { kind = "on_off", on = "1ns", off = "1s" }',
            "source.on: must be at least 1us, not 1ns",
        ),
        (
            'rate = "100Mbps"',
            'rate = { low = "1Mbps", high = "2Mbps", every = "1us" }',
            "mine.toml: link.bottleneck.rate: every must be at least 1ms",
        ),
        # Whichever end of the range is passed, the range is the same.
        *(
            (
                'delay = "15ms"',
                f"loss = {loss}",
                "mine.toml: link.bottleneck.loss: must be at least 0 and less than 1 (or 100%), not",
            )
            for loss in ("2", "1", "'100%'", "'-1%'")
        ),
        (
            "[link.bottleneck]",
            'rate = "5Mbps"\n[link.bottleneck]',
            'mine.toml: rate: unknown key; did you mean "link.bottleneck.rate"?',
        ),
        (
            'delay = "15ms"',
            'queue = { kind = "pie", beta = inf }',
            "mine.toml: link.bottleneck.queue.beta: expected a finite number, not inf",
        ),
        (
            "[[flow]]",
            "[[sweep]]\n" + "".join(f'vary."flow.0.x{key}" = {[*range(100)]}\n' for key in range(3)) + "[[flow]]",
            "mine.toml: sweep.0: has 1000000 points; expected at most 10000",
        ),
        ("[[flow]]", "[[sweep]]\nvary.trials = [1]\n[[flow]]", 'mine.toml: sweep.0: "trials" is the same for every'),
        ("count = 3", f"count = {'[' * 5000}", "mine.toml: not valid TOML: "),
    ],
)
def test_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert message in complaint(tmp_path, GOOD.replace(old, new, 1))


def test_mark_of_byte_order(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8-sig")
    assert len(points(document.load(str(tmp_path / "mine.toml")))) == 1


TWO_LINKS = """
[link.a]
rate = "10Mbps"
ends = ["x", "y"]
[link.b]
rate = "10Mbps"
ends = ["y", "z"]
[[flow]]
duration = "1s"
path = PATH
"""


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ('["a", "b", "a"]', 'flow.0.path: cyclic: crosses "a" twice'),
        ('["b", "a"]', 'flow.0.path: disconnected: "b" ends at z, but "a" begins at x'),
        ('["a"]', "link.b: no flow crosses this link"),
    ],
)
def test_topology(tmp_path: Path, path: str, message: str) -> None:
    assert message in complaint(tmp_path, TWO_LINKS.replace("PATH", path))


def test_path_that_returns_to_a_node_is_cyclic(tmp_path: Path) -> None:
    text = TWO_LINKS.replace('["y", "z"]', '["y", "x"]').replace("PATH", '["a", "b"]')
    assert "cyclic: visits a node twice (x -> y -> x)" in complaint(tmp_path, text)


def test_paths_that_disagree_on_the_order_of_links_are_cyclic(tmp_path: Path) -> None:
    text = TWO_LINKS.replace('ends = ["x", "y"]', "").replace('ends = ["y", "z"]', "")
    text = text.replace("PATH", '["a", "b"]') + '[[flow]]\nduration = "1s"\npath = ["b", "a"]\n'
    assert "the paths of the flows are cyclic" in complaint(tmp_path, text)


def test_no_such_file() -> None:
    with pytest.raises(UserError, match=r"^nowhere/x\.toml: no such scenario file$"):
        document.load("nowhere/x.toml")


def test_no_such_name() -> None:
    with pytest.raises(UserError, match='no scenario "tree-flows"; did you mean "three-flows"'):
        document.load("tree-flows")
