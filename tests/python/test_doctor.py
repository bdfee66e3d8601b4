"""`astraea doctor` and what `astraea schemes` says of backends."""

import json
import os
import shutil
import subprocess
from typing import Any

import pytest

from astraea import host
from astraea.cli import main
from astraea.eval import kernel

POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
FEATURES = ["astraea link", "astraea run --backend kernel", "astraea attach"]

droppable = pytest.mark.skipif(not shutil.which("setpriv") or os.geteuid() != 0, reason="only root can give up rights")


def _doctor(*before: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, str(host.program()), "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _findings(*before: str) -> dict[str, Any]:
    done = _doctor(*before, arguments=("--json",))
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def test_the_json_has_a_fixed_form() -> None:
    findings = _findings()
    assert findings.keys() == {
        "schema", "version", "kernel", "machine", "cores", "checks", "abilities", "schemes",
    }  # fmt: skip
    assert findings["schema"] == 1
    assert findings["kernel"] == os.uname().release
    names = [check["name"] for check in findings["checks"]]
    assert len(names) == len(set(names)) >= 9
    for check in findings["checks"]:
        assert check.keys() == {"name", "status", "found", "disables", "limits", "fix"}
        assert check["status"] in ("ok", "limited", "missing")
        # What is wrong has a consequence and a remedy; what is right has neither.
        assert (check["status"] == "missing") == bool(check["disables"])
        assert (check["status"] == "limited") == bool(check["limits"])
        assert (check["status"] == "ok") == (check["fix"] is None)
        assert set(check["disables"]) <= set(FEATURES)
    assert [ability["feature"] for ability in findings["abilities"]] == FEATURES
    for ability in findings["abilities"]:
        blocking = [check["name"] for check in findings["checks"] if ability["feature"] in check["disables"]]
        assert (ability["works"], ability["missing"]) == (not blocking, blocking)
    names = ["cubic", "newreno", "bbr", "astraea", "astraea-pure", "astraea-paper"]
    assert [scheme["name"] for scheme in findings["schemes"]] == names


def test_the_text_names_every_check() -> None:
    done = _doctor()
    assert (done.returncode, done.stderr) == (0, "")
    assert all(check["name"] in done.stdout for check in _findings()["checks"])
    assert all(feature in done.stdout for feature in FEATURES)
    assert "\x1b" not in done.stdout, "colours are for terminals"


@droppable
def test_without_rights_it_says_what_is_disabled() -> None:
    findings = _findings(*POWERLESS)
    found = {check["name"]: check for check in findings["checks"]}
    assert found["rights"]["status"] == "missing"
    assert found["rights"]["disables"] == FEATURES
    assert "CAP_NET_ADMIN" in found["rights"]["found"]
    assert found["network namespaces"]["status"] == found["TUN devices"]["status"] == "missing"
    assert not any(ability["works"] for ability in findings["abilities"])
    assert (kernel.obstacle(findings) or "").startswith("rights: ")


@droppable
@pytest.mark.parametrize("rights", ["+bpf,+perfmon", "+sys_admin"])
def test_attaching_needs_the_rights_that_the_loader_needs(rights: str) -> None:
    found = {check["name"]: check for check in _findings("setpriv", f"--bounding-set=-all,{rights}")["checks"]}
    assert found["rights"]["disables"] == FEATURES[:2]


def test_bad_arguments_are_one_line() -> None:
    done = _doctor(arguments=("--jsn",))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_schemes_have_a_column_for_each_backend(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["schemes", "--json"]) == 0
    listed = {scheme["name"]: scheme["backends"] for scheme in json.loads(capsys.readouterr().out)}
    assert all(backends["sim"] is None for backends in listed.values())
    assert listed["vegas"]["kernel"] == "the kernel backend has none"
    available = {scheme["name"]: scheme["available"] for scheme in _findings()["schemes"]}
    usable = kernel.obstacle(_findings()) is None
    assert (listed["newreno"]["kernel"] is None) == (usable and available["newreno"])
    assert main(["schemes"]) == 0
    out = capsys.readouterr().out
    assert out.split()[:3] == ["name", "sim", "kernel"]
    assert "not on kernel: " in out


def test_schemes_without_the_program_still_lists_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASTRAEAD", "/nowhere/astraead")
    assert main(["schemes", "--json"]) == 0
    listed = {scheme["name"]: scheme["backends"] for scheme in json.loads(capsys.readouterr().out)}
    assert "/nowhere/astraead" in listed["cubic"]["kernel"]
