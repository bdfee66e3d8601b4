"""Shipped policies and policies in files on the command line, and their export."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from networks import policy

from astraea import _native, export, models
from astraea.cli.models import _describe as describe
from astraea.errors import UserError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of shipped policies with one in it."""
    directory = tmp_path / "models"
    directory.mkdir()
    monkeypatch.setattr(models, "DIRECTORY", directory)
    policy("guided", "split", (64, 32), name="mine", seed="7", metrics='{"jain": 0.5}', recipe="x = 1").save(
        directory / "mine.safetensors"
    )
    return directory


def test_what_is_shipped_is_built_in() -> None:
    learned = sorted(scheme["name"] for scheme in _native.schemes() if scheme["kind"] == "learned")
    # Policies of other papers are of other kinds, in files of other kinds; so are those of the selectors.
    assert learned == sorted([*models.names(), "aurora", "mocc", "orca"])
    for name in models.names():
        assert models.load(name).metadata["name"] == name
    for name in {*learned, *models.RIVALS}:
        assert (models.DIRECTORY / f"{name}.md").is_file(), f"{name} has a card"


def test_models(astraea: Run, shipped: Path) -> None:
    status, out, err = astraea("models")
    assert (status, err) == (0, "")
    assert all(text in out for text in ("mine", "guided", "25-64-32-1"))
    entry, *rivals = json.loads(astraea("models", "--json")[1])
    assert [(rival["name"], rival["form"], rival["file"]) for rival in rivals] == [
        ("aurora", "aurora", None),
        ("mocc", "mocc", None),
        ("orca", "orca", None),
        ("antelope", "antelope", None),
        ("hacc", "hacc", None),
    ]
    assert (entry["name"], entry["shape"], entry["seed"]) == ("mine", "25-64-32-1", "7")
    assert (entry["metrics"], entry["recipe"], entry["card"]) == ({"jain": 0.5}, "x = 1", None)
    assert entry["weights"] == 26 * 64 + 65 * 32 + 33
    assert entry["file"] == str(shipped / "mine.safetensors")


def test_weights_are_counted() -> None:
    # What is asked for, three numbers, to 16 units; these and thirty features to 64, 32 and 1. Each unit has a bias.
    assert describe("mocc")["weights"] == 4 * 16 + 47 * 64 + 65 * 32 + 33


def test_a_name_that_is_no_text(astraea: Run, tmp_path: Path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/\xff.safetensors")
    Path(name).write_bytes(policy().to_bytes())
    for command in (["explain", name], ["export", name, "--onnx", "x.onnx"]):
        status, out, err = astraea(*command)
        assert (status, out) == (2, ""), command
        assert "is not UTF-8 text" in err
        assert err.count("\n") == 1


@pytest.mark.usefixtures("shipped")
def test_unknown_models(astraea: Run) -> None:
    status, out, err = astraea("export", "mime", "--onnx", "x.onnx")
    assert (status, out) == (2, "")
    assert err.startswith('astraea: no policy "mime"; did you mean "mine"? (shipped: mine;')
    assert err.count("\n") == 1


def test_an_export_does_not_replace_its_policy(astraea: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    file.write_bytes(policy().to_bytes())
    status, out, err = astraea("export", str(file), "--onnx", "mine.safetensors")
    assert (status, out, err) == (
        2,
        "",
        "astraea: --onnx mine.safetensors: is the policy itself; expected another file\n",
    )
    assert file.read_bytes() == policy().to_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"hello", "not a safetensors file"),
        (b"PK\x03\x04" + bytes(1000), "not a safetensors file"),
        (policy().to_bytes()[:-3], "truncated"),
        (policy().to_bytes()[:90], "truncated"),
        (policy().to_bytes().replace(b'"F32"', b'"I32"', 1), "tensor layer.0.bias is I32, expected F32"),
        (policy().to_bytes().replace(b'form":"pure', b'form":"poor'), 'form is "poor"'),
    ],
)
def test_a_corrupt_policy_is_one_line(astraea: Run, tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "bad.safetensors").write_bytes(content)
    for command in (["run", "three-flows", "--cc", "bad.safetensors"], ["export", "bad.safetensors", "--onnx", "x"]):
        status, out, err = astraea(*command)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"astraea: bad.safetensors: {message}")
        assert [path.name for path in tmp_path.iterdir()] == (["bad.safetensors"] if content else [])


