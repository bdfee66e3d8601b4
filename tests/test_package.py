"""What the installed package says about itself."""

from importlib import metadata

import astraea
from astraea import _native


def test_version_is_that_of_the_distribution() -> None:
    assert astraea.__version__ == metadata.version("astraea")


def test_native_module_is_a_release_build() -> None:
    assert _native.build_profile == "release"


def test_base_install_names_no_pytorch() -> None:
    base = [line for line in metadata.requires("astraea") or [] if "extra ==" not in line]
    assert base
    assert not [line for line in base if line.startswith("torch")]
