"""iperf3 under several controllers of this kernel, in turns over the same emulated link, as a table:
`sudo .venv/bin/python bench/iperf3.py [CONTROLLER,…] [--seconds S] [--json FILE]`.

Each runs alone behind `astraea link`: 100 Mbit/s, 30 ms there and back, and a buffer of one bandwidth-delay product.
Goodput is what the server of iperf3 received, the round-trip time what the client's TCP saw, the queue what the link
saw. `astraea` must be attached. Everything happens in network namespaces made for it.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
ASTRAEAD = ROOT / ".venv/bin/astraead"
LINK = ["--rate=100Mbps", "--delay=15ms", "--buffer=1bdp"]
INSIDE = "ASTRAEA_IPERF3_INSIDE"


def give_up(reason: str) -> NoReturn:
    """One line, and the exit status of bad input."""
    print(f"bench/iperf3.py: {reason}", file=sys.stderr)
    sys.exit(2)


def missing() -> str | None:
    """What stands in the way, in one line."""
    if os.geteuid() != 0:
        return "needs root: it makes network namespaces"
    if shutil.which("iperf3") is None:
        return "iperf3 is not installed: apt-get install iperf3 (or dnf, pacman, zypper install iperf3)"
    if not os.access(ASTRAEAD, os.X_OK):
        return f"{ASTRAEAD} is not there; `make build` makes it"
    return None


def measure(controller: str, seconds: float) -> dict[str, Any]:
    """One connection of iperf3 under a controller."""
    with tempfile.TemporaryDirectory() as folder:
        result, report = Path(folder, "result"), Path(folder, "report")
        client = f"exec iperf3 --json -c $ASTRAEA_BASE -C {shlex.quote(controller)} -t {seconds:g} > {result}"
        link = [str(ASTRAEAD), "link", "--no-meter", f"--report={report}", *LINK, "--", "sh", "-c", client]
        server = subprocess.Popen(["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.3)
            subprocess.run(link, check=False, timeout=seconds + 60)
        finally:
            server.kill()
            server.wait()
        answer = json.loads(result.read_text() or "{}") if result.exists() and report.exists() else {}
        if "end" not in answer or "error" in answer:
            give_up(f"iperf3 -C {controller}: {answer.get('error', 'it did not run behind the link')}")
        link_saw = json.loads(report.read_text())
    end, sender = answer["end"], answer["end"]["streams"][0]["sender"]
    return {
        "controller": controller,
        "goodput_mbps": end["sum_received"]["bits_per_second"] / 1e6,
        "retransmissions": sender["retransmits"],
        "rtt_mean_ms": sender["mean_rtt"] / 1e3,
        "rtt_max_ms": sender["max_rtt"] / 1e3,
        "queue_mean_ms": link_saw["links"]["up"]["queue_delay_mean_ms"],
        "queue_p95_ms": link_saw["links"]["up"]["queue_delay_p95_ms"],
        "unfaithful": link_saw["unfaithful"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("controllers", nargs="?", default="astraea,cubic,bbr")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    arguments = parser.parse_args()
    if (reason := missing()) is not None:
        give_up(reason)
    if INSIDE not in os.environ:
        # A network of its own, so that the host's, with its ports and routes, is left alone.
        alone = ["unshare", "--net", "--", sys.executable, *sys.argv]
        sys.exit(subprocess.run(alone, env={**os.environ, INSIDE: "1"}, check=False).returncode)
    runs = [measure(controller, arguments.seconds) for controller in arguments.controllers.split(",")]
    table = Table(title=f"iperf3 for {arguments.seconds:g} s over 100 Mbit/s, 30 ms, buffer 1 BDP")
    table.add_column("iperf3 -C")
    for column in ("goodput\nMbit/s", "retrans-\nmissions", "RTT, ms\nmean", "\nmax", "queue, ms\nmean", "\np95"):
        table.add_column(column, justify="right")
    for run in runs:
        table.add_row(
            run["controller"],
            f"{run['goodput_mbps']:.1f}",
            str(run["retransmissions"]),
            f"{run['rtt_mean_ms']:.1f}",
            f"{run['rtt_max_ms']:.1f}",
            f"{run['queue_mean_ms']:.1f}",
            f"{run['queue_p95_ms']:.1f}",
        )
    console = Console()
    console.print(table)
    for run in runs:
        for problem in run["unfaithful"]:
            console.print(f"warning: {run['controller']}: {problem}", style="yellow")
    if arguments.json:
        arguments.json.write_text(json.dumps(runs, indent=2) + "\n")


if __name__ == "__main__":
    main()
