"""One sentence that says what a scenario sets up, from the scenario in results.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from astraea.errors import UserError
from astraea.report.layout import Scenario
from astraea.report.run import Run
from astraea.scenario.overrides import set_key

SOURCES = {"sized": "file transfer", "on_off": "on-off", "poisson": "message", "periodic": "message"}
QUEUES = {"droptail": "drop-tail", "codel": "CoDel", "fq_codel": "FQ-CoDel", "pie": "PIE", "red": "RED"}
MAX_LISTED = 3
"""Links and groups of flows named one by one; more are only counted."""


def sentence(run: Run) -> str:
    """Such as "3 flows (40 s apart, 120 s each) over bottleneck (100 Mbps, 15 ms one way, …)", and what is varied."""
    scenario = _only_point(run) or run.scenario
    groups = [group for group in _items(scenario.get("flow")) if isinstance(group, Mapping)]
    links = scenario.get("link")
    links = links if isinstance(links, Mapping) else {}
    parts = []
    if groups:
        listed = [_group(group) for group in groups[:MAX_LISTED]]
        if len(groups) > MAX_LISTED:
            listed.append(f"{len(groups) - MAX_LISTED} more groups")
        parts.append(_enumerate(listed))
    if links:
        listed = [_link(str(name), link) for name, link in list(links.items())[:MAX_LISTED]]
        if len(links) > MAX_LISTED:
            listed.append(f"{len(links) - MAX_LISTED} more links")
        parts.append(_enumerate(listed))
    swept = dict.fromkeys(key for point in run.points for key in point.values) if scenario is run.scenario else ()
    said = (" over ".join(parts), f"Varied: {', '.join(swept)}" if swept else "")
    return " ".join(f"{text}." for text in said if text)


def _only_point(run: Run) -> dict[str, Any] | None:
    """The scenario as it ran, if its sweep has a single point and so varies nothing."""
    if len(run.points) != 1 or not run.points[0].values:
        return None
    try:
        scenario = deepcopy(run.scenario)
        for key, value in run.points[0].values.items():
            set_key(scenario, key, value)
        Scenario.model_validate(scenario, strict=True)
    except (UserError, ValidationError, RecursionError):
        return None
    return scenario


def _group(group: Mapping[str, Any]) -> str:
    count = int(group.get("count") or 1)
    kind = _kind(group.get("source"))
    words = [str(count), SOURCES.get(kind, ""), "flow" if count == 1 else "flows"]
    if group.get("cc"):
        words.append(f"of {group['cc']}")
    start = group.get("start")
    start = start if isinstance(start, Mapping) else {}
    details = []
    if count > 1 and _nonzero(start.get("every")):
        details.append(f"{_spaced(start['every'])} apart")
    if start.get("poisson"):
        details.append(f"random starts, {_spaced(start['poisson'])} apart on average")
    if group.get("duration"):
        details.append(f"{_spaced(group['duration'])}{' each' if count > 1 else ''}")
    return " ".join(filter(None, words)) + _bracket(details)


def _link(name: str, link: Any) -> str:
    if not isinstance(link, Mapping):
        return name
    details = [_capacity(link)]
    if _nonzero(link.get("delay")):
        details.append(_delay(link["delay"]))
    queue = QUEUES.get(_kind(link.get("queue")), "")
    if link.get("buffer"):
        details.append(f"{queue} buffer {_spaced(link['buffer'])}".strip())
    loss = link.get("loss")
    if isinstance(loss, Mapping):
        details.append("loss in bursts")
    elif isinstance(loss, (int, float)) and 0 < loss <= 1:
        details.append(f"{100 * loss:.3g} % random loss")
    return name + _bracket(details)


def _capacity(link: Mapping[str, Any]) -> str:
    if link.get("trace"):
        trace = link["trace"]
        if isinstance(trace, Mapping):
            return "generated cellular trace"
        return f"trace {str(trace).replace(chr(92), '/').rpartition('/')[2]}"
    if link.get("schedule"):
        return "scheduled rate"
    rate = link.get("rate")
    if isinstance(rate, Mapping):
        return _redrawn(rate)
    return _spaced(rate) if rate else ""


def _delay(delay: Any) -> str:
    if isinstance(delay, Mapping):
        return f"one way {_redrawn(delay)}"
    return "changing delay" if _listed(delay) else f"{_spaced(delay)} one way"


def _redrawn(rule: Mapping[str, Any]) -> str:
    low, high, every = (_spaced(rule.get(key)) for key in ("low", "high", "every"))
    return f"{low} to {high}, redrawn every {every}"


def _spaced(value: Any) -> str:
    """Such as "100 Mbps" for "100Mbps"."""
    return re.sub(r"(?<=\d)(?=[A-Za-z])", " ", str(value)).replace("bdp", "BDP")


def _nonzero(value: Any) -> bool:
    return bool(value) and not re.fullmatch(r"0(\.0*)?\s*[A-Za-z]*", str(value))


def _listed(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _kind(value: Any) -> str:
    return str(value.get("kind", "")) if isinstance(value, Mapping) else str(value or "")


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bracket(details: list[str]) -> str:
    shown = ", ".join(filter(None, details))
    return f" ({shown})" if shown else ""


def _enumerate(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
