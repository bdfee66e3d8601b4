"""What every test may ask for, and what it may do without."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# A slow machine is no failure, and a run that is repeated is the same run; `explore` hunts for new examples.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Directory of recorded traces beside the repository, which not every machine has."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip(f"no recorded traces at {path}")
    return path


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium that can run without a screen."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("chromium is not installed")
    return path
