"""`astraea bench`: how fast the simulator and the inference service are on this machine."""

from __future__ import annotations

import json as json_module
from typing import Annotated, Any

import typer

from astraea import _native
from astraea.cli import host
from astraea.cli.output import Json, err, out, table, write_json
from astraea.eval import registry
from astraea.report.numbers import show
from astraea.scenario import document
from astraea.scenario.points import points
from astraea.scenario.resolve import resolve

app = typer.Typer(help="Measure how fast this machine is.", no_args_is_help=True)
app.command("serve", context_settings=host.CONTEXT)(
    host.hand_over("bench-serve", "Put a load on an inference service.")
)

CASES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("three-flows, cubic", "three-flows", ()),
    ("one flow, 10 Gbit/s", "high-speed", ("flow.0.duration=5s",)),
    ("10 flows, 600 Mbit/s", "many-flows", ("flow.0.count=10", "flow.0.duration=20s")),
    ("1000 flows, 600 Mbit/s", "many-flows", ("flow.0.count=1000", "flow.0.duration=20s")),
)
"""Name, scenario and changed keys."""


@app.callback()
def group() -> None:
    """Measure how fast this machine is."""


@app.command()
def sim(
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each case; the fastest counts.")] = 3,
    json: Json = False,
) -> None:
    """Simulate standard cases with CUBIC on one thread, recording nothing."""
    if _native.build_profile != "release":
        err().print("astraea: this is a debug build; its speed says nothing")
    measured = [_measure(name, scenario, changes, repeat) for name, scenario, changes in CASES]
    if json:
        write_json({"build_profile": _native.build_profile, "cases": measured})
        return
    keys = ("simulated_s", "wall_s", "simulated_s_per_s", "million_packets_per_s", "million_events_per_s")
    headings = ("simulated s", "wall s", "simulated s/s", "Mpackets/s", "Mevents/s")
    rows = [[case["case"], *(show(case[key]) for key in keys)] for case in measured]
    out().print(table(["case", *headings], rows, numbers=len(keys)))


def _measure(name: str, scenario: str, changes: tuple[str, ...], repeat: int) -> dict[str, Any]:
    point = points(document.load(scenario, changes))[0]
    config = resolve(point.scenario, registry.scheme("cubic"), {}, 1, {}).config | {"slot_ns": 0}
    text = json_module.dumps(config)
    simulated, wall, packets, events = min((_native.bench(text, 1) for _ in range(repeat)), key=lambda run: run[1])
    return {
        "case": name,
        "simulated_s": simulated,
        "wall_s": wall,
        "packets": packets,
        "simulated_s_per_s": simulated / wall,
        "million_packets_per_s": packets / wall / 1e6,
        "million_events_per_s": events / wall / 1e6,
    }
