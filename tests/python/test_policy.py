"""Policies of the native module: weights, files, inference, and flows that they drive."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from limits import room_for
from networks import layers, policy, reference
from safetensors import safe_open

from astraea import _native
from astraea._native import Policy
from astraea.eval import registry, simulated
from astraea.scenario import document
from astraea.scenario.points import points
from astraea.scenario.resolve import Resolved, resolve


@pytest.mark.parametrize("activation", ["relu", "split"])
@pytest.mark.parametrize("hidden", [(), (7, 5), (64, 32), (256, 128, 64)])
def test_forward_is_the_definition(activation: str, hidden: tuple[int, ...]) -> None:
    made = policy("paper", activation, hidden)
    states = np.random.default_rng(2).normal(size=(101, 40)).astype(np.float32)
    actions = made.forward(states)
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions, reference(layers(40, hidden), activation, states), atol=1e-6)
    # Strided, double precision, one by one: the same bits.
    assert (made.forward(np.asfortranarray(states)) == actions).all()
    assert (made.forward(states.astype(np.float64)) == actions).all()
    assert [made.forward(state[None])[0] for state in states[:9]] == actions[:9].tolist()
    assert made.forward(states[:0]).shape == (0,)


def test_weights_come_back() -> None:
    given = layers(25, (16, 8))
    made = Policy.from_weights("pure", "split", given, 0.2, 0.02, {"name": "mine"})
    for (weights, bias), (back, bias_back) in zip(given, made.weights(), strict=True):
        np.testing.assert_array_equal(weights, back)
        np.testing.assert_array_equal(bias, bias_back)
    assert (made.form, made.activation, made.alpha, made.period, made.inputs) == ("pure", "split", 0.2, 0.02, 25)
    assert made.metadata["name"] == "mine"
    assert made.metadata["shape"] == "25-16-8-1"
    assert "backlog" in made.definition
    assert "mine" in repr(made)


def test_a_file_is_safetensors(tmp_path: Path) -> None:
    made = policy(recipe="x = 1", name="mine")
    path = tmp_path / "mine.safetensors"
    made.save(path)
    with safe_open(path, "numpy") as file:
        assert file.metadata() == made.metadata
        assert file.get_tensor("layer.0.weight").shape == (16, 25)
        np.testing.assert_array_equal(file.get_tensor("layer.2.bias"), made.weights()[2][1])
    assert Policy.load(path).to_bytes() == path.read_bytes() == made.to_bytes()
    assert Policy.from_bytes(path.read_bytes()).metadata == made.metadata


def test_a_file_that_finds_no_room_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    path.write_bytes(b"old")
    with room_for(1000), pytest.raises(ValueError, match=r"mine\.safetensors: cannot be written: File too large"):
        policy().save(path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("mine.safetensors", b"old")]


def one_line(error: pytest.ExceptionInfo[ValueError], *parts: str) -> None:
    text = str(error.value)
    assert "\n" not in text
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    "states", [np.zeros((3, 24)), np.zeros(25), np.zeros((1, 1, 25)), "text", None, [[1j] * 25], [[1.0], [2.0, 3.0]]]
)
def test_states_of_another_shape(states: Any) -> None:
    with pytest.raises(ValueError, match=r"^states: ") as error:
        policy().forward(states)
    one_line(error, "expected numbers of shape (n, 25)")


WEIGHTS, BIAS = np.zeros((1, 25)), np.zeros(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("poor", "relu", [(WEIGHTS, BIAS)]), 'form: is "poor", expected one of paper, pure, guided'),
        (("pure", "gelu", [(WEIGHTS, BIAS)]), 'activation: is "gelu", expected one of relu, split'),
        (("pure", "relu", []), "0 layers"),
        (("pure", "relu", [(BIAS, BIAS)]), "layers: layer 0: expected weights (outputs, inputs) and biases (outputs)"),
        (("pure", "relu", [(WEIGHTS, np.zeros(2))]), "layers: layer 0: expected weights"),
        (("pure", "relu", [(WEIGHTS, BIAS), (WEIGHTS, BIAS)]), "layer 1 has 25 inputs, expected 1"),
        (("paper", "relu", [(WEIGHTS, BIAS)]), '25 inputs, expected 40 for the form "paper"'),
        (("pure", "relu", [(WEIGHTS * np.nan, BIAS)]), "layer 0 has a weight that is NaN"),
        (("pure", "relu", [(WEIGHTS, BIAS)], 7.0), 'alpha is "7", expected 0.0001 to 1'),
        (("pure", "relu", [(WEIGHTS, BIAS)], 0.1, 30.0), 'period_ms is "30000", expected 1 to 1000'),
        (("pure", "relu", [(WEIGHTS, BIAS)], 0.1, 0.03, {"form": "x"}), 'metadata "form" is set by the policy itself'),
    ],
)
def test_weights_that_make_no_policy(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        Policy.from_weights(*arguments)
    one_line(error, message)


def test_a_file_that_is_no_policy(tmp_path: Path) -> None:
    content = policy().to_bytes()
    for name, bad in {
        "none": None,
        "text": b"hello",
        "cut": content[:-7],
        "other": content.replace(b"pure", b"poor"),
    }.items():
        path = tmp_path / f"{name}.safetensors"
        if bad is not None:
            path.write_bytes(bad)
        with pytest.raises(ValueError, match=r".") as error:
            Policy.load(path)
        one_line(error, f"{path}: ")
    with pytest.raises(ValueError, match="cannot be written"):
        policy().save(tmp_path / "nowhere" / "x.safetensors")


def resolved(scheme: str, *settings: str) -> Resolved:
    scenario = points(document.load("three-flows", ["duration=6s", "flow.0.start.every=1s", *settings]))[0].scenario
    return resolve(scenario, registry.scheme(scheme), {}, 1, {})


def run(scheme: str, *settings: str) -> dict[str, Any]:
    return simulated.simulate(resolved(scheme, *settings))


@pytest.mark.parametrize("form", ["paper", "pure", "guided"])
def test_a_policy_in_a_file_drives_flows(tmp_path: Path, form: str) -> None:
    path = tmp_path / "mine.safetensors"
    policy(form).save(path)
    result = run(str(path))
    assert min(flow["delivered_bytes"] for flow in result["flows"]) > 0
    series = result["series"]["delivered"]
    assert (run(str(path))["series"]["delivered"] == series).all(), "the same each time"
    policy(form, draw=2).save(path)
    assert (run(str(path))["series"]["delivered"] != series).any(), "the weights matter"


def test_a_policy_is_called_by_its_name_and_takes_no_parameters() -> None:
    scenario = points(document.load("three-flows", []))[0].scenario
    config = resolve(scenario, registry.scheme("cubic"), {}, 1, {}).config
    for flow in config["flows"]:
        flow["scheme"] = {"name": "mine", "params": {}}
    _native.check(json.dumps(config), {"mine": policy()})
    with pytest.raises(ValueError, match='unknown scheme "mine"'):
        _native.check(json.dumps(config), {"yours": policy()})
    config["flows"][0]["scheme"]["params"] = {"alpha": 1.0}
    with pytest.raises(ValueError, match='file "mine" takes no parameters'):
        _native.check(json.dumps(config), {"mine": policy()})


@pytest.mark.parametrize(("scheme", "goes_by_it"), [("astraea", True), ("astraea-pure", False), ("cubic", False)])
def test_who_goes_by_the_time_of_day(tmp_path: Path, scheme: str, goes_by_it: bool) -> None:
    path = tmp_path / "mine.safetensors"
    if scheme == "astraea":
        path.write_bytes(files("astraea").joinpath("models/astraea.safetensors").read_bytes())
    for name in (scheme, str(path)) if goes_by_it else (scheme,):
        delivered = []
        for clock in (0, 2 * 10**9, 2 * 10**9, 3602 * 10**9):
            trial = resolved(name)
            trial.flows[:] = [replace(flow, clock_ns=clock) for flow in trial.flows]
            delivered.append(simulated.simulate(trial)["series"]["delivered"])
        midnight, later, again, next_hour = delivered
        assert (later == again).all()
        assert (later == next_hour).all()
        assert (midnight != later).any() == goes_by_it


@pytest.mark.parametrize("clocks", [[1], [0, 0, -1], [0, 0, 0.5], "noon"])
def test_clocks_that_are_none(clocks: object) -> None:
    config = resolved("astraea").config | {"clocks_ns": clocks}
    with pytest.raises(ValueError, match=r"^clocks_ns: [^\n]*$"):
        _native.check(json.dumps(config))
