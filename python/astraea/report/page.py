"""The page: one HTML file that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from astraea.files import write_whole
from astraea.report import theme
from astraea.report.errors import ReportError
from astraea.report.glossary import METRICS
from astraea.report.run import FILES, load
from astraea.report.section import Section, anchors, section


def build(run_dirs: Sequence[Path], out: Path) -> Path:
    """Write the report of the runs in `run_dirs` to the file `out` and return its path.

    The file appears whole or not at all. Raises `ReportError` with one line for a directory that cannot be read, and
    `UserError` for a file that cannot be written.
    """
    if not run_dirs:
        raise ReportError("no run directory given; expected at least one written by `astraea run --out`")
    runs = [load(directory) for directory in run_dirs]
    if any(out.resolve() == (directory / name).resolve() for directory in run_dirs for name in FILES):
        raise ReportError(f"{out}: is what the report is made from; expected another file for the page")
    index = theme.scheme_index([cc for run in runs for cc in run.schemes])
    sections = [section(run, index, anchor) for run, anchor in zip(runs, anchors(runs), strict=True)]
    return write_whole(out, render(sections, index).encode())


def render(sections: Sequence[Section], index: dict[str, int]) -> str:
    """The page's HTML. Everything that comes from files is escaped by the template or as JSON."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    shown = {item.name for part in sections for item in part.overall.metrics}
    return environment.from_string(_asset("page.html.j2")).render(
        sections=sections,
        colours=[
            {mode: theme.pick(theme.SCHEME_COLOURS[mode], number) for mode in theme.MODES} for number in index.values()
        ],
        index=index,
        glossary=[item for item in METRICS if item.name in shown],
        css=Markup(_asset("page.css")),  # noqa: S704 - our own file
        script=Markup(_asset("page.js")),  # noqa: S704 - our own file
        library=Markup(_library()),  # noqa: S704 - from the pinned package
        data=_embed(
            {
                "blocks": {anchor: data for part in sections for anchor, data in part.data.items()},
                "index": index,
                "colours": theme.SCHEME_COLOURS,
                "config": {mode: theme.vega_config(mode) for mode in theme.MODES},
            }
        ),
    )


def _embed(value: Any) -> Markup:
    """JSON for a <script> element: no `<` in it, so that no text can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped above


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the installed package (no network)."""
    return (
        vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        .replace("</script", "<\\/script")
        .replace("<!--", "<\\!--")
    )


def _asset(name: str) -> str:
    return resources.files("astraea.report").joinpath("assets", name).read_text(encoding="utf-8")
