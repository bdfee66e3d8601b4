"""One clear line for each way in which a scenario can be wrong."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from astraea.errors import nearest
from astraea.scenario.flows import Flow
from astraea.scenario.links import Link

_SHAPES = ("value", "list", "table")
"""Tags of `fields.by_shape`: the forms that one key may have."""


def explain(error: ValidationError, raw: Any) -> tuple[str, str]:
    """Key path and reason of the first mistake in the raw scenario `raw`."""
    first = error.errors(include_url=False)[0]
    path = _path(first["loc"], raw)
    if first["type"] == "unknown_key":
        path.append(str(first["ctx"]["key"]))
        if len(path) == 1 and (whole := _elsewhere(path[0], raw)):
            return path[0], f'unknown key; did you mean "{whole}"?'
    elif first["type"] == "missing" and isinstance(last := first["loc"][-1], str):
        path.append(last)
    return ".".join(path), _reason(first)


def _elsewhere(key: str, raw: dict[str, Any]) -> str | None:
    """The whole key of a link or a flow, if `key` is the last part of one: `rate` of `link.bottleneck.rate`."""
    links, groups = raw.get("link"), raw.get("flow")
    if key in Link.model_fields and isinstance(links, dict) and links:
        return f"link.{'bottleneck' if 'bottleneck' in links else next(iter(links))}.{key}"
    if key in Flow.model_fields and isinstance(groups, list) and groups:
        return f"flow.{key}" if len(groups) == 1 else f"flow.0.{key}"
    return None


def _path(loc: tuple[int | str, ...], raw: Any) -> list[str]:
    """The keys of `loc` as they stand in the file: no tags of pydantic's, no deeper than what was written."""
    path: list[str] = []
    node = raw
    for part in loc:
        entries = range(len(node)) if isinstance(node, list) else node if isinstance(node, dict) else ()
        if part in entries:
            node = node[part]
            path.append(str(part))
    return path


def _reason(error: ErrorDetails) -> str:  # noqa: PLR0911 - one answer per kind of mistake
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    match kind:
        case "value_error":
            return str(context["error"])
        case "missing":
            return "this key is required" if isinstance(error["loc"][-1], str) else _pair(given)
        case "too_long" | "too_short":
            return _pair(given) if context["field_type"] == "Tuple" else "expected at least one entry, not none"
        case "union_tag_invalid" if context["tag"] in _SHAPES:
            shapes = [f"a {shape}" for shape in _SHAPES if f"'{shape}'" in context["expected_tags"]]
            return f"expected {' or '.join(shapes)}, not {_shown(given)}"
        case "union_tag_invalid":
            known = [word.strip("' ") for word in str(context["expected_tags"]).split(",")]
            hint = nearest(tag := str(context["tag"]), known) or ";"
            return f'unknown kind "{tag}"{hint} expected one of {", ".join(known)}'
        case "union_tag_not_found":
            return 'expected a name, or a table with the key "kind"'
        case "literal_error":
            return f'"{given}" is not possible; expected {context["expected"]}'
        case "unknown_key" | "table_expected":
            return error["msg"]
    message = error["msg"].replace("Input should be", "expected")
    for ours, theirs in (("table", "dictionary"), ("list", "tuple")):
        message = message.replace(theirs, ours)
    return f"{message}, not {_shown(given)}"


def _pair(given: Any) -> str:
    """The only tuples of a scenario are pairs."""
    return f"expected a list of two, not {_shown(given)}"


def _shown(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
