"""The emulator's figures as JSON: `sudo .venv/bin/python bench/emu.py [ROUNDS] [--only PART] [--out FILE]`.

One BBR flow of iperf3 behind `astraea link`, in turns with Mahimahi's shells (mm-delay and mm-link) where they are on
PATH. The median of ROUNDS rounds (default 3) is reported, and every round. The whole runs inside a link of its own, so
that all traffic stays in namespaces made for it, where TCP's buffers can be made large without touching the host.

* `sustained`: goodput, lateness and CPU at 100 Mbit/s to 5 Gbit/s, 10 ms one way
* `beside_mahimahi`: share of the link's rate that TCP delivers, 15 ms one way, buffer of one bandwidth-delay product
* `idle`: round-trip time of ping beyond twice the one-way delay

CPU is the emulator's threads over the life of the link, with the kernel's work on delivery, as a share of one core.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PORT = 5201
BUFFER = "4096 1048576 67108864"
NOBODY = 65534

SUSTAINED = [100, 1000, 2000, 5000]
BESIDE_MAHIMAHI = [96, 504, 1008]
"""Mbit/s; multiples of 12, one opportunity of 1500 bytes a millisecond."""


def program() -> str:
    """The program to measure: `$ASTRAEAD`, or what `make build` made."""
    path = os.environ.get("ASTRAEAD", str(ROOT / ".venv/bin/astraead"))
    if not os.access(path, os.X_OK):
        sys.exit(f"{path}: not there; `make build` makes it")
    return path


def large_buffers(process: str = "self") -> None:
    """Lets TCP fill the path, in the network namespace of a process."""
    script = f"echo {BUFFER} > /proc/sys/net/ipv4/tcp_rmem; echo {BUFFER} > /proc/sys/net/ipv4/tcp_wmem"
    subprocess.run(["nsenter", f"--net=/proc/{process}/ns/net", "sh", "-c", script], check=True)


def iperf(shell: list[str], seconds: float) -> float:
    """Goodput in Mbit/s of one BBR flow out of `shell`, after two seconds of start-up."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        result, ready = Path(folder, "result"), Path(folder, "ready")
        # The command says where it is, and waits until its namespace has been prepared.
        client = f"iperf3 -J -c $BASE -p {PORT} -C bbr -O 2 -t {seconds} > {result}"
        script = (
            f"BASE=${{ASTRAEA_BASE:-$MAHIMAHI_BASE}}; echo $$ > {ready}.pid; mv {ready}.pid {ready}; sleep 1; {client}"
        )
        server = subprocess.Popen(["iperf3", "-s", "-1", "-p", str(PORT)], stdout=subprocess.DEVNULL)
        # What the outer link has set would lead out of it.
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_BASE")}
        try:
            process = subprocess.Popen([*shell, "sh", "-c", script], env=environment)
            deadline = time.monotonic() + 10
            while not ready.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            large_buffers(ready.read_text().strip())
            process.wait(timeout=seconds + 30)
            return float(json.loads(result.read_text())["end"]["sum_received"]["bits_per_second"]) / 1e6
        finally:
            server.kill()
            server.wait()


def link(*options: str) -> list[str]:
    """A shell behind our link."""
    return [program(), "link", "--no-meter", *options, "--"]


def sustained(mbps: int, seconds: float) -> dict[str, Any]:
    """One flow at a rate, and how late its packets were."""
    with tempfile.NamedTemporaryFile() as file:
        options = [f"--rate={mbps}Mbps", "--delay=10ms", "--report", file.name]
        goodput = iperf(link(*options), seconds)
        report = json.loads(Path(file.name).read_text())
    return {
        "goodput_mbps": goodput,
        "share": goodput / mbps,
        "late_p50_us": report["late_us"]["p50"],
        "late_p99_us": report["late_us"]["p99"],
        "late_p999_us": report["late_us"]["p99.9"],
        "cpu_share": report["cpu_share"] * report["elapsed_s"] / (seconds + 2),
        "unfaithful": report["unfaithful"],
    }


def mahimahi(mbps: int, folder: str) -> list[str] | None:
    """Mahimahi's shells for the same link, which only work for an ordinary user; None where they are not installed."""
    shells = [shutil.which(name) for name in ("mm-delay", "mm-link")]
    if None in shells:
        return None
    trace = Path(folder, f"{mbps}")
    trace.write_text("1\n" * (mbps // 12))
    packets = round(mbps * 1e6 * 0.03 / 8 / 1500)
    queue = [f"--{way}link-queue=droptail" for way in ("up", "down")]
    queue += [f"--{way}link-queue-args=packets={packets}" for way in ("up", "down")]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*user, str(shells[0]), "15", str(shells[1]), str(trace), str(trace), *queue, "--"]


def beside_mahimahi(mbps: int, seconds: float) -> dict[str, float]:
    """Share of the rate that one flow gets behind either emulator."""
    shares = {"astraea": iperf(link(f"--rate={mbps}Mbps", "--delay=15ms"), seconds) / mbps}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shell = mahimahi(mbps, folder)
        if shell is not None:
            shares["mahimahi"] = iperf(shell, seconds) / mbps
    return shares


def idle(delay_ms: int) -> float:
    """Mean round-trip time in ms beyond what was asked for."""
    shell = link(f"--delay={delay_ms}ms", "--rate=1Gbps")
    command = [*shell, "sh", "-c", "ping -q -c 50 -i 0.02 $ASTRAEA_BASE"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(output.split("mdev = ")[1].split("/")[1]) - 2 * delay_ms


def median(rounds: list[Any]) -> Any:
    """The median of each figure."""
    first = rounds[0]
    if isinstance(first, dict):
        return {key: median([entry[key] for entry in rounds]) for key in first if key != "unfaithful"}
    return round(statistics.median(rounds), 4)


def measure(rounds: int, seconds: float, only: str) -> dict[str, Any]:
    """Everything whose name has `only` in it, in turns."""
    large_buffers()
    parts: dict[str, Callable[[], Any]] = {
        **{f"sustained {mbps}": partial(sustained, mbps, seconds) for mbps in SUSTAINED},
        **{f"beside_mahimahi {mbps}": partial(beside_mahimahi, mbps, seconds) for mbps in BESIDE_MAHIMAHI},
        **{f"idle {delay} ms": partial(idle, delay) for delay in (1, 15)},
    }
    chosen = {name: part for name, part in parts.items() if only in name}
    if not chosen:
        sys.exit(f"--only {only!r}: nothing has this in its name; expected part of one of {', '.join(parts)}")
    every: dict[str, list[Any]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name, part in chosen.items():
            every[name].append(part())
    return {
        "machine": f"{os.uname().machine}, {os.cpu_count()} cores, kernel {os.uname().release}",
        "load_at_end": [round(load, 2) for load in os.getloadavg()],
        "rounds": rounds,
        "seconds": seconds,
        "mahimahi": shutil.which("mm-link") is not None,
        "median": {name: median(figures) for name, figures in every.items()},
        "every_round": every,
    }


def main() -> None:
    """Enters a link that does nothing, and measures inside."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only", default="", metavar="PART", help="only what has this in its name, such as sustained")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        missing = [name for name in ("iperf3", "ping", "nsenter") if shutil.which(name) is None]
        if missing:
            sys.exit(f"{', '.join(missing)}: not found; install iperf3, iputils-ping and util-linux")
        raise SystemExit(subprocess.run([*link(), sys.executable, *sys.argv, "--inside"], check=False).returncode)
    text = json.dumps(measure(arguments.rounds, arguments.seconds, arguments.only), indent=2)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
