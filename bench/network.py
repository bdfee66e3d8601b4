"""Time of one evaluation of a policy's network on one core: `python bench/network.py [SECONDS] [--json]`.

Networks of random weights, alone and 64 states at a time. `astraea` is the evaluation itself, `astraea, Python` a call
of `Policy.forward` with NumPy arrays, and `onnxruntime, Python` the same network through its Python interface on one
thread, if it is installed. Each figure is the best of 25 rounds of SECONDS each (default 0.05): other work on the
machine only ever takes away.
"""

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from rich.console import Console
from rich.table import Table

import astraea
from astraea._native import Policy, build_profile

SHAPES = {"paper": (40, 256, 128, 64, 1), "guided": (25, 64, 32, 1)}
"""The papers' network, and that of the default policy."""

BATCHES = (1, 64)
ROUNDS = 25


def policy(form: str) -> Policy:
    """A network of that form with random weights."""
    rng = np.random.default_rng(1)
    sizes = SHAPES[form]
    layers = [(rng.normal(size=(b, a)) / a**0.5, rng.normal(size=b)) for a, b in pairwise(sizes)]
    return Policy.from_weights(form, "relu" if form == "paper" else "split", layers)


def called(call: Callable[[], object], seconds: float) -> float:
    """Mean time of a call in s."""
    done, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        for _ in range(100):
            call()
        done += 100
    return elapsed / done


def native(network: Policy, batch: int, seconds: float) -> float:
    """Mean time of an evaluation in s, measured where it happens."""
    return network.bench(batch, max(1, int(seconds / network.bench(batch, 100))))


def onnxruntime(network: Policy, states: np.ndarray) -> Callable[[], object]:
    """The same evaluation by onnxruntime."""
    import onnxruntime as ort

    from astraea.export import export

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(export(network, "bench").content, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"states": states})


def measure(form: str, batch: int, seconds: float) -> dict[str, float]:
    """Times in microseconds by what was measured, the best of some rounds in turns."""
    network = policy(form)
    states = np.random.default_rng(2).normal(size=(batch, network.inputs)).astype(np.float32)
    work: dict[str, Callable[[], float]] = {
        "astraea": lambda: native(network, batch, seconds),
        "astraea, Python": lambda: called(lambda: network.forward(states), seconds),
    }
    if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        session = onnxruntime(network, states)
        work["onnxruntime, Python"] = lambda: called(session, seconds)
    rounds = [{name: one() for name, one in work.items()} for _ in range(ROUNDS)]
    return {name: round(1e6 * min(times[name] for times in rounds), 2) for name in work}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=0.05, help="length of a round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    times = {
        f"{'-'.join(map(str, SHAPES[form]))}, batch {batch}": measure(form, batch, given.seconds)
        for form in SHAPES
        for batch in BATCHES
    }
    if given.json:
        facts = {"astraea": astraea.__version__, "build": build_profile, "cpus": os.cpu_count()}
        json.dump(facts | {"python": platform.python_version(), "microseconds": times}, sys.stdout, indent=2)
        print()
        return
    columns = list(dict.fromkeys(name for row in times.values() for name in row))
    table = Table(box=None, title="microseconds per evaluation", title_justify="left")
    table.add_column("network")
    for name in columns:
        table.add_column(name, justify="right")
    for network, row in times.items():
        table.add_row(network, *(f"{row[name]:.2f}" if name in row else "" for name in columns))
    Console().print(table)


if __name__ == "__main__":
    main()
