"""Processes that tests start, and what is left of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import AnyStr


@contextmanager
def killed(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """The process, which is killed in the end if it is still there: a test that fails does not wait for it."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def networks(pid: int) -> dict[str, Path]:
    """Network namespaces other than this process's that a process has, by its threads or as files: a path to each."""
    found = {}
    for pattern in ("task/*/ns/net", "fd/*"):
        for link in Path(f"/proc/{pid}").glob(pattern):
            with suppress(OSError):
                found[str(link.readlink())] = link
    own = str(Path("/proc/self/ns/net").readlink())
    return {name: path for name, path in found.items() if name.startswith("net:") and name != own}


def inside(network: str) -> list[int]:
    """The processes that have a network namespace, this one aside."""
    pids = [int(process.name) for process in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if pid != os.getpid() and network in networks(pid)]
