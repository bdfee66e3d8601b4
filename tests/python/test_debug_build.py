"""The same seed gives the same bytes, whether the native module is optimised or not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import astraea

ROOT = Path(__file__).resolve().parents[2]

RUNS = [
    ["three-flows", "--set", "flow.0.start.every=3s", "--set", "flow.0.duration=8s"],
    ["cellular", "--set", "flow.0.duration=20s"],
    ["multi-bottleneck", "--set", "flow.0.duration=5s", "--set", "flow.1.duration=5s"],
    ["satellite", "--set", "flow.0.duration=20s"],
]


@pytest.fixture(scope="module")
def debug_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the Python package whose native module is a debug build; returns its parent directory."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    # All that `cargo test` builds: for one package, what others have written has other features and is compiled anew.
    command = ["cargo", "build", "--quiet", "--locked", "--workspace", "--lib", "--tests"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    parent = tmp_path_factory.mktemp("debug")
    shutil.copytree(
        ROOT / "python" / "astraea", parent / "astraea", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    shutil.copy(target / "debug" / "lib_native.so", parent / "astraea" / "_native.abi3.so")
    return parent


def run(package: Path, arguments: list[str], out: Path) -> None:
    code = "import sys; from astraea.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "run", *arguments, "--cc", "cubic,newreno", "--trials", "1", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "default"}
    subprocess.run([*command, "--no-report", "--out", out], env=environment, check=True)


@pytest.mark.timeout(900)
def test_debug_and_release_agree(debug_package: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    release_package = Path(astraea.__file__).parents[1]
    profile = "from astraea import _native; print(_native.build_profile)"
    for package, expected in [(debug_package, "debug"), (release_package, "release")]:
        environment = {**os.environ, "PYTHONPATH": str(package)}
        shown = subprocess.run(
            [sys.executable, "-c", profile], env=environment, capture_output=True, text=True, check=True
        )
        assert shown.stdout.strip() == expected
    for arguments in RUNS:
        with subtests.test(arguments[0]):
            for package, name in [(debug_package, "debug"), (release_package, "release")]:
                run(package, arguments, tmp_path / name / arguments[0])
            for file in ["results.json", "series.parquet", "links.parquet"]:
                debug = (tmp_path / "debug" / arguments[0] / file).read_bytes()
                assert debug == (tmp_path / "release" / arguments[0] / file).read_bytes(), file
