"""The page: certificate and figures in one HTML file that needs nothing but itself."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from astraea.explain.certificate import percent


def render(found: dict[str, Any], drawings: dict[str, str]) -> str:
    """The page's HTML for the object of explain.json and its figures as SVG."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_asset("astraea.explain", "page.html.j2")).render(
        found=found,
        certificate=found["certificate"],
        halving=found["certificate"]["grid"]["halving_periods"],
        css=Markup(_asset("astraea.report", "assets/page.css")),  # noqa: S704 - our own file
        drawings={name: Markup(_inline(text)) for name, text in drawings.items()},  # noqa: S704 - drawn by us
        percent=percent,
    )


def _inline(svg: str) -> str:
    """An SVG for a page: it scales with its column."""
    return re.sub(r'<svg class="marks" width="\d+" height="\d+"', '<svg class="marks"', svg, count=1)


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
