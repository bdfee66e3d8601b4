"""Schemes by name and from Python files."""

import sys
from pathlib import Path

import pytest

from astraea.errors import UserError
from astraea.eval import registry


def test_lists_with_parameters() -> None:
    assert registry.split(["cubic,newreno"]) == ["cubic", "newreno"]
    assert registry.split(["cubic", "newreno,cubic"]) == ["cubic", "newreno"]
    assert registry.split(["cubic:hystart=off,beta=0.8,newreno"]) == ["cubic:hystart=off,beta=0.8", "newreno"]


@pytest.mark.parametrize("texts", [[""], [" , "], ["cubic", ""]])
def test_no_scheme_is_a_mistake(texts: list[str]) -> None:
    # An empty variable of a shell must not quietly stand for CUBIC.
    with pytest.raises(UserError, match="names no scheme"):
        registry.split(texts)


def test_parameters_are_in_si_units() -> None:
    spec = registry.scheme("cubic:hystart=off,beta=0.8")
    assert (spec.label, spec.name) == ("cubic:hystart=off,beta=0.8", "cubic")
    assert spec.params == {"hystart": 0.0, "beta": 0.8}
    assert registry.scheme("constant-rate:rate=50Mbps").params == {"rate": 5e7}
    assert registry.scheme("constant-window:window=20").params == {"window": 20.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cubik", 'unknown scheme "cubik"; did you mean "cubic"?'),
        ("qqq", 'unknown scheme "qqq" (`astraea schemes` lists them'),
        ("CUBIK", 'unknown scheme "CUBIK"; did you mean "cubic"?'),
        ("cubic:beta=nan", 'scheme cubic: beta: cannot read "nan"; expected a number'),
        ("cubic:beta=0.7,beta=0.8", 'scheme cubic: parameter "beta" is given twice'),
        ("constant-rate:rate=1e300Mbps", "scheme constant-rate: rate: a rate must lie between"),
        ("cubic:hystat=off", 'scheme cubic: unknown parameter "hystat"; did you mean "hystart"?'),
        ("newreno:x=1", 'scheme newreno: unknown parameter "x"; it has none'),
        ("cubic:hystart", 'scheme cubic: cannot read "hystart"; expected parameter=value'),
        ("cubic:hystart=maybe", 'scheme cubic: hystart: cannot read "maybe"; expected on or off'),
        ("cubic:beta=much", 'scheme cubic: beta: cannot read "much"; expected a number'),
        ("constant-rate:rate=50", 'scheme constant-rate: rate: missing unit in "50"; expected e.g. "100Mbps"'),
        ("nowhere.py:Mine", "nowhere.py: no such file"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        registry.scheme(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        ("class Mine:\n    def decide(self, stats): ...\n", "Mime", 'no class "Mime"; did you mean "Mine"?'),
        ("class Mine:\n    pass\n", "Mine", "class Mine has no method decide(self, stats)"),
        ("class Mine:\n    pass\n", "", "no class named; expected"),
        ("class Mine(\n", "Mine", "line 1: "),
        ("import sys\nsys.exit(7)\n", "Mine", "cannot be loaded: SystemExit: 7"),
        ("import nowhere_to_be_found\n", "Mine", "cannot be loaded: ModuleNotFoundError"),
        (
            "class Mine:\n    def __init__(self): raise RuntimeError('no')\n    def decide(self, stats): ...\n",
            "Mine",
            "Mine(): RuntimeError: no",
        ),
    ],
)
def test_mistakes_in_python_files(tmp_path: Path, code: str, name: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(code)
    with pytest.raises(UserError) as caught:
        registry.scheme(f"{path}:{name}")
    text = str(caught.value)
    assert text.startswith(str(path))
    assert message in text
    assert "\n" not in text


def test_a_file_that_changes_is_loaded_again(tmp_path: Path) -> None:
    for number, directory in enumerate(("one", "other", "one")):
        path = tmp_path / directory / "mine.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"class Mine:\n    number = {10**number}\n    def decide(self, stats): ...\n")
        factory = registry.scheme(f"{path}:Mine").factory
        assert factory is not None
        mine = factory()
        assert mine.number == 10**number
        assert sys.modules[type(mine).__module__].__file__ == str(path)
    assert registry.scheme(f"{tmp_path}/other/mine.py:Mine").factory().number == 10  # type: ignore[misc]


def test_class_with_parameters(tmp_path: Path) -> None:
    path = tmp_path / "gain.py"
    path.write_text(
        "class Gain:\n    def __init__(self, gain=1.0): self.gain = gain\n    def decide(self, stats): ...\n"
    )
    spec = registry.scheme(f"{path}:Gain:gain=1.5")
    assert spec.factory is not None
    assert spec.factory().gain == 1.5
    assert spec.factory() is not spec.factory()
