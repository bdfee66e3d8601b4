"""Every program in `examples/` runs as it is."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

NEEDS_FILES = {"import_orca": "test_orca.py"}
"""Programs that read what others have made, and where they are tested."""

PROGRAMS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
EXAMPLES = [program for program in PROGRAMS if program.stem not in NEEDS_FILES]


def imported(program: Path) -> set[str]:
    """Top-level packages that a program imports."""
    names = set()
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_example(program: Path, tmp_path: Path) -> None:
    needed = imported(program)
    for other in PROGRAMS:  # that it makes use of
        if other.stem in needed:
            needed = needed - {other.stem} | imported(other)
    missing = [name for name in sorted(needed) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    run = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.count("\n") >= 4
