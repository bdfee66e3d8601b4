"""docs/scenario-format.md is what the schema says."""

from pathlib import Path

from astraea.scenario import docs
from astraea.scenario.fields import Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scenario-format.md"


def test_page_is_in_sync() -> None:
    assert PAGE.read_text(encoding="utf-8") == docs.text(), (
        "run: python -m astraea.scenario.docs > docs/scenario-format.md"
    )


def test_every_table_and_key_is_described() -> None:
    described = {table for _, _, tables in docs.SECTIONS for table in tables}
    assert described == set(Table.__subclasses__())
    for table in described:
        assert all(field.description for field in table.model_fields.values())


def test_page_has_no_gaps() -> None:
    rows = [line for line in docs.text().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert not [row for row in rows if "||" in row.replace(" ", "")]
