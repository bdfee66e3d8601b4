"""Backends: what runs trials. Everything behind them is the same code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from astraea.errors import UserError, nearest
from astraea.eval.kernel import LATENESS_LIMIT_NS, Kernel, Quic
from astraea.eval.simulated import Simulator
from astraea.scenario.resolve import Resolved

NAMES = ("sim", "kernel", "quic")
"""Every backend, the default first."""


class Backend(Protocol):
    """Runs the trials of one run."""

    name: str
    parallel: bool
    """Whether trials may run at the same time."""

    def check(self, trial: Resolved, where: str) -> None:
        """Raise `UserError` for a trial that cannot be run; `where` names the scenario."""

    def run(self, trial: Resolved) -> dict[str, Any]:
        """Run a trial; the result is that of `_native.simulate`, and may have `emulation` (docs/kernel-backend.md).

        Raises KeyboardInterrupt when cancelled, and `UserError` for what the user can correct.
        """

    def cancel(self) -> None:
        """Make running trials raise KeyboardInterrupt soon."""

    def facts(self) -> dict[str, Any]:
        """What results should say about the host, as far as they depend on it."""


def make(name: str, lateness_limit_ns: int | None = None, decide: Mapping[str, str] | None = None) -> Backend:
    """The backend called `name`; raises `UserError` if there is none, or if it cannot work here.

    `lateness_limit_ns` is what one packet in a thousand may be late on emulated links; None: the default.
    `decide` is the inference service that decides for Astraea's policies: its `address`, and `key`, the file with the
    shared key, if it wants one.
    """
    if name == "sim":
        if lateness_limit_ns is not None:
            raise UserError("--max-lateness: only emulated links are late; expected --backend kernel or quic with it")
        return Simulator(decide)
    if name not in NAMES:
        raise UserError(f"--backend {name}: no such backend{nearest(name, NAMES)}; expected {' or '.join(NAMES)}")
    limit = LATENESS_LIMIT_NS if lateness_limit_ns is None else lateness_limit_ns
    if name == "quic":
        return Quic(limit, decide)
    if decide is not None:
        raise UserError(
            "--decide: flows of the kernel's TCP cannot ask a service; expected --backend sim or quic with it"
        )
    return Kernel(limit)
