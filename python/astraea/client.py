"""Asking an inference service (`astraea serve`) for decisions; needs nothing but Python.

A sender reports each monitoring period of each of its flows, and gets an action and a window. Where the service does
not answer in time, a local rule decides, and the next period is asked for again. The messages are specified in
docs/protocol.md.

    with Client("unix:/run/astraea/serve.sock") as client:
        decision = client.decide(1, Report(rate=1700, queue=0.004, ...))
"""

from __future__ import annotations

import hmac
import math
import operator
import secrets
import select
import socket
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field
from types import TracebackType
from typing import Any, Self

from astraea.errors import UserError

DEFAULT_ADDRESS = "unix:/run/astraea/serve.sock"
"""The socket of a service that runs as a unit of the system."""

HISTORY = 5
"""Periods that a service can be told at once: all that a state is made of."""

FORMS = ("paper", "pure", "guided")

_MAGIC, _VERSION, _TAG = b"ASTR", 1, 16
_HEADER = struct.Struct("<4sBBHIIQQ")
_HELLO, _WELCOME, _ASK, _ANSWER, _REFUSE, _END = range(1, 7)
_LONGEST = _HEADER.size + 16 + HISTORY * 120 + _TAG


@dataclass(frozen=True)
class Report:
    """One monitoring period of one flow, in SI units; bytes and bits are those of the payload.

    A period without an acknowledgement repeats `throughput` and `latency`. Before the first round trip there is nothing
    to report.
    """

    rate: float = 0.0
    """Packets acknowledged per second over about a round trip."""
    queue: float = 0.0
    """Queueing delay: smallest round-trip time of the period less the base one."""
    ahead: float = 0.0
    """Queueing delay to be expected once the window of the last round trip has had its effect."""
    loss: float = 0.0
    """Share of packets lost, over as long as 200 packets need."""
    burst: float = 0.0
    """Share of packets lost over the time of `rate`, if they are at least four; else 0."""
    spread: float = 0.0
    """Mean less smallest round-trip time of the period."""
    throughput: float = 0.0
    """Bits acknowledged per second of the period …"""
    throughput_max: float = 0.0
    """… and the most of the flow's life."""
    latency: float = 0.0
    """Mean round-trip time of the period …"""
    latency_min: float = 0.0
    """… and the smallest of the flow's life."""
    lost: float = 0.0
    """Bits declared lost per second of the period."""
    in_flight: float = 0.0
    """Bytes in flight at the end of the period."""
    window: float = 0.0
    """Window in bytes at the end of the period."""
    pacing: float = 0.0
    """Pacing rate in bit/s at the end of the period."""
    srtt: float = 0.0
    """Smoothed round-trip time."""


@dataclass(frozen=True)
class Terms:
    """What a service serves."""

    form: str
    """How the policy is embedded: "paper", "pure" or "guided"."""
    definition: int
    """Hash of what it sees."""
    alpha: float
    """Action scale."""
    period: float
    """Monitoring period in s."""
    version: int
    """Version of the policy."""


@dataclass(frozen=True)
class Decision:
    """What a flow is to do."""

    action: float
    """The action, -1 to 1."""
    window: float
    """What it makes of the reported window, in bytes; floor and cap are the sender's."""
    version: int | None
    """Version of the policy that decided; None: the local rule did."""


def law_step(report: Report) -> float:
    """The rule's step: relative change of the window per round trip."""
    wanted = max(10 * math.sqrt(report.rate / 2777), 1e-3)
    error = 1 - report.rate * report.ahead / wanted - min(30 * report.loss, 0.6)
    step = min(max(0.1 * error, -0.1), 0.025)
    if report.burst > 0.05:
        step += 0.5 * math.log(1 - min(report.burst, 0.95))
    return step


def rule(terms: Terms, report: Report) -> Decision:
    """The local rule: the flow follows the law."""
    guided = terms.form == "guided"
    law = law_step(report)
    action = 0.0 if guided else min(max(law / terms.alpha, -1.0), 1.0)
    if terms.form == "paper":
        step = terms.alpha * action
        return Decision(action, report.window * (1 + step) if step >= 0 else report.window / (1 - step), None)
    part = min(terms.period / 0.03, terms.period / max(report.srtt, 1e-9))
    return Decision(action, report.window * math.exp(((law if guided else 0.0) + terms.alpha * action) * part), None)


@dataclass
class _Flow:
    """What is remembered of a flow: its latest reports, and what the service knows."""

    period: int = 0
    confirmed: int = 0
    reports: list[Report] = field(default_factory=list)

    def push(self, report: Report) -> None:
        self.period += 1
        self.reports = [*self.reports, report][-HISTORY:]

    def unconfirmed(self) -> list[Report]:
        return self.reports[-min(self.period - self.confirmed, HISTORY) :]


