"""Changing keys of a scenario before it is checked: `--set`, `--trace` and the points of a sweep."""

from __future__ import annotations

import tomllib
from typing import Any

from astraea.errors import UserError, nearest

_CAPACITIES = ("rate", "schedule", "trace")
"""Keys of a link that exclude each other: setting one takes the place of the others."""

_SHORTHANDS = {"queue": "kind", "source": "kind", "start": "at"}
"""Keys whose text stands for a table with one key."""


def parse(text: str) -> tuple[str, Any]:
    """Split `key=value`; the value is read as TOML, or taken as text when it is none (50Mbps)."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f'--set {text}: expected key=value, e.g. "link.bottleneck.rate=50Mbps"')
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return key.strip(), value.strip()


def keys_of(key: str, value: Any) -> set[str]:
    """The single keys that are set when `key` gets `value`: those of a table, and of text that stands for one."""
    if isinstance(value, dict) and value:
        return set().union(*(keys_of(f"{key}.{name}", part) for name, part in value.items()))
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return set().union(*(keys_of(f"{key}.{index}", part) for index, part in enumerate(value)))
    name = _SHORTHANDS.get(key.rpartition(".")[2])
    return {f"{key}.{name}" if name and key.count(".") == 2 else key}


def replaced_by(key: str) -> set[str]:
    """The keys that lose their effect when `key` is set: itself, and a link's other capacities."""
    head, _, last = key.rpartition(".")
    if head.startswith("link.") and head.count(".") == 1 and last in _CAPACITIES:
        return {key, *(f"{head}.{name}" for name in _replaced(last))}
    return {key}


def overlaps(swept: str, keys: set[str]) -> bool:
    """Whether a sweep over `swept` changes one of `keys`, or a table that it is in, or something in it."""
    return any(f"{key}.".startswith(f"{swept}.") or f"{swept}.".startswith(f"{key}.") for key in keys)


def _replaced(capacity: str) -> tuple[str, ...]:
    """Keys of a link that go when it gets a capacity. A period belongs to the schedule."""
    return _CAPACITIES if capacity == "schedule" else (*_CAPACITIES, "period")


def set_key(raw: dict[str, Any], key: str, value: Any) -> str:
    """Set `key` (dotted, e.g. "flow.0.start.every") in the raw scenario; returns it with names as indices.

    Raises `UserError` for a path that leads nowhere; whether the last key exists is for the schema to say.
    """
    parts = key.replace("[", ".").replace("]", "").split(".")
    if "" in parts:
        raise UserError(f'"{key}" has an empty part; expected e.g. "link.bottleneck.rate"')
    node: Any = raw
    walked: list[str] = []
    while len(parts) > 1 or isinstance(node, list):
        if isinstance(node, list):
            walked.append(_index(node, parts, ".".join(walked)))
            node = node[int(walked[-1])]
            continue
        part = parts.pop(0)
        node = _descend(node, part, walked)
        walked.append(part)
    if not parts:
        raise UserError(f"{key}: expected a key of it, e.g. {key}.count")
    if not isinstance(node, dict):
        raise UserError(f"{key}: {'.'.join(walked)} is not a table")
    if walked[:1] == ["link"] and len(walked) == 2 and parts[0] in _CAPACITIES:
        for name in _replaced(parts[0]):
            node.pop(name, None)
    node[parts[0]] = value
    return ".".join([*walked, parts[0]])


def _descend(node: Any, part: str, walked: list[str]) -> Any:
    """The table or list `part` of `node`, made when it is absent, except that links are never made."""
    where = ".".join([*walked, part])
    if not isinstance(node, dict):
        raise UserError(f"{where}: {'.'.join(walked)} is not a table")
    if walked == ["link"] and part not in node:
        raise UserError(f"{where}: no such link{nearest(part, node)}")
    child = node.setdefault(part, {})
    if part in _SHORTHANDS and not isinstance(child, dict):
        child = node[part] = {_SHORTHANDS[part]: child}
    if not isinstance(child, (dict, list)):
        raise UserError(f"{where}: is not a table, it has no keys")
    return child


def _index(groups: list[Any], parts: list[str], where: str) -> str:
    """Take the index, or the name, of a group from `parts`; with a single group it may be left out."""
    if not parts:
        raise UserError(f"{where}: expected a key of one of its entries, e.g. {where}.0")
    if parts[0] in map(str, range(len(groups))):
        return parts.pop(0)
    labels = [group.get("name", "") if isinstance(group, dict) else "" for group in groups]
    if parts[0] in labels:
        return str(labels.index(parts.pop(0)))
    if len(groups) == 1 and not parts[0].lstrip("-").isdecimal():
        return "0"
    known = ", ".join(f"{where}.{label or index}" for index, label in enumerate(labels))
    raise UserError(f"{where}.{parts[0]}: no such entry; expected one of {known}")
