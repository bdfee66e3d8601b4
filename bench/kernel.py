"""Schemes on this kernel's TCP, beside the simulator in the same settings, as tables in Markdown:
`sudo .venv/bin/python bench/kernel.py [GROUP,…] [--cc SCHEME,…] [--out DIR]`.

Each group is a scenario of the papers, shortened where nothing but its length is lost; README.md here records what came
out. The simulator's flows bunch packets and acknowledgements as Linux's do. Real time: about half an hour for all
groups but `three-flows`, and as long again for that one; for one scheme (`--cc astraea`) a quarter of that. Results and
one report with all groups on real TCP go to DIR; what is there already is not measured again.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ASTRAEA = os.environ.get("ASTRAEA", str(ROOT / ".venv/bin/astraea"))
SCENARIOS = ROOT / "scenarios"

ALL = "astraea,cubic,bbr,newreno"

GROUPS: dict[str, dict[str, Any]] = {
    "three-flows": {"cc": "astraea", "trials": 10},
    "three-flows-short": {
        "scenario": "three-flows",
        "cc": ALL,
        "trials": 1,
        "set": ["flow.0.start.every=10s", "flow.0.duration=30s"],
    },
    "rtt-fairness": {"cc": ALL, "set": ["flow.0.duration=30s"]},
    "beside-cubic": {
        "scenario": "friendliness",
        "cc": ALL,
        "set": ["flow.test.duration=30s", "flow.competitors.duration=30s"],
        "vary": {"flow.competitors.count": [1, 4]},
    },
    "beside-bbr": {
        "scenario": "friendliness",
        "cc": ALL,
        "set": ["flow.test.duration=30s", "flow.competitors.duration=30s", "flow.competitors.cc=bbr"],
        "vary": {"flow.competitors.count": [1]},
    },
    "buffers": {
        "cc": ALL,
        "trials": 1,
        "set": ["flow.0.duration=20s"],
        "vary": {"link.bottleneck.buffer": ["0.1bdp", "1bdp", "4bdp"]},
    },
    "cellular": {"cc": ALL, "set": ["flow.0.duration=30s"]},
    "many-flows": {"cc": ALL, "set": ["flow.0.duration=20s"], "vary": {"flow.0.count": [100]}},
}

COLUMNS = {
    "jain": ("Jain", 1, 3),
    "convergence_settle_s": ("settled, s", 1, 2),
    "stability_mbps": ("stability, Mbit/s", 1, 2),
    "utilization": ("utilization, %", 100, 1),
    "queue_delay_ms": ("queue, ms", 1, 2),
    "queue_delay_p95_ms": ("p95", 1, 1),
    "loss": ("loss, %", 100, 2),
    "throughput_ratio": ("own / neighbours'", 1, 2),
}


def scenario(group: str, folder: Path) -> str:
    """The scenario of a group: one that is shipped, or a copy with fewer points."""
    plan = GROUPS[group]
    name = plan.get("scenario", group)
    if "vary" not in plan:
        return str(name)
    text = (SCENARIOS / f"{name}.toml").read_text()
    text = text[: text.index("[[sweep]]")]
    tomllib.loads(text)
    vary = "".join(f'[[sweep]]\nvary."{key}" = {json.dumps(values)}\n' for key, values in plan["vary"].items())
    path = folder / f"{group}.toml"
    path.write_text(text + vary)
    return str(path)


def run(group: str, backend: str, folder: Path, cc: str | None) -> dict[str, Any]:
    """Results of a group on a backend; those that are there already are taken as they are."""
    out = folder / f"{group}-{backend}"
    if not (out / "results.json").exists():
        plan = GROUPS[group]
        command = [ASTRAEA, "run", scenario(group, folder), "--backend", backend, "--cc", cc or plan["cc"], "-q"]
        command += ["--trials", str(plan.get("trials", 2)), "--no-report", "--out", str(out)]
        for setting in plan.get("set", []) + (bunching(group) if backend == "sim" else []):
            command += ["--set", setting]
        # The rest of the machine waits for what has to be in time (sched(7), autogroups).
        first = 'echo -20 > /proc/self/autogroup; exec "$@"'
        subprocess.run(["setsid", "--wait", "sh", "-c", first, "sh", *command], check=True)
    return dict(json.loads((out / "results.json").read_text()))


def bunching(group: str) -> list[str]:
    """What Linux's flows do that the simulator's have to be told."""
    name = GROUPS[group].get("scenario", group)
    count = len(tomllib.loads((SCENARIOS / f"{name}.toml").read_text())["flow"])
    return [f"flow.{index}.{key}" for index in range(count) for key in ("burst=1ms", "ack.every=2")]


def rows(results: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Means of every metric, by point and scheme."""
    found = {}
    for point in results["points"]:
        for scheme, metrics in point["summary"].items():
            found[point["label"], scheme] = {name: (metrics.get(name) or {}).get("mean") for name in COLUMNS}
    return found


def late(results: dict[str, Any]) -> str:
    """How many trials had late links."""
    count = sum(bool(trial.get("unfaithful")) for trial in results["trials"])
    return f", {count} of {len(results['trials'])} trials with late links" if count else ""


def table(group: str, kernel: dict[str, Any], simulated: dict[str, Any]) -> str:
    """Figures of the kernel / the simulator."""
    real, ideal = rows(kernel), rows(simulated)
    used = [name for name in COLUMNS if any(row[name] is not None for row in real.values())]
    lines = [f"**{group}**, kernel / simulator{late(kernel)}:", ""]
    lines.append("| scheme | " + " | ".join(COLUMNS[name][0] for name in used) + " |")
    lines.append("| --- |" + " --- |" * len(used))
    for (label, scheme), row in real.items():
        cells = [f"`{scheme}`{', ' + label if label else ''}"]
        for name in used:
            _, factor, places = COLUMNS[name]
            pair = (row[name], ideal[label, scheme][name])
            cells.append(" / ".join("–" if x is None else f"{x * factor:.{places}f}" for x in pair))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="?", default=",".join(GROUPS))
    parser.add_argument("--cc", help="schemes in place of each group's")
    parser.add_argument("--out", type=Path, default=Path("out/kernel"))
    arguments = parser.parse_args()
    wanted = arguments.groups.split(",")
    if unknown := [group for group in wanted if group not in GROUPS]:
        print(f"bench/kernel.py: no group {unknown[0]}; expected some of {', '.join(GROUPS)}", file=sys.stderr)
        sys.exit(2)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for group in wanted:
        real, ideal = (run(group, backend, arguments.out, arguments.cc) for backend in ("kernel", "sim"))
        print(table(group, real, ideal), flush=True)
    folders = [str(arguments.out / f"{group}-kernel") for group in wanted]
    subprocess.run([ASTRAEA, "report", *folders, "--out", str(arguments.out / "report.html")], check=True)


if __name__ == "__main__":
    main()