def _number(value: Any) -> float:
    """What is to be a number as one, NaN if it is none: text that `float` would read cannot be sent."""
    try:
        return math.nan if isinstance(value, str | bytes | bytearray) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _check_flow(flow: Any) -> None:
    """Raise `UserError` for what cannot be sent as a flow's number: 1.0 is equal to one, and is none."""
    try:
        fits = 0 <= operator.index(flow) < 2**64
    except TypeError:
        fits = False
    if not fits:
        raise UserError(f"flow {flow!r}: expected a whole number from 0 to 2^64 - 1")


@dataclass(frozen=True)
class _Frame:
    kind: int
    session: int
    number: int
    body: bytes


class Client:
    """A client of an inference service, for any number of flows.

    Args:
        address: "unix:PATH" or "udp:HOST:PORT".
        key: The shared key, 32 bytes, for a service that wants one on UDP.
        timeout: How long an answer may take, in s; None: a monitoring period.
        terms: What the service is expected to serve; None: whatever it does. With terms the client can begin without a
            service; without, `connect` has to succeed first.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        key: bytes | None = None,
        timeout: float | None = None,
        terms: Terms | None = None,
    ) -> None:
        self.address = address
        self.terms = terms
        self.ignored = 0
        """Messages that answered nothing that was asked."""
        self._family, self._target = _parse(address)
        self._key = key if self._family != socket.AF_UNIX else None
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._input = b""
        self._session: int | None = None
        self._token = secrets.randbits(64)
        self._number = 0
        self._greet_at = 0.0
        self._flows: dict[int, _Flow] = {}

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the service forgets the flows."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._session, self._input = None, None, b""

    def connect(self, patience: float = 1.0) -> Terms:
        """Wait until there is a session. Raises `UserError` if there is none, or one that serves something else."""
        until = time.monotonic() + patience
        while self._session is None:
            for frame in self._look(until):
                self._greeted(frame)
            if self._session is None and time.monotonic() >= until:
                self.close()
                raise UserError(f"{self.address}: no service answers; expected one of protocol version {_VERSION}")
        assert self.terms is not None
        return self.terms

    def decide(self, flow: int, report: Report) -> Decision:
        """Report a period of a flow and get its decision."""
        return self.decide_all({flow: report})[flow]

    def decide_all(self, reports: Mapping[int, Report]) -> dict[int, Decision]:
        """Report a period of several flows and get their decisions: the service's, or after the timeout the rule's."""
        if self.terms is None:
            raise UserError(f"{self.address}: nothing is known of the service yet; expected connect() before")
        for flow, report in reports.items():
            self.note(flow, report)
        until = time.monotonic() + (self.terms.period if self._timeout is None else self._timeout)
        decisions: dict[int, Decision] = {}
        asked: dict[int, int] = {}
        asked_in: int | None = None  # the session: a new one has not heard of the request
        while len(decisions) < len(reports) and time.monotonic() < until:
            if self._session is not None and asked_in != self._session:
                asked_in, asked = self._session, self._ask(reports.keys() - decisions.keys())
            for frame in self._look(until):
                if self._session is None:
                    self._greeted(frame)
                elif frame.kind == _REFUSE and frame.session == self._session and frame.body[12:] == b"\1\0\0\0":
                    self._session, self._greet_at = None, 0.0
                else:
                    self._answered(frame, asked, decisions)
        return {flow: decisions.get(flow) or rule(self.terms, report) for flow, report in reports.items()}

    def note(self, flow: int, report: Report) -> None:
        """Report a period for which no decision is wanted."""
        _check_flow(flow)
        for name, value in asdict(report).items():
            if not 0 <= _number(value) < math.inf:
                raise UserError(f"flow {flow}: {name} of its report is {value!r}; expected a finite number, at least 0")
        self._flows.setdefault(flow, _Flow()).push(report)

    def end(self, flow: int) -> None:
        """Forget a flow, here and in the service."""
        _check_flow(flow)
        if self._flows.pop(flow, None) is not None and self._session is not None:
            self._send(_END, struct.pack("<Q", flow))

    def _ask(self, flows: set[int]) -> dict[int, int]:
        """Ask for decisions; the numbers of the requests by flow."""
        asked = {}
        for name in sorted(flows):
            flow = self._flows[name]
            reports = flow.unconfirmed()
            body = struct.pack("<QII", name, flow.period, len(reports))
            asked[name] = self._send(_ASK, body + b"".join(struct.pack("<15d", *astuple(report)) for report in reports))
        return asked

    def _answered(self, frame: _Frame, asked: dict[int, int], decisions: dict[int, Decision]) -> None:
        if frame.kind == _ANSWER and frame.session == self._session:
            name, period, _, action, window, version = struct.unpack("<QIIddQ", frame.body)
            if asked.get(name) == frame.number and self._flows[name].period == period and name not in decisions:
                self._flows[name].confirmed = period
                decisions[name] = Decision(action, window, version)
                return
        self.ignored += 1

    def _greeted(self, frame: _Frame) -> None:
        if frame.kind != _WELCOME or frame.body[:8] != struct.pack("<Q", self._token):
            self.ignored += 1
            return
        _, definition, version, alpha, period, form = struct.unpack("<QQQdQQ", frame.body)
        if form >= len(FORMS) or not 0 < alpha <= 1:
            self.ignored += 1
            return
        found = Terms(FORMS[form], definition, alpha, period / 1e9, version)
        expected = self.terms
        if expected is not None and _agents(found) != _agents(expected):
            raise UserError(f"{self.address}: serves {_agents(found)}; expected {_agents(expected)}")
        self.terms, self._session = found, frame.session
        for flow in self._flows.values():
            flow.confirmed = 0  # the service knows nothing of them

    def _look(self, until: float) -> list[_Frame]:
        """Connect and greet if that is due; what has come, waiting for it at most until then."""
        now = time.monotonic()
        if self._session is None and now >= self._greet_at:
            self._greet_at = now + 0.02
            if self._socket is None:
                self._open()
            self._send(_HELLO, struct.pack("<Q", self._token))
        wait = until - time.monotonic()
        if self._session is None:
            wait = min(wait, self._greet_at - time.monotonic())
        wait = max(wait, 0.0)
        if self._socket is None:
            time.sleep(wait)
            return []
        ready = select.poll()  # unlike select() it takes any number of open files
        ready.register(self._socket, select.POLLIN)
        if not ready.poll(min(math.ceil(1000 * wait), 60_000)):  # callers look again
            return []
        return list(self._receive())

    def _open(self) -> None:
        found = socket.socket(self._family, socket.SOCK_STREAM if self._family == socket.AF_UNIX else socket.SOCK_DGRAM)
        try:
            found.settimeout(0.05)
            found.connect(self._target)
        except OSError:
            found.close()
        else:
            self._socket = found

    def _send(self, kind: int, body: bytes) -> int:
        self._number += 1
        if self._socket is not None:
            message = self._seal(kind, body)
            try:
                self._socket.sendall(message)
            except ConnectionRefusedError:
                pass  # a datagram to nobody
            except OSError:
                self.close()  # part of it may be on its way: nothing after it could be read
        return self._number

    def _seal(self, kind: int, body: bytes) -> bytes:
        length = _HEADER.size + len(body) + (_TAG if self._key else 0)
        flags = 1 if self._key else 0
        parts = (_MAGIC, _VERSION, kind, length)
        rest = (flags, self._session or 0, self._number)
        checksum = zlib.crc32(_HEADER.pack(*parts, 0, *rest) + body)
        message = _HEADER.pack(*parts, checksum, *rest) + body
        return message + self._tag(message) if self._key else message

    def _tag(self, message: bytes) -> bytes:
        return hmac.digest(self._key or b"", message, "sha256")[:_TAG]

    def _receive(self) -> Iterator[_Frame]:
        assert self._socket is not None
        stream = self._family == socket.AF_UNIX
        try:
            read = self._socket.recv(1 << 16)
        except (ConnectionRefusedError, TimeoutError):
            return
        except OSError:
            read = b""
        if stream and not read:
            self.close()
            return
        self._input = self._input + read if stream else read
        while len(self._input) >= 8:
            length = struct.unpack_from("<H", self._input, 6)[0]
            if self._input[:5] != _MAGIC + bytes([_VERSION]) or not _HEADER.size <= length <= _LONGEST:
                self.ignored += 1
                if stream:
                    self.close()  # no telling where the next message begins
                self._input = b""
                return
            if len(self._input) < length:
                return
            message, self._input = self._input[:length], self._input[length:]
            frame = self._unseal(message)
            if frame is None:
                self.ignored += 1
            else:
                yield frame

    def _unseal(self, message: bytes) -> _Frame | None:
        _, _, kind, _, checksum, flags, session, number = _HEADER.unpack_from(message)
        if flags != (1 if self._key else 0):
            return None
        if self._key:
            message, tag = message[:-_TAG], message[-_TAG:]
            if not hmac.compare_digest(tag, self._tag(message)):
                return None
        if len(message) - _HEADER.size != {_WELCOME: 48, _ANSWER: 40, _REFUSE: 16}.get(kind):
            return None
        if zlib.crc32(message[:8] + bytes(4) + message[12:]) != checksum:
            return None
        return _Frame(kind, session, number, message[_HEADER.size :])


def _agents(terms: Terms) -> str:
    return f"form {terms.form} ({terms.definition:016x}), alpha {terms.alpha:g}, period {terms.period * 1e3:g} ms"


def _parse(address: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest:
        return socket.AF_UNIX, rest
    host, _, port = rest.rpartition(":")
    if kind == "udp" and host and port.isdecimal() and 0 < int(port) < 1 << 16:
        with suppress(OSError):
            family, *_, target = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
            return family, (str(target[0]), int(target[1]))
    raise UserError(f'address "{address}": expected unix:PATH or udp:HOST:PORT')
