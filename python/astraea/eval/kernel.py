"""Backends of real traffic over emulated links, which `astraead trial` carries.

`kernel` is the kernel's own TCP, `quic` are QUIC connections of a process, under any scheme.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from astraea import _native, host, models
from astraea.errors import UserError
from astraea.scenario.resolve import Resolved

LATENESS_LIMIT_NS = 2_000_000
"""What one packet in a thousand may be late before a trial counts as unfaithful."""

ATTEMPTS = 2
"""How often an unfaithful trial is run in all."""

FEATURE = "astraea run --backend kernel"
"""How `astraead doctor` calls what this needs."""

_NOT_IN_KERNEL = {"table": "a rule table", **{name: paper.what for name, paper in models.RIVALS.items()}}
"""What a kernel cannot run, by the name that `_kind` gives it."""


def _kind(policy: object) -> str:
    """How `astraead trial` calls what a file holds that stands for a scheme."""
    return models.rival(policy) or ("table" if isinstance(policy, _native.RemyTable) else "policy")


_INTERRUPTED = 130
_FLOW = re.compile(r"flows\[(\d+)\]")
_SCHEME = re.compile(r"^flows\[(\d+)\]\.scheme: (.*)")


class Kernel:
    """The kernel's TCP as a backend. Raises `UserError` if this machine does not allow it."""

    name = "kernel"
    parallel = False
    options: tuple[str, ...] = ()
    """What `astraead trial` needs to be told."""

    def __init__(self, lateness_limit_ns: int = LATENESS_LIMIT_NS) -> None:
        self._program = host.program()
        self._limit = lateness_limit_ns
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._cancelled = False
        self._findings = doctor(self._program)
        if reason := obstacle(self._findings):
            raise UserError(f"--backend {self.name}: {reason}; or use --backend sim")

    def check(self, trial: Resolved, where: str) -> None:
        """Raise `UserError` for what the kernel cannot do; `where` names the scenario."""
        for flow in trial.flows:
            if kind := _NOT_IN_KERNEL.get(_kind(flow.scheme.policy)):
                kind = f"{kind} does not run in the kernel"
                raise UserError(f"--cc {flow.scheme.label}: {kind}; expected --backend sim or quic")
            if flow.scheme.factory is not None:
                kind = "a controller written in Python runs in the simulator only"
                raise UserError(f"--cc {flow.scheme.label}: {kind}; expected --backend sim")
        self._ask(trial, where, "--check")

    def config(self, trial: Resolved) -> dict[str, Any]:
        """What `astraead trial` reads: what a file holds that stands for a scheme is named by its path."""
        flows = [dict(flow) for flow in trial.config["flows"]]
        for flow, plan in zip(flows, trial.flows, strict=True):
            if plan.scheme.policy is not None:
                file = {_kind(plan.scheme.policy): str(Path(plan.scheme.name).resolve())}
                flow["scheme"] = file | ({"params": dict(plan.scheme.params)} if plan.scheme.params else {})
        return {**trial.config, "flows": flows}

    def run(self, trial: Resolved) -> dict[str, Any]:
        """Run a trial, and once more if it was unfaithful; the more faithful result counts."""
        best: dict[str, Any] | None = None
        for attempt in range(1, ATTEMPTS + 1):
            answer = self._ask(trial, self.name, "--seed", str(trial.seed), "--lateness-limit", str(self._limit))
            result = read(answer)
            if best is None or not result["emulation"]["problems"] or _late(result) < _late(best):
                best = result
            best["emulation"]["attempts"] = attempt
            if not result["emulation"]["problems"]:
                break
        assert best is not None
        return best

    def cancel(self) -> None:
        """End the running trial, if any."""
        with self._lock:
            self._cancelled = True
            if self._child is not None:
                self._child.terminate()

    def facts(self) -> dict[str, Any]:
        """Kernel, processor and load: what a measurement on real TCP depends on."""
        return {
            "kernel": self._findings["kernel"],
            "processor": _processor(),
            "load": round(os.getloadavg()[0], 2),
        }

    def _ask(self, trial: Resolved, where: str, *options: str) -> bytes:
        """What `astraead trial` answers; raises `UserError` with its line, or KeyboardInterrupt when cancelled."""
        with self._lock:
            if self._cancelled:
                raise KeyboardInterrupt
            child = subprocess.Popen(
                [self._program, "trial", *self.options, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self._child = child
        try:
            answer, said = child.communicate(json.dumps(self.config(trial)).encode())
        finally:
            with self._lock:
                self._child = None
        if child.returncode == 0:
            return answer
        if self._cancelled or child.returncode == _INTERRUPTED:
            raise KeyboardInterrupt
        lines = said.decode(errors="replace").strip().splitlines()
        line = lines[-1].removeprefix("astraea: ") if lines else f"ended with status {child.returncode}"
        if child.returncode != 2:
            line = f"{host.PROGRAM} trial failed: {line}"
        raise UserError(_told(line, trial, where))


class Quic(Kernel):
    """QUIC connections as a backend, under any scheme. Raises `UserError` if this machine does not allow it.

    Args:
        lateness_limit_ns: What one packet in a thousand may be late.
        decide: The inference service that decides for Astraea's policies: its `address`, and perhaps `key`, the file
            with the shared key; None: they do so themselves.
    """

    name = "quic"
    options = ("--quic",)

    def __init__(self, lateness_limit_ns: int = LATENESS_LIMIT_NS, decide: Mapping[str, str] | None = None) -> None:
        super().__init__(lateness_limit_ns)
        self._decide = decide

    def check(self, trial: Resolved, where: str) -> None:
        """Raise `UserError` for what the stack cannot do; `where` names the scenario."""
        for flow in trial.flows:
            if flow.scheme.factory is not None:
                kind = "a controller written in Python runs in the simulator only"
                raise UserError(f"--cc {flow.scheme.label}: {kind}; expected --backend sim")
        self._ask(trial, where, "--check")

    def config(self, trial: Resolved) -> dict[str, Any]:
        """What `astraead trial` reads, with the service if there is one."""
        decide = {} if self._decide is None else {"decide": self._decide}
        return {**super().config(trial), **decide}


def read(answer: bytes) -> dict[str, Any]:
    """A result from what `astraead trial` writes: a line of JSON, and the arrays that it names behind it."""
    line, _, rest = answer.partition(b"\n")
    document = json.loads(line)
    arrays, offset = [], 0
    for listed in document.pop("arrays"):
        count = int(np.prod(listed["shape"]))
        arrays.append(np.frombuffer(rest, listed["kind"], count, offset).reshape(listed["shape"]))
        offset += arrays[-1].nbytes
    if offset != len(rest):
        raise ValueError(f"the arrays have {len(rest)} bytes; expected {offset}")

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            return arrays[value["array"]] if value.keys() == {"array"} else {key: put(v) for key, v in value.items()}
        return [put(item) for item in value] if isinstance(value, list) else value

    document["series"] = put(document["series"])
    for link in document["links"]:
        link["series"] = put(link["series"])
    return dict(document)


def doctor(program: Path) -> dict[str, Any]:
    """What `astraead doctor` finds."""
    found = subprocess.run([program, "doctor", "--json"], capture_output=True, check=False)
    if found.returncode != 0:
        raise UserError(f"{program}: doctor failed: {found.stderr.decode(errors='replace').strip()}")
    return dict(json.loads(found.stdout))


def obstacle(findings: dict[str, Any]) -> str | None:
    """Why nothing runs on the kernel here, and what would help; None if something does."""
    missing = [check for check in findings["checks"] if FEATURE in check["disables"]]
    if not missing:
        return None
    return "; ".join(f"{check['name']}: {check['found']} ({check['fix']})" for check in missing[:1])


def availability() -> tuple[dict[str, str | None], str | None]:
    """What runs on this machine.

    Returns:
        For each scheme that a kernel may have, why it does not run on this one, or None if it does; and the same for
        QUIC, which runs all or none.
    """
    try:
        findings = doctor(host.program())
    except UserError as error:
        return {"": str(error)}, str(error)
    blocked = obstacle(findings)
    kernel = {
        scheme["name"]: blocked or (None if scheme["available"] else f"not in this kernel ({scheme['fix']})")
        for scheme in findings["schemes"]
    }
    return kernel, blocked


def _told(line: str, trial: Resolved, where: str) -> str:
    """What `astraead trial` says, by the options and keys that the user knows; `where` names the scenario."""
    if (scheme := _SCHEME.match(line)) and (plan := trial.flows[int(scheme[1])]).under_test:
        return f"--cc {plan.scheme.label}: {scheme[2]}"
    line = _SCHEME.sub(r"flows[\1].cc: \2", line)
    return f"{where}: {_FLOW.sub(lambda found: f'flow.{trial.flows[int(found[1])].group}', line)}"


def _late(result: dict[str, Any]) -> int:
    """How late one packet in a thousand was, in ns; 0 where no packet crossed a link."""
    return result["emulation"]["lateness_p999_ns"] or 0


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()
