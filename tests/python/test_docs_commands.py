"""What README and the guide tell the reader to type: every command line is one that the parsers take."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from astraea import __version__
from astraea.cli import host
from astraea.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MAIN: Any = typer.main.get_command(app)


def blocks(text: str) -> Iterator[str]:
    """What is to be typed into a shell, lines that go on joined."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield block.replace("\\\n", " ")


def commands(page: Path) -> list[list[str]]:
    """The words after `astraea` of each command in the blocks of a page, with the variables that a block sets."""
    found = []
    for block in blocks(page.read_text(encoding="utf-8")):
        for name, value in re.findall(r'^(\w+)="(.*?)"', block, re.MULTILINE):
            block = block.replace(f"${name}", value)  # noqa: PLW2901
        for line in block.splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words: list[str] = []
            for word in lexer:
                if set(word) <= set("();<>|&"):
                    break  # only what is before a redirection, a pipe or another command
                words.append(word)
            while words:
                if Path(words[0]).name in ("astraea", "astraead"):
                    found.append(words[1:])
                # What goes before a command, or a command that is run behind a link.
                skipped = 1 if words[0] in ("sudo", "time") else words.index("--") + 1 if "--" in words else len(words)
                words = words[skipped:]
    return found


@functools.cache
def help_of(name: str) -> str:
    return subprocess.run([host.program(), name, "--help"], capture_output=True, text=True, check=True).stdout


def check(words: list[str]) -> None:
    """Fail for a command line that is not taken; nothing is run."""
    command, names, rest = MAIN, ["astraea"], list(words)
    while hasattr(command, "commands"):
        assert rest, f"{names}: expected a command"
        assert rest[0] in command.commands, f"{names}: no command {rest[0]}"
        command = command.commands[rest[0]]
        names.append(rest.pop(0))
    if names[1] in host.COMMANDS:
        own = rest[: rest.index("--")] if "--" in rest else rest
        for word in own:
            if word.startswith("--"):
                assert re.search(rf"{re.escape(word.partition('=')[0])}\b", help_of(names[1])), f"{names}: no {word}"
    else:
        command.make_context(" ".join(names), rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_taken(page: Path) -> None:
    for words in commands(page):
        try:
            check(words)
        except typer.TyperException as error:
            pytest.fail(f"astraea {shlex.join(words)}: {error.format_message()}")


def test_there_are_commands_and_wrong_ones_are_found() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 50
    assert ["fidelity", "--quick"] in commands(ROOT / "docs" / "fidelity.md")
    for wrong in (["run", "three-flows", "--tials", "3"], ["trace", "info"], ["run", "three-flows", "--seed", "x"]):
        with pytest.raises(typer.TyperException):
            check(wrong)
    for wrong in (["explane", "astraea"], ["link", "--rat", "1Mbps"], ["trace"]):
        with pytest.raises(AssertionError):
            check(wrong)


@pytest.mark.parametrize(
    ("page", "section", "name"),
    [
        ("command-line.md", "## `astraea run SCENARIO`", "run"),
        ("command-line.md", "## `astraea fidelity`", "fidelity"),
        ("command-line.md", "## `astraea explain MODEL`", "explain"),
        ("training.md", "# Training a policy", "train"),
    ],
)
def test_tables_of_options_are_complete(page: str, section: str, name: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").split(f"{section}\n")[1]
    rows = text.split("| option | meaning |\n")[1].split("\n\n")[0].splitlines()[1:]
    documented = {option for row in rows for option in re.findall(r"`(--[a-z-]+)", row.split(" | ")[0])}
    options = [parameter for parameter in MAIN.commands[name].params if parameter.param_type_name == "option"]
    known = {text for option in options for text in (*option.opts, *option.secondary_opts) if text.startswith("--")}
    by_default = {text for option in options if option.default is True for text in option.opts}
    assert documented == known - {"--help"} - by_default


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