def test_a_policy_is_a_scheme(astraea: Run, tmp_path: Path) -> None:
    policy("guided").save(tmp_path / "mine.safetensors")
    settings = ["--set", "duration=3s", "--set", "flow.0.start.every=1s", "--trials", "1", "--no-report"]
    status, out, err = astraea("run", "three-flows", "--cc", "mine.safetensors,cubic", *settings, "--out", "run")
    assert (status, "mine.safetensors" in out) == (0, True), err
    assert list(json.loads(Path("run/results.json").read_text())["summary"]) == ["mine.safetensors", "cubic"]
    status, _, err = astraea("run", "three-flows", "--cc", "mine.safetensors:alpha=1")
    assert (status, err) == (2, 'astraea: mine.safetensors: a policy takes no parameters, not ":alpha=1"\n')


@pytest.mark.parametrize("activation", ["relu", "split"])
@pytest.mark.parametrize("hidden", [(), (1,), (7, 4), (256, 128, 64)])
def test_others_compute_the_same(astraea: Run, tmp_path: Path, activation: str, hidden: tuple[int, ...]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    made = policy("guided", activation, hidden, name="mine")
    made.save(tmp_path / "mine.safetensors")
    status, out, err = astraea("export", "mine.safetensors", "--onnx", "mine.onnx")
    assert (status, err) == (0, ""), err
    assert out.startswith("mine.onnx: ")
    session = onnxruntime.InferenceSession("mine.onnx", providers=["CPUExecutionProvider"])
    states = np.random.default_rng(3).normal(size=(1000, 25)).astype(np.float32)
    (actions,) = session.run(["action"], {"states": states})
    np.testing.assert_allclose(actions, made.forward(states), atol=1e-6, rtol=0)
    about = session.get_modelmeta().custom_metadata_map
    assert about["name"] == "mine"
    assert about["state_definition"] == made.definition


@pytest.mark.parametrize("name", models.RIVALS)
def test_others_compute_the_same_with_policies_of_other_papers(astraea: Run, name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    made = models.RIVALS[name].shipped()
    file = f"mine.{name}"
    made.save(file)
    # Actions of Aurora's end at its limit.
    states = np.random.default_rng(3).normal(size=(1000, made.inputs)).astype(np.float32) * 10
    if isinstance(made, _native.SelectorPolicy):
        output, expected = "worth", made.predict(states)
        assert expected.shape == (1000, len(made.candidates))
        assert expected.std() > 0.01
    else:
        output, expected = "action", made.forward(states)
        assert 0.5 < expected.max() <= 1
    for text in (name, file):
        status, out, err = astraea("export", text, "--onnx", "mine.onnx")
        assert (status, err) == (0, ""), err
        assert out.startswith("mine.onnx: ")
        session = onnxruntime.InferenceSession("mine.onnx", providers=["CPUExecutionProvider"])
        (answers,) = session.run([output], {"states": states})
        np.testing.assert_allclose(answers, expected, atol=1e-5, rtol=0)
        assert session.get_modelmeta().custom_metadata_map["state_definition"] == made.definition
    status, _, err = astraea("export", file, "--onnx", file)
    assert (status, err) == (2, f"astraea: --onnx {file}: is the policy itself; expected another file\n")
    status, _, err = astraea("explain", name)
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"astraea: {name}: {models.RIVALS[name].what}; expected one of Astraea's (astraea, ")


@pytest.mark.parametrize("suffix", [".safetensors", *(f".{name}" for name in models.RIVALS)])
def test_a_pipe_is_not_waited_for(astraea: Run, suffix: str) -> None:
    file = f"mine{suffix}"
    os.mkfifo(file)
    status, out, err = astraea("export", file, "--onnx", "mine.onnx")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"astraea: {file}: is no file; expected a policy")


def test_export_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match="needs onnx, of the extra export; in the checkout: make extra-export"):
        export.export(policy(), "mine")
