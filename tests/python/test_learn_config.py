"""Configurations of trainings: what is shipped is valid, and what is wrong is said in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from astraea.errors import UserError
from astraea.learn import config
from astraea.learn.replay import Layout, check_memory, check_rollouts

SHIPPED = ("astraea", "astraea-paper", "astraea-pure")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"

SMALLEST = '[policy]\nform = "pure"\nalpha = 0.1\n[run]\nupdates = 10\n'


def read(tmp_path: Path, text: str) -> config.Config:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return config.load(path)


def test_shipped_are_found_by_name() -> None:
    assert tuple(config.names()) == SHIPPED
    for name in SHIPPED:
        assert config.load(config.find(name)).name == name


def test_the_papers_numbers() -> None:
    """Tables 3 and 4, and section 4."""
    paper = config.load(config.find("astraea-paper"))
    domain, reward = paper.environment, paper.environment["reward"]
    assert (domain["bandwidth"], domain["rtt"], domain["buffer"]) == ([40e6, 160e6], [0.01, 0.14], [0.1, 16])
    assert (domain["flows"], domain["period"], paper.policy.alpha) == ([2, 5], 0.03, 0.025)
    assert [reward[name] for name in ("throughput", "latency", "loss", "fairness", "stability")] == [
        0.1,
        0.02,
        1,
        0.02,
        0.01,
    ]
    td3 = paper.td3
    assert (td3.gamma, td3.batch, td3.learning_rate, td3.steps) == (0.98, 192, 0.001, 1)
    assert (td3.updates_per_second, td3.hidden, paper.policy.hidden) == (20 / 5, (256, 128, 64), (256, 128, 64))
    assert paper.rollouts.episodes == 4


def test_seed_and_name_come_from_outside(tmp_path: Path) -> None:
    made = read(tmp_path, SMALLEST)
    assert (made.name, made.seed) == ("mine", 1)
    assert config.load(tmp_path / "mine.toml", seed=7).seed == 7


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    for name in SHIPPED:
        made = config.load(config.find(name), seed=5)
        assert read(tmp_path, config.to_toml(made)) == made
    odd = SMALLEST + '[environment]\na = "quo\\"te\\n"\nnested = [{x = 1, y = [true, 2.5e-9]}]\n[environment.deep.er]\n'
    made = read(tmp_path, odd)
    assert read(tmp_path, config.to_toml(made)) == made
    (tmp_path / "mine.py").write_text("")
    made = read(tmp_path, 'reward = "mine.py:f"\n' + SMALLEST)
    assert made.reward == f"{tmp_path}/mine.py:f"
    (tmp_path / "sub").mkdir()
    assert read(tmp_path / "sub", config.to_toml(made)) == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("", "gama = 1\n"), 'mine.toml: gama: unknown key; did you mean "name"?'),
        (("[run]", "[td3]\ngama = 0.9\n[run]"), 'mine.toml: td3.gama: unknown key; did you mean "gamma"?'),
        (("[run]", "[td3]\ngamma = 1.0\n[run]"), "mine.toml: td3.gamma: expected less than 1, not 1.0"),
        (("[run]", "[td3]\ngamma = nan\n[run]"), "mine.toml: td3.gamma: expected a finite number, not nan"),
        (("[run]", "[td3]\nbatch = 2.5\n[run]"), "mine.toml: td3.batch: expected a valid integer, not 2.5"),
        (("[run]", "[td3]\nhidden = []\n[run]"), "mine.toml: td3.hidden: expected at least one entry, not []"),
        (("[run]", "[td3]\nhidden = [64, 0]\n[run]"), "mine.toml: td3.hidden.1: expected greater than or equal to 2"),
        (("[run]", "[td3]\nreplay = 100\n[run]"), "mine.toml: td3: batch is 256, more than the 100 transitions of"),
        (("[run]", "[td3]\nwarm_up = 700_000\n[run]"), "mine.toml: td3: warm_up is 700000, more than the 600000"),
        (('"pure"', '"pur"'), "mine.toml: policy.form: expected 'paper', 'pure' or 'guided', not \"pur\""),
        (("alpha = 0.1\n", ""), "mine.toml: policy.alpha: this key is required"),
        (('"pure"', '"paper"\nmonotone = true'), 'policy: the form "paper" has no inputs in which a policy could be'),
        (("alpha", "monotone = true\nhidden = [5]\nalpha"), "policy: a monotone network needs even numbers of units"),
        (("", "td3 = 3\n"), "mine.toml: td3: expected a table, not 3"),
        (("", "environment = 3\n"), "mine.toml: environment: expected a table, not 3"),
        (("[run]", "[run"), "mine.toml: not valid TOML:"),
        (
            ("alpha = 0.1", "alpha = 1e-5"),
            "mine.toml: policy.alpha: expected greater than or equal to 0.0001, not 1e-05",
        ),
        (("alpha = 0.1", 'alpha = "0.1"'), 'mine.toml: policy.alpha: expected a valid number, not "0.1"'),
        (("alpha = 0.1", "alpha = 0.1\nmonotone = 1"), "mine.toml: policy.monotone: expected a valid boolean, not 1"),
        (("alpha", "hidden = [2048, 8]\nalpha"), "mine.toml: policy.hidden.0: expected less than or equal to 1024"),
        (("[run]", "[rollouts]\nepisodes = 2000000\n[run]"), "mine.toml: rollouts.episodes: expected less than or"),
        (("[run]", "[environment]\nduration = 1e5\n[run]"), "mine.toml: environment.duration: is 100000, expected 1"),
        (("[run]", "[environment]\nduration = 0.05\n[run]"), "mine.toml: environment.duration: is 0.05, expected 1"),
        (("[run]", "[environment]\nperiod = 2.0\n[run]"), "mine.toml: environment.period: is 2, expected 0.001 to 1"),
        (("[run]", "[environment]\nalpha = 0.9\n[run]"), "mine.toml: environment.alpha: stands in [policy]"),
        (("[run]", "[environment]\nrtt = [0.1, inf]\n[run]"), "mine.toml: environment.rtt: expected finite numbers"),
        (("[run]", "[environment]\nrtt = 2020-01-01\n[run]"), "mine.toml: environment.rtt: expected finite numbers"),
        (
            ("[run]", "[validation]\njain = 0\nutilization = 0\nsettled = 0\n[run]"),
            "mine.toml: validation: expected one of jain, utilization and settled above 0",
        ),
        (("[run]", "[td3]\nreplays = 1e16\n[run]"), "mine.toml: td3.replays: expected less than or equal to 10000"),
        (("[run]", "[td3]\nupdates_per_second = 1e16\n[run]"), "td3.updates_per_second: expected less than or equal"),
        (("updates = 10", f"updates = 1{'0' * 400}"), "mine.toml: run.updates: expected less than or equal to 9007199"),
        (("updates = 10", "updates = 0"), "mine.toml: run.updates: expected greater than or equal to 1, not 0"),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    before, after = change
    text = SMALLEST.replace(before, after) if before else after + SMALLEST
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        ("td3", "target_noise = 1e39", "td3.target_noise: expected less than or equal to 1000000, not 1e+39"),
        ("td3", "target_noise_clip = 1e39", "td3.target_noise_clip: expected less than or equal to 1000000, not 1e+39"),
        ("td3", "gradient_norm = 1e300", "td3.gradient_norm: expected less than or equal to 1000000, not 1e+300"),
        ("td3", "logit_penalty = 1e300", "td3.logit_penalty: expected less than or equal to 1000000, not 1e+300"),
        ("td3", "reward_scale = 1e300", "td3.reward_scale: expected less than or equal to 1000000, not 1e+300"),
        ("td3", f"half_life = {10**400}", "td3.half_life: expected less than or equal to 9007199254740992, not 1000"),
        (
            "td3",
            f"half_life = 0x{'f' * 5000}",
            "td3.half_life: expected less than or equal to 9007199254740992, not digits",
        ),
        ("td3", f"hidden = {[8] * 9}", f"td3.hidden: expected at most 8 entries, not {[8] * 9}"),
        ("validation", "jain = 1e308", "validation.jain: expected less than or equal to 1000000, not 1e+308"),
        ("validation", "loss = 1e308", "validation.loss: expected less than or equal to 1000000, not 1e+308"),
        ("environment", f"duration = {10**400}", "environment.duration: expected finite numbers, text, "),
        ("environment", f"loss = [0, {-(10**400)}]", "environment.loss: expected finite numbers, text, "),
        ("environment", f"rtt = {'[' * 100}1{']' * 100}", "environment.rtt: expected finite numbers, text, lists "),
        ("environment", f"{'a.' * 5000}b = 1", "environment.a: expected finite numbers, text, lists "),
        ("validation.environment", f"flows = {10**400}", "validation.environment.flows: expected finite numbers, "),
        ("rollouts", f"noise.{'a.' * 5000}b = 1", "rollouts.noise: expected a valid number, not lists or tables "),
        ("td3", f"hidden = {{{'a.' * 5000}b = 1}}", "td3.hidden: expected a valid list, not lists or tables "),
        ("wrong", f"{'a.' * 5000}b = 1", "wrong: unknown key"),
    ],
)
def test_numbers_and_depths_without_end(tmp_path: Path, table: str, line: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, f"{SMALLEST}[{table}]\n{line}\n")
    assert str(error.value).startswith(f"mine.toml: {message}")
    assert len(str(error.value)) < 250


def test_too_many_layers(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"policy.hidden: expected at most 7 entries, not \[8, 8, 8, 8, 8, 8, 8, 8\]"):
        read(tmp_path, SMALLEST.replace("alpha", f"hidden = {[8] * 8}\nalpha"))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such configuration file"):
        config.find(str(tmp_path / "none.toml"))
    with pytest.raises(UserError, match=r'no configuration "astrea"; did you mean "astraea"\?'):
        config.find("astrea")
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"mine.toml: is not UTF-8 text"):
        config.load(tmp_path / "mine.toml")


def test_memory_that_no_machine_has() -> None:
    check_memory(1000, Layout(12, 25))
    with pytest.raises(UserError, match=r"td3.replay: 1000000000 transitions take 308\.0 GB, more than 80 %"):
        check_memory(10**9, Layout(12, 25))


def test_roll_outs_that_no_machine_has() -> None:
    layout = Layout(12, 25)
    check_rollouts(16, (5e4, 50.0), 10**6, layout, statistics=False)
    with pytest.raises(UserError, match=r"rollouts.episodes: 1000000 of up to 50000 decisions and 50 flows take up to"):
        check_rollouts(10**6, (5e4, 50.0), 10**6, layout, statistics=False)
    # What fits without the statistics for a reward of one's own need not fit with them.
    with pytest.raises(UserError, match=r"with a reward of your own.*; lower rollouts.episodes, environment.flows or"):
        check_rollouts(16, (5e4, 1e6), 10**6, layout, statistics=True)
    check_rollouts(16, (5e4, 1e6), 10**6, layout, statistics=False)


def test_validation_changes_single_settings_of_a_table(tmp_path: Path) -> None:
    made = read(
        tmp_path,
        SMALLEST + "[environment]\nloss = 0.01\nflows = 3\n[environment.short_flows]\nprobability = 1.0\nbytes = 5e3\n"
        "[environment.reward]\nfairness = 0.1\n"
        "[validation.environment]\nflows = 5\n[validation.environment.short_flows]\nprobability = 0.5\n"
        "[validation.environment.changes]\nrtt = 1.0\n",
    )
    assert made.validation_environment() == {
        "loss": 0.01,
        "flows": 5,
        "short_flows": {"probability": 0.5, "bytes": 5e3},
        "reward": {"fairness": 0.1},
        "changes": {"rtt": 1.0},
    }
    assert made.environment["short_flows"]["probability"] == 1.0


def rows(model: type[config.Settings], prefix: str = "") -> list[str]:
    """Each setting as the guide has it: key, default, meaning."""
    found = []
    for key, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, config.Settings):
            continue
        assert field.description, key
        default = "required" if field.is_required() else shown(field.default)
        found.append(f"| `{prefix}{key}` | {default} | {' '.join(field.description.split())} |")
    return found


def shown(value: Any) -> str:
    if value is None or value in ("", {}):
        return "none"
    text = re.sub(r"\(([^)]*?),?\)", r"[\1]", repr(value)) if isinstance(value, tuple) else repr(value)
    return f"`{str(value).lower() if isinstance(value, bool) else text}`"


def test_the_guide_has_all_settings() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Settings")[2]
    tables = {"": config.Config, "policy.": config.PolicySettings, "rollouts.": config.RolloutSettings}
    tables |= {"td3.": config.Td3Settings, "validation.": config.ValidationSettings, "run.": config.RunSettings}
    expected = [row for prefix, model in tables.items() for row in rows(model, prefix)]
    assert [line for line in page.splitlines() if line.startswith("| `")] == expected, "\n".join(expected)
