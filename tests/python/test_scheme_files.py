"""Files that stand for a scheme: a RemyCC's rules, and policies of other papers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

CRATES = Path(__file__).parents[2] / "crates"

SHIPPED = {
    "remy": CRATES / "cc/src/remy/shipped.dna",
    "aurora": CRATES / "policy/src/aurora/shipped.aurora",
    "mocc": CRATES / "policy/src/mocc/shipped.mocc",
    "orca": CRATES / "policy/src/orca/shipped.orca",
    "antelope": CRATES / "policy/src/selector/shipped.antelope",
    "hacc": CRATES / "policy/src/selector/shipped.hacc",
}

SHORT = ["--set", "duration=3s", "--set", "flow.0.start.every=1s", "--trials", "1", "--no-report", "--out", "run"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_file_is_a_scheme(astraea: Run, name: str) -> None:
    mine = f"mine{SHIPPED[name].suffix}"
    Path(mine).write_bytes(SHIPPED[name].read_bytes())
    status, _, err = astraea("run", "three-flows", "--cc", f"{mine},{name}", *SHORT)
    assert status == 0, err
    summary = json.loads(Path("run/results.json").read_text())["summary"]
    assert summary[mine] == summary[name], "the same content"


@pytest.mark.parametrize(
    ("content", "text", "message"),
    [
        (None, "mine.dna", "mine.dna: No such file or directory"),
        (b"hello", "mine.dna", "mine.dna: not a RemyCC rule table: not a protocol buffer, or cut short"),
        (b"", "mine.dna", "mine.dna: not a RemyCC rule table: a domain has neither a rule nor children"),
        (b"x", "mine.dna:delta=1", 'mine.dna: a rule table takes no parameters, not ":delta=1"'),
        (None, "mine.aurora", "mine.aurora: cannot be read: No such file or directory"),
        (b"hello", "mine.aurora", "mine.aurora: not a safetensors file"),
        (SHIPPED["aurora"].read_bytes()[:-1], "mine.aurora", "mine.aurora: truncated or overwritten"),
        (None, "mine.mocc", "mine.mocc: cannot be read: No such file or directory"),
        (b"hello", "mine.mocc:loss=1", "mine.mocc: not a safetensors file"),
        (SHIPPED["aurora"].read_bytes(), "mine.mocc", 'mine.mocc: form is "aurora", expected mocc'),
        (b"x", "mine.mocc:los=1", 'mine.mocc: unknown parameter "los"; did you mean "loss"?'),
        (b"x", "mine.mocc:loss=0", "mine.mocc: loss: is 0; expected 0.001 to 1"),
        (b"x", "mine.mocc:latency", 'mine.mocc: cannot read "latency"; expected parameter=value'),
        (b"x", "mine.moccy", 'mine.mocc: is followed by "y"; expected mine.mocc:parameter=value'),
        (None, "mine.orca", "mine.orca: cannot be read: No such file or directory"),
        (b"hello", "mine.orca", "mine.orca: not a safetensors file"),
        (SHIPPED["aurora"].read_bytes(), "mine.orca", 'mine.orca: form is "aurora", expected orca'),
        (None, "mine.hacc", "mine.hacc: cannot be read: No such file or directory"),
        (b"hello", "mine.antelope", "mine.antelope: not a safetensors file"),
        (SHIPPED["hacc"].read_bytes(), "mine.antelope", 'mine.antelope: form is "hacc", expected antelope'),
        (SHIPPED["hacc"].read_bytes()[:-1], "mine.hacc", "mine.hacc: truncated or overwritten"),
        (b"x", "mine.hacc:price=1", 'mine.hacc: a policy of HACC\'s takes no parameters, not ":price=1"'),
        (b"x", "mine.orca:x=1", 'mine.orca: a policy of Orca\'s takes no parameters, not ":x=1"'),
        (b"x", "mine.aurora:alpha=1", 'mine.aurora: a policy of Aurora\'s takes no parameters, not ":alpha=1"'),
    ],
)
def test_a_mistake_is_one_line(astraea: Run, content: bytes | None, text: str, message: str) -> None:
    if content is not None:
        Path(text.partition(":")[0]).write_bytes(content)
    status, out, err = astraea("run", "three-flows", "--cc", text)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: {message}")


@pytest.mark.parametrize("suffix", [".safetensors", ".dna", ".aurora", ".mocc", ".orca", ".antelope", ".hacc"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_opened(astraea: Run, suffix: str, make: Callable[[str], None]) -> None:
    make(f"mine{suffix}")
    status, out, err = astraea("run", "three-flows", "--cc", f"mine{suffix}")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: mine{suffix}: is no file; expected a ")
