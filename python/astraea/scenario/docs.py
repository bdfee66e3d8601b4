"""Writes docs/scenario-format.md from the schema: `python -m astraea.scenario.docs > docs/scenario-format.md`."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from astraea.scenario import flows, links, schema
from astraea.scenario.fields import Table
from astraea.scenario.points import shipped

INTRO = """\
# Scenario format

<!-- Generated from the schema by `python -m astraea.scenario.docs`; do not edit. -->

A scenario is a TOML file: links, flows that cross them, and what to vary. `astraea scenarios` lists those that are
shipped, `astraea scenarios three-flows > mine.toml` copies one, `astraea run mine.toml` runs it.

```toml
title = "Three flows, 40 s apart"
trials = 10

[link.bottleneck]
rate = "100Mbps"
delay = "15ms" # one way: RTT 30 ms
buffer = "1bdp"

[[flow]]
count = 3
start = { every = "40s", jitter = "30ms" }
duration = "120s"
path = ["bottleneck"]
```

An unknown key, a missing unit and the like are errors of one line that name the file, the key and what was expected.

## Values

| kind | written as | meaning |
| --- | --- | --- |
| rate | `"100Mbps"`, `"1.5Gbit/s"`, `"64kbps"`, `"9600bps"` | from 1 bps; k = 1000; counts packets of 1500 bytes |
| time | `"30ms"`, `"40s"`, `"5min"`, `"1h"`, `"10us"`, `"100ns"` | from zero to 115 days; a bare 0 needs no unit |
| size | `"10MB"`, `"375kB"`, `"1448B"`, `"4MiB"` | k = 1000, Ki = 1024 |
| ratio | `0.01` or `"1%"` | from 0 to 1 |
| buffer | `"1bdp"`, `"375kB"`, `"250packets"`, `"100ms"`, `"infinite"` | a queue's limit, less the packet in service |

**Base RTT** of a flow: the propagation delays of the links on its path and on its way back, and twice its
`extra_delay`. Without a `return_path` the way back has the delays of the path. The time that a packet takes to be sent
does not count, nor does jitter; of a delay in steps or redrawn the smallest counts.

**bdp**: the link's rate x the *longest* base RTT of the flows that cross it / 8. The rate of a link that changes is
its mean: of a trace over its length, of a schedule over its `period` or else the whole scenario, of a redrawn rate
(low + high) / 2. A buffer in time is the rate, likewise, x the time. A limit in bytes is at least one packet, 1500.

**Randomness** of a scenario (starts, redrawn rates and delays) and of its packets (loss, jitter) comes from the trial's
seed: trial k has the seed `--seed` + k, for every scheme and every point of a sweep.

## Changing keys from the command line

`--set KEY=VALUE` sets any key, with dots: `--set link.bottleneck.rate=50Mbps --set flow.0.start.every=20s`. Groups of
flows go by their index or their `name` (`flow.competitors.count`); with a single group it may be left out
(`flow.count`). The value is TOML, or text where it is not. Setting one of `rate`, `schedule` and `trace` takes the
place of the others, and of a `period` unless it is `schedule`. A key that is set is no longer swept, nor is a table
that it is in: `flow.0.start.every=1s` and `flow.0.start=1s` both end a sweep over `flow.0.start`. `--trace FILE` sets
the trace of the link called `bottleneck`, or of the only link. Files named on the command line are relative to the
current directory, those in a scenario to its file.

## Topology

Links go one way and are joined by the paths of flows. Each link must be crossed by a flow, a path crosses a link
once, and all paths agree on the order of links (no cycles). With `ends`, the links of a path must also join end to end.
"""

SECTIONS: tuple[tuple[str, str, tuple[type[Table], ...]], ...] = (
    ("Top level", "", (schema.Scenario,)),
    ("`[link.NAME]`", "", (links.Link,)),
    ("Forms of `rate`, `trace` and `delay`", "", (links.RandomRate, links.GeneratedTrace, links.RandomDelay)),
    (
        "`queue`",
        'A name, `queue = "codel"`, or a table with parameters, `queue = { kind = "codel", target = "10ms" }`.',
        (links.DropTail, links.CoDel, links.FqCoDel, links.Pie, links.Red),
    ),
    ("Forms of `loss`, and `reorder`", "", (links.GilbertElliott, links.Reorder)),
    ("`[[flow]]`", "", (flows.Flow,)),
    ("`start`", "", (flows.Start,)),
    (
        "`source`",
        'A name, `source = "bulk"`, or a table, `source = { kind = "sized", size = "10MB" }`.',
        (flows.Bulk, flows.Sized, flows.OnOff, flows.PoissonMessages, flows.PeriodicMessages),
    ),
    ("`ack`", "", (flows.Ack,)),
    (
        "`[[sweep]]`",
        "Every trial of results.json names its point, and `points` has a summary of each.\n\n"
        "```toml\n[[sweep]]\n"
        'vary."link.bottleneck.rate" = ["20Mbps", "50Mbps"]\n'
        'vary."flow.0.count" = [2, 4, 8]\n```',
        (schema.Sweep,),
    ),
)


SHIPPED = """\
## Shipped scenarios

What `astraea scenarios` lists. Where the source is a figure, the scenario is that experiment, with the paper's numbers
as far as it gives them; what a file changes or adds it says in comments (`astraea scenarios NAME`).

| name | what it is | source | points | trials |
| --- | --- | --- | --- | --- |"""


def text() -> str:
    """The whole page."""
    parts = [INTRO]
    for heading, note, tables in SECTIONS:
        parts.append(f"## {heading}\n")
        if note:
            parts.append(f"{note}\n")
        for table in tables:
            parts.append(f"{inspect.getdoc(table)}\n")
            parts.append("\n".join(_rows(table)) + "\n")
    cells = (
        f"`{each.name}` | {each.title} | {each.source or 'ours'} | {each.points} | {each.trials}" for each in shipped()
    )
    parts.append("\n".join([SHIPPED, *(f"| {row} |" for row in cells)]) + "\n")
    return "\n".join(parts)


def _rows(table: type[Table]) -> Iterable[str]:
    yield "| key | value | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for name, field in table.model_fields.items():
        cells = (f"`{name}`", _kind(field), _default(field), field.description or "")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind(field: FieldInfo) -> str:
    """What a value is written as."""
    extra = field.json_schema_extra
    unit = extra.get("unit") if isinstance(extra, dict) else None
    return str(unit) if unit else _type(field.annotation)


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{json.dumps(value)}`" for value in get_args(annotation))
    known = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
    if annotation in known:
        return known[annotation]
    if get_origin(annotation) is list:
        inner = get_args(annotation)[0]
        return "tables" if inspect.isclass(inner) and issubclass(inner, Table) else f"list of {_type(inner)}"
    if get_origin(annotation) is tuple:
        return "two texts"
    if get_origin(annotation) is dict or (inspect.isclass(annotation) and issubclass(annotation, Table)):
        return "table"
    options = [option for option in get_args(annotation) if option is not type(None)]
    return " or ".join(dict.fromkeys(map(_type, options)))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None or field.default in ("", [], {}):
        return "none"
    return f"`{json.dumps(field.default)}`"


if __name__ == "__main__":
    sys.stdout.write(text())
