"""Half an hour of everything at once: `python bench/serve_soak.py [--minutes M] [--out FILE]`.

A service on a UNIX socket and on UDP, under 800 and 200 flows at 30 ms; clients that come, ask for a few flows and
leave; connections that send garbage; the policy read again every ten seconds. Its memory is sampled every ten seconds:
it must not grow. Loopback and UNIX sockets only.
"""

import argparse
import json
import random
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from astraea.client import Client, Report
from astraea.host import program

EVERY = 10.0
"""Time between samples in s."""

PATIENCE = 10.0
"""How long a visitor waits, in s: other work on the machine is not the question here."""


def memory(process: int) -> float:
    """Resident memory in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6


def descriptors(process: int) -> int:
    """Open file descriptors."""
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def visit(address: str, path: str, rng: random.Random) -> bool:
    """A client that comes and goes, and one that makes no sense. Returns whether the first one was served."""
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(path)
        stranger.sendall(rng.randbytes(rng.randrange(1, 2000)))
    client = Client(address, timeout=PATIENCE)
    client.connect(PATIENCE)
    with closing(client):
        reports = {rng.getrandbits(64): Report(rate=1700, window=6e4, srtt=0.045) for _ in range(20)}
        decisions = client.decide_all(reports)
    return all(decision.version is not None for decision in decisions.values())


def soak(minutes: float) -> dict[str, Any]:
    """Everything."""
    rng = random.Random(1)
    with (
        tempfile.TemporaryDirectory(prefix="astraea-soak-") as directory,
        socket.socket(type=socket.SOCK_DGRAM) as free,
    ):
        free.bind(("127.0.0.1", 0))
        path = f"{directory}/serve.sock"
        unix, udp = f"unix:{path}", f"udp:127.0.0.1:{free.getsockname()[1]}"
        free.close()
        astraead = str(program())
        serve = [astraead, "serve", "--listen", unix, "--listen", udp, "--policy", "astraea-paper", "--max-wait", "1"]
        children = [subprocess.Popen([*serve, "--log-level", "error"])]
        try:
            Client(unix).connect(10.0)
            load = [astraead, "bench-serve", "--json", "--duration", f"{minutes * 60}s"]
            over = (["--connect", unix, "--flows", "800", "--connections", "40"], ["--connect", udp, "--flows", "200"])
            children += [subprocess.Popen([*load, *arguments], stdout=subprocess.PIPE) for arguments in over]
            service, samples, visits, served = children[0].pid, [], 0, 0
            until = time.monotonic() + minutes * 60
            while time.monotonic() < until:
                turn = time.monotonic() + EVERY
                while time.monotonic() < turn:
                    visits += 1
                    served += visit(unix, path, rng)
                    time.sleep(0.05)
                children[0].send_signal(signal.SIGHUP)
                samples.append({"memory_mb": memory(service), "descriptors": descriptors(service)})
            loads = [json.loads(child.communicate()[0]) for child in children[1:]]
            children[0].terminate()
            status = children[0].wait(10)
        finally:
            for child in children:
                child.kill()
                child.wait()
    return {
        "minutes": minutes,
        "samples": samples,
        "visits": visits,
        "served": served,
        "loads": loads,
        "status": status,
    }


def main() -> None:
    """Soaks and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--out", type=Path, help="write JSON to this file")
    given = parser.parse_args()
    found = soak(given.minutes)
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    samples = found["samples"]
    first, last = samples[len(samples) // 10], samples[-1]
    print(f"memory, MB: {first['memory_mb']:.2f} after a tenth of the time, {last['memory_mb']:.2f} at the end")
    print(f"file descriptors: {first['descriptors']}, {last['descriptors']}")
    print(f"visits: {found['visits']}, served: {found['served']}; status at the end: {found['status']}")
    for load in found["loads"]:
        print(f"{load['address']}: {load['decisions']} decisions, {load['fallbacks']} by the rule")


if __name__ == "__main__":
    main()
