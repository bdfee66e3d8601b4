"""`astraea link` on a terminal: a shell with job control behind it, started from another one. Needs root and TUN."""

import os
import pty
import re
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import inside

from astraea import host
from astraea.errors import UserError
from astraea.eval import kernel

COMMAND = str(Path(sys.executable).with_name("astraea"))
PATIENCE = 30


def _obstacle() -> str | None:
    if not shutil.which("bash"):
        return "bash is not installed"
    try:
        return kernel.obstacle(kernel.doctor(host.program()))
    except UserError as error:
        return str(error)


pytestmark = pytest.mark.skipif(_obstacle() is not None, reason=f"no links here: {_obstacle()}")


class Terminal:
    """A terminal with an interactive shell, outside of any link.

    What is typed comes back as an echo. So commands are written such that their output is not in them: `$((1))` for 1.
    """

    def __init__(self) -> None:
        self.shell, self.fd = pty.fork()
        if self.shell == 0:
            # Whoever runs the tests may ignore interrupts, and children would inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            environment = {name: value for name, value in os.environ.items() if not name.endswith("_BASE")}
            environment |= {"SHELL": "bash", "HOME": "/nonexistent", "PS1": "> "}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        self.text = ""

    def type(self, keys: str) -> None:
        """Presses keys; a line ends with a newline."""
        os.write(self.fd, keys.encode())

    def expect(self, pattern: str) -> str:
        """Waits until something is shown; its first group. What came up to there is forgotten."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.text)):
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern} is not in {self.text!r}"
            if select.select([self.fd], [], [], left)[0]:
                self.text += os.read(self.fd, 4096).decode()
        self.text = self.text[found.end() :]
        return found.group(1) if found.groups() else found.group()

    def interrupt(self) -> None:
        """Presses Ctrl-C and waits for a prompt: what is typed before that may be thrown away."""
        self.type("\x03")
        self.expect(r"\^C[^^]*[#$>] $")
        # A line editor that the signal caught between two reads drops the next key, whenever it comes: one to spare.
        self.type(" ")

    def link(self) -> tuple[Path, str]:
        """Starts a link with a shell; the outer device, and what the namespace inside is called."""
        self.type(f"{COMMAND} link --rate 10Mbps --delay 1ms\n")
        self.type("echo net$((0))=$(readlink /proc/self/ns/net) base=$ASTRAEA_BASE end\n")
        network, base = self.expect(r"net0=(net:\[\d+\] base=100\.[\d.]+) end").split(" base=")
        device = _device(base)
        assert device.exists()
        return device, network

    def close(self) -> None:
        """Hangs up."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal that is hung up in the end."""
    one = Terminal()
    yield one
    one.close()
    os.waitpid(one.shell, 0)


def _device(base: str) -> Path:
    """The outer device of a link: the one to which its block of addresses is routed."""
    block = f"{int.from_bytes(socket.inet_aton(base), sys.byteorder):08X}"
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()]
    return Path("/sys/class/net") / next(route[0] for route in routes if route[1] == block)


def _wait_for_nothing(device: Path, network: str) -> None:
    """Waits until the device has gone, and every process in the network namespace."""
    deadline = time.monotonic() + PATIENCE
    while device.exists() or inside(network):
        assert time.monotonic() < deadline, f"{device}: {device.exists()}, processes {inside(network)}"
        time.sleep(0.05)


def test_interrupts_and_jobs_are_the_inner_shells_own(terminal: Terminal) -> None:
    device, network = terminal.link()
    # The shell at its prompt survives Ctrl-C, and so does the link.
    terminal.interrupt()
    terminal.type("echo still-$((40 + 2))\n")
    terminal.expect("still-42")
    # A command does not.
    terminal.type("echo asleep-$((1)); sleep 300\n")
    terminal.expect("asleep-1")
    time.sleep(0.3)
    terminal.interrupt()
    terminal.type("echo after-$?\n")
    terminal.expect("after-130")
    # Ctrl-Z stops a job, which can be continued and ended.
    terminal.type("echo asleep-$((2)); sleep 301\n")
    terminal.expect("asleep-2")
    time.sleep(0.3)
    terminal.type("\x1a")
    terminal.expect(r"Stopped[^^]*[#$>] $")
    terminal.type("bg; jobs -r | wc -l | sed s/^/running-/; kill %1; wait %1; echo killed-$?\n")
    terminal.expect("running-1")
    terminal.expect("killed-143")
    assert device.exists()
    # Its exit status comes out, and the outer shell has its terminal back.
    terminal.type("exit 5\n")
    terminal.type("echo status-$?\n")
    terminal.expect("status-5")
    _wait_for_nothing(device, network)
    terminal.type("sleep 302\n")
    time.sleep(0.3)
    terminal.interrupt()
    terminal.type("echo outside-$? $ASTRAEA_BASE.\n")
    terminal.expect(r"outside-130 \.")


def test_a_command_is_interrupted_and_the_link_says_so(terminal: Terminal) -> None:
    # A shell that is interrupted just before it starts a command would wait for it, so the command takes its place.
    terminal.type(f"{COMMAND} link --delay 1ms -- sh -c 'echo begun-$((1)); exec sleep 303'\n")
    terminal.expect("begun-1")
    terminal.interrupt()
    terminal.type("echo status-$?\n")
    terminal.expect("status-130")


def test_the_terminal_comes_back_from_a_shell_that_is_killed(terminal: Terminal) -> None:
    device, network = terminal.link()
    terminal.type("stty -echo -icanon; kill -KILL $$\n")
    terminal.type("echo status-$?\n")
    terminal.expect("status-137")
    _wait_for_nothing(device, network)
    terminal.type("stty -a | grep -Eo -e ' -?(echo|icanon) ' | tr -d '\\n' | sed 's/$/ shown/'\n")
    shown = terminal.expect(r"( [a-z -]+ ) shown")
    assert "-echo" not in shown
    assert "-icanon" not in shown


def test_links_nest_on_a_terminal(terminal: Terminal) -> None:
    outer = terminal.link()
    terminal.type(f"{COMMAND} link --delay 1ms\n")
    terminal.type("echo within-$((1)) net=$(readlink /proc/self/ns/net) $ASTRAEA_BASE,$MAHIMAHI_BASE.\n")
    inner = terminal.expect(r"within-1 net=(net:\[\d+\]) 100\.[\d.]+,100\.")
    terminal.type("exit 7\n")
    terminal.type("echo inner-$?\n")
    terminal.expect("inner-7")
    terminal.type("exit 8\n")
    terminal.type("echo outer-$?\n")
    terminal.expect("outer-8")
    _wait_for_nothing(*outer)
    _wait_for_nothing(Path("/nonexistent"), inner)


def test_hanging_up_ends_everything(terminal: Terminal) -> None:
    device, network = terminal.link()
    terminal.type("sleep 304 & sleep 305\n")
    time.sleep(0.3)
    terminal.close()
    _wait_for_nothing(device, network)
