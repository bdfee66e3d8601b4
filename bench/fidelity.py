"""How far the simulator is from this kernel's TCP, recorded: `sudo python bench/fidelity.py [TRIALS] [OPTION...]`.

Runs `astraea fidelity` with TRIALS trials (default 3) and further options, keeps the comparison in
bench/results/fidelity-DATE.json and prints the rows of bench/README.md. 19 settings x 3 schemes x 30 s take half an
hour for each trial. Leave the machine alone meanwhile.
"""

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = Path("out/fidelity")


def main() -> int:
    """Measure, keep and print."""
    trials, *further = sys.argv[1:] or ["3"]
    program = Path(sys.executable).with_name("astraea")
    command: list[str | Path] = [program, "fidelity", "--trials", trials, "--out", OUT]
    status = subprocess.run([*command, *further], check=False).returncode
    if status != 0:
        return status
    kept = HERE / "results" / f"fidelity-{datetime.datetime.now(datetime.UTC):%Y-%m-%d}.json"
    found = json.loads((OUT / "fidelity.json").read_text())
    kept.write_text(record(found))
    print(f"kept {kept}")
    for line in rows(found):
        print(line)
    return 0


def record(found: dict[str, Any]) -> str:
    """The comparison as JSON with a line for each pair, to be read and compared."""
    head = json.dumps({key: value for key, value in found.items() if key != "pairs"}, indent=1)
    pairs = ",\n".join(f"  {json.dumps(pair)}" for pair in found["pairs"])
    return f'{head[:-2]},\n "pairs": [\n{pairs}\n ]\n}}\n'


def rows(found: dict[str, Any]) -> list[str]:
    """The summary as rows of a Markdown table."""
    lines = []
    for cc, part in found["summary"].items():
        cells = [cc, str(part["pairs"]), str(part["unfaithful"])]
        for name in ("throughput_mbps", "queue_delay_ms", "queue_delay_p95_ms"):
            item = part[name]
            shares = " / ".join(f"{100 * share:.0f} %" for share in item["within"].values())
            cells += [f"{100 * item['median']:.1f} %", shares]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
