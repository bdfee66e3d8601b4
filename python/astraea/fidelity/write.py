"""What a comparison leaves behind: fidelity.json and fidelity.html."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from astraea.errors import UserError
from astraea.fidelity import figures
from astraea.fidelity.compare import BOUNDS
from astraea.fidelity.measure import Pair
from astraea.files import write_whole

JSON, PAGE = FILES = ("fidelity.json", "fidelity.html")

TRAFFIC = {"kernel": "this kernel's TCP", "quic": "QUIC connections"}
"""What a backend carries, in words."""

SCATTERS = {
    "throughput_mbps": "throughput (Mbit/s)",
    "queue_delay_ms": "mean queueing delay (ms)",
    "queue_delay_p95_ms": "95th percentile of the queueing delay (ms)",
}


def write(directory: Path, found: dict[str, Any], pairs: Sequence[Pair]) -> Path:
    """Write both files to `directory` and return the page's path; raises `UserError` if that is not possible."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {directory}: cannot be written: {error.strerror}") from None
    write_whole(directory / JSON, (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())
    return write_whole(directory / PAGE, render(found, pairs).encode())


def render(found: dict[str, Any], pairs: Sequence[Pair]) -> str:
    """The page's HTML."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"number": number, "change": change}
    backend = found.get("backend", "kernel")
    drawn = {metric: figures.scatter(found["pairs"], metric, title, backend) for metric, title in SCATTERS.items()}
    return environment.from_string(_asset("astraea.fidelity", "page.html.j2")).render(
        found=found,
        backend=backend,
        traffic=TRAFFIC[backend],
        bounds=BOUNDS,
        css=Markup(_asset("astraea.report", "assets/page.css")),  # noqa: S704 - our own file
        scatters=[_inline(svg) for svg in drawn.values() if svg],
        courses=[(pair, _inline(figures.course(pair))) for pair in pairs],
    )


def number(value: float | None) -> str:
    """A value as the tables show it."""
    return "–" if value is None else f"{value:.3g}"


def change(value: float | None) -> str:
    """A relative difference in percent."""
    return "–" if value is None else f"{100 * value:+.1f}"


def _inline(svg: str) -> Markup:
    """An SVG that scales with its column."""
    found = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    width = f"max-width:{found[1]}px" if found else ""
    text = re.sub(
        r'<svg class="marks" width="[\d.]+" height="[\d.]+"', f'<svg class="marks" style="{width}"', svg, count=1
    )
    return Markup(text)  # noqa: S704 - drawn by us


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
