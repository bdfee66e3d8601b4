"""Checks of how links and paths fit together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from astraea.errors import nearest
from astraea.scenario.links import Link
from astraea.scenario.schema import Scenario


class TopologyError(ValueError):
    """Links and paths do not fit: `key` is where, `reason` why."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


def check(scenario: Scenario) -> None:
    """Raise `TopologyError` for names that say nothing, unknown or unused links and cyclic or disconnected paths."""
    used: set[str] = set()
    order: dict[str, set[str]] = {name: set() for name in scenario.link}
    _check_names([flow.name for flow in scenario.flow])
    for index, flow in enumerate(scenario.flow):
        if not flow.path:
            raise TopologyError(f"flow.{index}.path", "expected at least one link")
        for name, path in (("path", flow.path), ("return_path", flow.return_path)):
            _check_path(f"flow.{index}.{name}", path, scenario.link)
            used.update(path)
        for before, after in itertools.pairwise(flow.path):
            order[after].add(before)
    for name in scenario.link:
        if name not in used:
            raise TopologyError(f"link.{name}", "no flow crosses this link; expected it in the path of a flow")
    try:
        TopologicalSorter(order).prepare()
    except CycleError as error:
        loop = " -> ".join(error.args[1])
        raise TopologyError("flow", f"the paths of the flows are cyclic: {loop}; expected links in one order") from None


def _check_names(names: Sequence[str]) -> None:
    """Results and `--set flow.NAME.key` tell groups apart by their names, and `flow.1` is the second."""
    for index, name in enumerate(names):
        if name.isdecimal():
            raise TopologyError(f"flow.{index}.name", f'"{name}" reads like a position; expected a name with a letter')
        if name and name in names[:index]:
            raise TopologyError(f"flow.{index}.name", f'flow.{names.index(name)} has the name "{name}" too')


def _check_path(key: str, path: Sequence[str], links: dict[str, Link]) -> None:
    for link in path:
        if link not in links:
            raise TopologyError(
                key, f'no link "{link}"{nearest(link, links) or ";"} expected one of {", ".join(links)}'
            )
        if path.count(link) > 1:
            raise TopologyError(key, f'cyclic: crosses "{link}" twice; expected every link once')
    ends = [links[link].ends for link in path]
    known = [end for end in ends if end is not None]
    if len(known) < len(path):
        return
    for before, after in itertools.pairwise(range(len(path))):
        if known[before][1] != known[after][0]:
            raise TopologyError(
                key,
                f'disconnected: "{path[before]}" ends at {known[before][1]}, '
                f'but "{path[after]}" begins at {known[after][0]}',
            )
    nodes = [known[0][0], *(end[1] for end in known)] if known else []
    if len(set(nodes)) < len(nodes):
        raise TopologyError(key, f"cyclic: visits a node twice ({' -> '.join(nodes)})")
