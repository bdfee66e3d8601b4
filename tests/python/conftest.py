"""What several files of tests use."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from astraea.cli import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="session")
def example() -> Callable[[str], ModuleType]:
    """A program in `examples/` as a module, by its name."""

    # Programs may use each other, as they can where they are run.
    sys.path.append(str(EXAMPLES))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded

    return load


@pytest.fixture
def refusal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[object, str, str]]:
    """Runs a program of `example` in an empty directory, where it must end: exit status, standard output and error."""
    monkeypatch.chdir(tmp_path)

    def run(program: ModuleType, *arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", [f"{program.__name__}.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            program.main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def astraea(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command in an empty directory: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return status, *capsys.readouterr()

    return run
