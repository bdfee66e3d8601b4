"""What the command lines of several scripts here take: schemes, of which a wrong one ends the program with one line."""

from argparse import ArgumentParser

from astraea.errors import UserError
from astraea.eval import registry


def scheme(parser: ArgumentParser, name: str) -> str:
    """One scheme, as `astraea run --cc` takes it."""
    try:
        registry.scheme(name)
    except UserError as error:
        parser.error(str(error))
    return name


def schemes(parser: ArgumentParser, text: str) -> list[str]:
    """One or several of them, separated by commas."""
    try:
        found = registry.split([text])
    except UserError as error:
        parser.error(str(error))
    return [scheme(parser, name) for name in found]
