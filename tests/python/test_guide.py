"""The guide: its first page leads to all others, and what it tells the reader to type works."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

NOT_RUN = {"make demo", "source .venv/bin/activate"}
"""Lines of the first page that build what the tests run with."""


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_page_is_linked_and_in_the_navigation() -> None:
    pages = {path.name for path in DOCS.glob("*.md")}
    linked = re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8"))
    assert set(linked) == pages - {"index.md"}
    navigation = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert [page for entry in navigation for page in entry.values()] == ["index.md", *dict.fromkeys(linked)]


def test_first_page(tmp_path: Path) -> None:
    commands = [line for block in blocks("index.md", "sh") for line in block.splitlines()]
    assert set(commands) >= NOT_RUN
    programs = blocks("index.md", "python")
    (tmp_path / "mine.py").write_text(next(text for text in programs if text.startswith("# mine.py")))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in [*(line for line in commands if line not in NOT_RUN), *programs]:
        line = ["bash", "-c", command] if command in commands else [sys.executable, "-c", command]
        run = subprocess.run(
            line,
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert (run.returncode, run.stderr) == (0, ""), command
    assert (tmp_path / "out" / "rtt-fairness" / "report.html").is_file()
