"""SIGTERM, SIGHUP of a terminal that is closed, and Ctrl-C end the program by way of what cleans up.

The signal becomes an exception. It would be lost where code takes any exception for its own, as modules written in C
do while they are imported and PyTorch does while it writes, and would leave something behind where a file exists that
nobody has taken charge of yet. In such places the end waits.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the program with 128 and their number."""

_USUAL = {**dict.fromkeys(SIGNALS, signal.SIG_DFL), signal.SIGINT: signal.default_int_handler}
"""What becomes of a signal that nobody has taken."""

LOOK_AGAIN_S = 0.02
_PATIENCE: dict[int, int] = {**dict.fromkeys(SIGNALS, 500), signal.SIGINT: 100}
"""Looks after which the end comes wherever the program is: an import may never return; who presses Ctrl-C is there."""

_UNDISTURBED = {
    *("_frozen_importlib", "importlib._bootstrap", "tempfile", "weakref", "_weakrefset"),
    "astraea.learn.checkpoint",
}
"""Modules in whose functions, and in what these call, an exception out of nowhere is lost or leaves a file."""


_waiting: list[int] = []
"""The signal whose end waits, if one does."""


class ToldToEnd(BaseException):
    """A signal has come; the first argument is its number."""


@contextmanager
def by_signals() -> Iterator[None]:
    """Raise `ToldToEnd` in the main thread when a signal of `SIGNALS` comes that nobody else has taken.

    Ctrl-C, where nobody has taken it, is KeyboardInterrupt as ever, but waits as they do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = {each: signal.signal(each, _end) for each, usual in _USUAL.items() if signal.getsignal(each) is usual}
    alarm = signal.getsignal(signal.SIGALRM)
    try:
        yield
        due()
    finally:
        if signal.getsignal(signal.SIGALRM) is not alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarm)
        _waiting.clear()
        for each, before in taken.items():
            signal.signal(each, before)


def due() -> None:
    """Raise what an end that waits is to raise; a program that takes this one's place would inherit the alarm."""
    if _waiting:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _leave(_waiting.pop())


def _end(signum: int, frame: FrameType | None, looks: int = 0) -> None:
    if looks == 0 and _waiting and signum in (signal.SIGINT, *_waiting):
        return  # what waits comes as soon as it would have, and Ctrl-C is the least of them
    if _undisturbed(frame) and looks < _PATIENCE[signum]:
        _waiting[:] = [signum]
        signal.signal(signal.SIGALRM, lambda _, later: _end(signum, later, looks + 1))
        signal.setitimer(signal.ITIMER_REAL, LOOK_AGAIN_S)
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    _waiting.clear()
    _leave(signum)


def _leave(signum: int) -> NoReturn:
    if signum == signal.SIGINT:
        raise KeyboardInterrupt
    for each in SIGNALS:  # a terminal that is closed may send several, and none is to disturb what cleans up
        signal.signal(each, signal.SIG_IGN)
    raise ToldToEnd(signum)


def _undisturbed(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") in _UNDISTURBED:
            return True
        frame = frame.f_back
    return False
