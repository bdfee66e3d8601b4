"""The inference service from outside: the Python and C clients, socket activation, flows of the simulator."""

import functools
import math
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from processes import killed

import astraea
from astraea.cli.host import program
from astraea.client import Client, Report, Terms, law_step, rule
from astraea.errors import UserError

REPOSITORY = Path(__file__).parents[2]
REPORT = Report(
    rate=1700.0,
    queue=0.004,
    ahead=0.005,
    spread=0.001,
    throughput=20e6,
    throughput_max=25e6,
    latency=0.045,
    latency_min=0.04,
    in_flight=6e4,
    window=6.5e4,
    pacing=21e6,
    srtt=0.045,
)
ASTRAEA = [str(Path(sys.executable).with_name("astraea"))]
PATIENT = 20.0
"""Far above what a busy machine needs."""


@contextmanager
def running(*arguments: str, wait: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(program()), "serve", "--log-level", "warn", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            if wait is not None:
                until = time.monotonic() + PATIENT
                while not Path(wait).exists():
                    assert process.poll() is None, process.communicate()[1]
                    assert time.monotonic() < until
                    time.sleep(0.01)
            yield process
        finally:
            process.kill()


@pytest.fixture
def directory() -> Iterator[Path]:
    # Paths of sockets are short; those of tmp_path need not be.
    with tempfile.TemporaryDirectory(prefix="astraea-") as path:
        yield Path(path)


@pytest.fixture
def service(directory: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    path = directory / "serve.sock"
    with running("--listen", f"unix:{path}", "--policy", getattr(request, "param", "astraea"), wait=str(path)):
        yield f"unix:{path}"


_clients: list[Client] = []


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    yield
    while _clients:
        _clients.pop().close()


def client(address: str, key: bytes | None = None) -> Client:
    found = Client(address, timeout=PATIENT, key=key)
    _clients.append(found)
    found.connect(PATIENT)
    return found


def varied(period: int) -> Report:
    return replace(
        REPORT,
        rate=100.0 * period**2,
        ahead=0.002 * (period % 7),
        loss=0.01 * (period % 3),
        burst=0.1 * (period % 2),
        window=1e4 * period,
        srtt=0.01 * period,
    )


@pytest.mark.parametrize("service", ["astraea", "astraea-pure", "astraea-paper"], indirect=True)
def test_python_client_and_what_its_rule_is(service: str) -> None:
    """The window of an answer is the rule's with the action added, so the two implementations of the law agree."""
    with client(service) as asking:
        terms = asking.terms
        assert terms is not None
        for period in range(1, 30):
            report = varied(period)
            found = asking.decide(1, report)
            assert found.version == terms.version
            assert -1 <= found.action <= 1
            step = terms.alpha * found.action
            if terms.form == "paper":
                expected = report.window * (1 + step) if step >= 0 else report.window / (1 - step)
            else:
                law = law_step(report) if terms.form == "guided" else 0.0
                expected = report.window * math.exp((law + step) * min(1.0, terms.period / report.srtt))
            assert found.window == pytest.approx(expected, rel=1e-9)


def test_a_report_that_cannot_be_is_one_line(service: str) -> None:
    with client(service) as asking:
        wrongs: list[Any] = [math.nan, math.inf, -1.0, "0.5", b"1", None, 1j]
        for wrong in wrongs:
            with pytest.raises(
                UserError, match=r"^flow 1: queue of its report is .*; expected a finite number, at least 0$"
            ):
                asking.decide(1, Report(rate=1000.0, queue=wrong, window=1e4, srtt=0.01))
        asking.decide(1, varied(1))
        flows: list[Any] = [-1, 2**64, 10**400, 1.5, 1.0, "1", None]
        for flow in flows:
            for use in (lambda flow: asking.decide(flow, varied(1)), asking.end):
                with pytest.raises(UserError, match=r"^flow .*: expected a whole number from 0 to 2\^64 - 1$"):
                    use(flow)
        assert asking.decide(2**64 - 1, varied(1)).version is not None


def test_flows_asked_for_together_and_one_by_one_agree(service: str) -> None:
    with client(service) as one, client(service) as together:
        for period in range(1, 8):
            reports = {flow: replace(varied(period), rate=1000.0 + flow) for flow in range(20)}
            singly = {flow: one.decide(flow, report) for flow, report in reports.items()}
            assert together.decide_all(reports) == singly
        assert len({decision.action for decision in singly.values()}) > 1
        one.end(3)
        fresh = Report(rate=1003.0, window=1e4, srtt=0.01)
        assert one.decide(3, fresh) == client(service).decide(1, fresh), "an ended flow begins anew"


def test_the_rule_decides_and_the_service_takes_over_again(directory: Path) -> None:
    path = directory / "serve.sock"
    arguments = ("--listen", f"unix:{path}")
    with running(*arguments, wait=str(path)):
        reference = client(f"unix:{path}")
        expected = [reference.decide(1, varied(period)) for period in range(1, 12)]
        asking = client(f"unix:{path}")
        assert asking.decide(1, varied(1)) == expected[0]
    terms = asking.terms
    assert terms is not None
    asking._timeout = 0.1  # nobody will answer
    for period in (2, 3):
        found = asking.decide(1, varied(period))
        assert found.version is None
        assert found == rule(terms, varied(period))
    path.unlink()  # killed, it could not
    with running(*arguments, wait=str(path)):
        asking._timeout = PATIENT
        assert [asking.decide(1, varied(period)) for period in range(4, 12)] == expected[3:]


def test_a_key_on_udp(directory: Path) -> None:
    from astraea.eval import api

    key = directory / "key"
    key.write_text("0f" * 32)
    key.chmod(0o600)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = f"udp:127.0.0.1:{free.getsockname()[1]}"
    with running("--listen", address, "--key", str(key)):
        assert client(address, b"\x0f" * 32).decide(1, REPORT).version is not None
        for wrong in (None, b"\x0e" * 32):
            with pytest.raises(UserError, match="no service answers"):
                Client(address, key=wrong).connect(0.2)
        settings = ["flow.0.duration=1s", "flow.0.start.every=300ms", "duration=2s"]
        run = functools.partial(api.execute, "three-flows", ["astraea"], settings=settings, trials=1, jobs=1)
        assert run(decide=f"service={address}", key=str(key)).content == run().content
        with pytest.raises(UserError, match="no answer within 1 s"):
            run(decide=f"service={address}")
        key.chmod(0o644)
        with pytest.raises(UserError, match="mode 644: others could read it"):
            run(decide=f"service={address}", key=str(key))
    with pytest.raises(UserError, match="for Astraea's policies alone; expected one, not aurora, cubic"):
        api.execute("three-flows", ["aurora,cubic"], settings=settings, trials=1, decide=f"service={address}")
    with pytest.raises(UserError, match="a service that others can reach needs a key"):
        run(decide="service=udp:192.0.2.1:5")


def test_a_client_without_a_service_needs_terms() -> None:
    with pytest.raises(UserError, match=r"no service answers"):
        Client("unix:/nonexistent/astraea.sock").connect(0.05)
    with pytest.raises(UserError, match="nothing is known"):
        Client("unix:/nonexistent/astraea.sock").decide(1, REPORT)
    terms = Terms("guided", 0, 0.1, 0.03, 0)
    assert Client("unix:/nonexistent/astraea.sock", terms=terms).decide(1, REPORT) == rule(terms, REPORT)
    wrong = ("unix:", "tcp:1.2.3.4:5", "udp:127.0.0.1", "udp:127.0.0.1:0", "udp:127.0.0.1:99999", "/run/x.sock")
    for address in wrong:
        with pytest.raises(UserError, match="expected unix:PATH or udp:HOST:PORT"):
            Client(address)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    sources = [str(REPOSITORY / "crates/serve/c" / name) for name in ("example.c", "astraea_client.c", "hmac_sha256.c")]
    built = tmp_path_factory.mktemp("c") / "example"
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    subprocess.run([compiler, *flags, "-o", str(built), *sources, "-lm"], check=True)
    return built


def lines(text: str) -> list[tuple[float, float, str]]:
    return [(float(action), float(window), who) for _, action, window, who in map(str.split, text.splitlines())]


@pytest.mark.parametrize("service", ["astraea", "astraea-pure", "astraea-paper"], indirect=True)
def test_c_client_gets_what_the_python_client_gets(service: str, example: Path) -> None:
    run = subprocess.run([example, service, "40", "20000"], capture_output=True, text=True, check=True)
    found = lines(run.stdout)
    assert len(found) == 40
    with client(service) as asking:
        window, most = 60000.0, 30e6 / 8 / 1448
        for action, answered, who in found:
            rate, queue = window / 1448 / 0.04, 0.0
            if rate > most:
                rate, queue = most, (window - 30e6 / 8 * 0.04) / (30e6 / 8)
            report = Report(
                rate=rate,
                queue=queue,
                ahead=queue,
                throughput=rate * 1448 * 8,
                throughput_max=30e6,
                latency=0.04 + queue,
                latency_min=0.04,
                in_flight=window,
                window=window,
                pacing=window * 8 / (0.04 + queue),
                srtt=0.04 + queue,
            )
            expected = asking.decide(1, report)
            assert (action, answered, who) == (expected.action, expected.window, "service")
            window = max(answered, 2 * 1448)


def test_c_client_with_a_key_falls_back_and_resumes(directory: Path, example: Path) -> None:
    key = directory / "key"
    key.write_text("0f" * 32)
    key.chmod(0o600)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = f"udp:127.0.0.1:{free.getsockname()[1]}"
    arguments = ("--listen", address, "--key", str(key))
    command = [str(example), address, "100000", "100", "0f" * 32]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        try:
            for wanted in ("service", "rule", "service"):
                if wanted == "service":
                    server = subprocess.Popen([str(program()), "serve", "--log-level", "warn", *arguments])
                else:
                    server.send_signal(signal.SIGKILL)
                    server.wait()
                for line in asking.stdout:
                    if line.split()[3] == wanted:
                        break
                else:
                    pytest.fail(f"never decided by the {wanted}")
        finally:
            asking.kill()
            server.kill()
            server.wait()


def test_c_rule_is_the_python_rule(directory: Path, example: Path) -> None:
    """The service ends after the client's first period, so that the rule decides the others."""
    path = directory / "serve.sock"
    with running("--listen", f"unix:{path}", wait=str(path)) as server:
        command = [example, f"unix:{path}", "100000", "100"]
        with killed(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as asking:
            terms = client(f"unix:{path}").terms
            assert asking.stdout is not None
            assert asking.stdout.readline().endswith("service\n")
            server.kill()
            server.wait()
            by_rule = next(found for line in asking.stdout if (found := lines(line)[0])[2] == "rule")
            after = lines(asking.stdout.readline())[0]
    assert terms is not None
    window = by_rule[1]
    queue = max((window - 30e6 / 8 * 0.04) / (30e6 / 8), 0.0)
    rate = min(window / 1448 / 0.04, 30e6 / 8 / 1448)
    expected = rule(terms, Report(rate=rate, ahead=queue, window=window, srtt=0.04 + queue))
    assert after[0] == expected.action
    assert after[1] == pytest.approx(expected.window, rel=1e-12)


@contextmanager
def deaf(path: Path) -> Iterator[None]:
    """A service that has stopped: its socket is there, and its queue of connections is full."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        waiting = []
        try:
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(str(path))
        except BlockingIOError:
            yield
        finally:
            for each in waiting:
                each.close()


def test_nobody_waits_for_a_service_that_accepts_nobody(directory: Path, example: Path) -> None:
    from astraea.eval import api

    path = directory / "deaf.sock"
    with deaf(path):
        run = subprocess.run([example, f"unix:{path}", "1", "100"], capture_output=True, timeout=PATIENT, check=False)
        assert (run.returncode, run.stderr.decode()) == (2, f"example: unix:{path}: no service answers\n")
        with pytest.raises(UserError, match="no service: it accepts no connection"):
            api.execute("three-flows", ["astraea"], decide=f"service=unix:{path}")
        with pytest.raises(UserError, match="no service"):
            Client(f"unix:{path}").connect(0.2)


def test_a_client_in_a_process_with_many_open_files(service: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("no more than 2047 files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert client(service).decide(1, REPORT).version is not None
    finally:
        for each in files:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_log_that_cannot_be_written_ends_nothing(directory: Path) -> None:
    path = directory / "serve.sock"
    with Path("/dev/full").open("w") as full:
        command = [str(program()), "serve", "--listen", f"unix:{path}"]  # which logs that it serves
        with subprocess.Popen(command, stderr=full) as process:
            try:
                assert client(f"unix:{path}").decide(1, REPORT).version is not None
                process.send_signal(signal.SIGHUP)  # which it logs, too
                assert client(f"unix:{path}").decide(1, REPORT).version is not None
                assert process.poll() is None
            finally:
                process.kill()


def test_sockets_of_systemd(directory: Path) -> None:
    """A socket that was made by somebody else, as socket activation does; what it holds survives a restart."""
    path = directory / "activated.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def start() -> subprocess.Popen[bytes]:
            script = f'exec 3<&{listening.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve --log-level warn'
            return subprocess.Popen(["bash", "-c", script, str(program())], pass_fds=[listening.fileno()])

        asking = Client(f"unix:{path}", timeout=PATIENT)
        _clients.append(asking)
        for _ in range(2):
            with start() as server:
                try:
                    asking.connect(PATIENT)
                    assert asking.decide(1, REPORT).version is not None
                    server.terminate()
                    assert server.wait(PATIENT) == 0
                finally:
                    server.kill()
            assert path.exists(), "the name is not the service's to remove"


def test_units_of_systemd(tmp_path: Path) -> None:
    """What systemd itself finds wrong with the units: unknown keys, sockets without a service, sandboxes that leak."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze")
    units = []
    for unit in sorted((REPOSITORY / "crates/serve/systemd").iterdir()):
        text = unit.read_text().replace("/usr/bin/astraead", str(program()))
        units.append(tmp_path / unit.name)
        units[-1].write_text(text)
    assert [unit.suffix for unit in units] == [".service", ".socket"]
    verify = subprocess.run([analyze, "verify", *units], capture_output=True, text=True, check=False)
    assert (verify.returncode, verify.stderr) == (0, "")
    # Ten times the exposure: 0 is a perfect sandbox, 100 none.
    security = [analyze, "security", "--offline=true", "--threshold=20", units[0]]
    found = subprocess.run(security, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout.splitlines()[-1:]


@pytest.mark.parametrize(
    ("service", "scheme"),
    [("astraea", "astraea"), ("astraea-pure", "astraea-pure"), ("astraea-paper", "astraea-paper")],
    indirect=["service"],
)
def test_flows_of_the_simulator_are_decided_as_locally(service: str, scheme: str) -> None:
    from astraea.eval import api

    settings = ["flow.0.duration=6s", "flow.0.start.every=1s"]
    local = api.execute("three-flows", [scheme], settings=settings, jobs=1)
    remote = api.execute("three-flows", [scheme], settings=settings, jobs=1, decide=f"service={service}")
    assert remote.content == local.content
    assert remote.series.equals(local.series)


def test_mistakes_with_a_service_are_one_line(service: str) -> None:
    for scheme, decide, backend, expected in (
        ("astraea", "unix:/nonexistent/x.sock", "sim", "unix:/nonexistent/x.sock: no service: No such file"),
        ("astraea", "tcp:1", "sim", "expected unix:PATH or udp:HOST:PORT"),
        ("astraea-pure", service, "sim", 'that of "astraea-pure"'),
        ("astraea", service, "kernel", "--decide: flows of the kernel's TCP cannot ask a service"),
    ):
        with pytest.raises(UserError, match=re.escape(expected)):
            astraea.run("three-flows", scheme, decide=f"service={decide}", backend=backend)
    with pytest.raises(UserError, match=r"^--key: only a service shares a key"):
        astraea.run("three-flows", "astraea", key="key.txt")


def test_a_service_that_leaves_ends_the_run(directory: Path) -> None:
    """Results by the local rule would be another scheme's."""
    from astraea.eval import api

    path = directory / "serve.sock"
    with running("--listen", f"unix:{path}", wait=str(path)) as server:
        threading.Timer(0.5, server.kill).start()
        with pytest.raises(UserError, match=r"did not answer \d+ of \d+ requests|no service"):
            api.execute("three-flows", ["astraea"], trials=20, jobs=1, decide=f"service=unix:{path}")


def test_the_command_says_who_may_decide() -> None:
    command = [*ASTRAEA, "run", "three-flows", "--decide", "remote"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"})
    expected = 'astraea: --decide "remote": expected local, service or service=ADDRESS, like service=unix:PATH\n'
    assert (run.returncode, run.stderr) == (2, expected)
    command = [*ASTRAEA, "run", "three-flows", "--key", "file"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"})
    expected = "astraea: --key: only a service shares a key; expected --decide service=udp:HOST:PORT with it\n"
    assert (run.returncode, run.stderr) == (2, expected)


def test_the_command_hands_over() -> None:
    run = subprocess.run([*ASTRAEA, "serve"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (2, "astraea: nothing to listen on: expected at least one address\n")
    arguments = ["bench", "serve", "--flows", "5", "--duration", "100ms", "--json"]
    run = subprocess.run([*ASTRAEA, *arguments], capture_output=True, text=True, check=True)
    assert '"decisions_per_s"' in run.stdout
