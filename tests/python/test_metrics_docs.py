"""docs/metrics.md is what the glossary of reports says."""

from pathlib import Path

from astraea.eval import metrics
from astraea.report import docs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_page_is_in_sync() -> None:
    assert PAGE.read_text(encoding="utf-8") == docs.text(), "run: python -m astraea.report.docs > docs/metrics.md"


def test_every_metric_has_a_row() -> None:
    rows = [line.split(" | ")[0].strip("| `") for line in docs.text().splitlines() if line.startswith("| `")]
    assert tuple(rows) == metrics.NAMES
