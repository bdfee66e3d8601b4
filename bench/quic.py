"""Rate and CPU time of QUIC connections under our controllers, as JSON: `python bench/quic.py [ROUNDS]`.

Over the loopback device (`astraead bench-quic`), the best of ROUNDS rounds (default 3) of 5 s each, in turns: other
work on the machine only ever takes away. With root and TUN also one bulk flow over emulated links of 300 Mbit/s and
1 Gbit/s with 10 ms (`astraea run --backend quic`). Floor: 300 Mbit/s for each core, goal 1 Gbit/s.
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from astraea import host
from astraea.errors import UserError
from astraea.eval import api

SCHEMES = ("constant-window", "cubic", "bbr", "copa", "astraea")
SECONDS = 5

LINK = """
duration = "{seconds}s"
[link.bottleneck]
rate = "{rate}Mbps"
delay = "5ms"
buffer = "1bdp"
[[flow]]
path = ["bottleneck"]
ack = {{ every = 2 }}
"""


def loopback(cc: str) -> dict[str, Any]:
    """One transfer without links."""
    command = [str(host.program()), "bench-quic", "--cc", cc, "--seconds", str(SECONDS)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return dict(json.loads(done.stdout))


def emulated(rate: int, cc: str) -> dict[str, Any] | str:
    """One bulk flow over one emulated link, or why not."""
    with tempfile.TemporaryDirectory(prefix="astraea-") as scratch:
        scenario = Path(scratch, "bulk.toml")
        scenario.write_text(LINK.format(seconds=2 * SECONDS, rate=rate))
        try:
            found = api.execute(str(scenario), cc=[cc], backend="quic")
        except UserError as error:
            return str(error)
    (trial,) = found.trials
    return {
        "utilization": trial["metrics"]["utilization"],
        "queue_delay_ms": trial["metrics"]["queue_delay_ms"],
        "emulation": trial["emulation"],
    }


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    runs: dict[str, list[dict[str, Any]]] = {cc: [] for cc in SCHEMES}
    for _ in range(rounds):
        for cc in SCHEMES:
            runs[cc].append(loopback(cc))
    best = {
        cc: {key: max(run[key] for run in found) for key in ("mbps", "mbps_per_sender_core", "mbps_per_receiver_core")}
        for cc, found in runs.items()
    }
    links = {f"{rate} Mbit/s": {cc: emulated(rate, cc) for cc in ("cubic", "astraea")} for rate in (300, 1000)}
    print(json.dumps({"machine": platform.machine(), "loopback": best, "emulated": links}, indent=1))


if __name__ == "__main__":
    main()
