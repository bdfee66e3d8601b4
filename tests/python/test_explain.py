"""The fairness certificate: proofs from signs, what is counted on the grid, and the pages made of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from policies_by_hand import ByHand, guided, linear, monotone_layers

from astraea import _native, explain, run
from astraea.cli import main
from astraea.errors import UserError
from astraea.explain import figures, grid, model, signs
from astraea.explain.certificate import certificate, percent
from astraea.explain.steady import Situation, states, step


def flipped(layer: int, unit: int, source: int) -> model.Model:
    layers = [(weights.copy(), biases) for weights, biases in monotone_layers()]
    layers[layer][0][unit, source] *= -1
    return guided(layers)


def test_signs_prove_a_monotone_network() -> None:
    proof = signs.prove(guided())
    # 15 falling inputs of 8 units, 8 x 8 and 8 weights.
    assert proof == signs.Proof(holds=True, weights=15 * 8 + 64 + 8)
    assert signs.violations(guided()) == 0


@pytest.mark.parametrize(
    ("layer", "unit", "source", "place"),
    [
        (0, 2, 21, "layer 1, unit 3: its weight on delay, period 5 of 5 is "),
        (0, 0, 0, "layer 1, unit 1: its weight on rate, period 1 of 5 is "),
        (1, 4, 6, "layer 2, unit 5: its weight on unit 7 of layer 1 is -"),
        (2, 0, 7, "layer 3, unit 1: its weight on unit 8 of layer 2 is -"),
    ],
)
def test_one_wrong_sign_is_found(layer: int, unit: int, source: int, place: str) -> None:
    proof = signs.prove(flipped(layer, unit, source))
    assert not proof.holds
    assert proof.place.startswith(place)
    found = certificate(flipped(layer, unit, source))
    assert found["kind"] == "grid"
    assert found["signs"]["place"] == proof.place


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(("layer", "source"), [(0, 23), (0, 0), (1, 6), (2, 7)])
def test_weights_that_are_not_finite_prove_nothing(layer: int, source: int, value: str) -> None:
    layers = monotone_layers()
    layers[layer][0][0, source] = float(value)
    policy = guided(layers)
    proof = signs.prove(policy)
    assert not proof.holds
    assert proof.place == f"layer {layer + 1} has a weight that is not finite"
    with np.errstate(all="ignore"):
        found = certificate(policy)
    assert (found["kind"], found["signs"]["holds"]) == ("grid", False)


def test_units_that_are_not_known_to_be_non_decreasing_prove_nothing() -> None:
    policy = model.of(ByHand(monotone_layers(), activation="swish"), "by-hand")
    proof = signs.prove(policy)
    assert proof == signs.Proof(holds=False, place='activation "swish" is not known to be non-decreasing')
    found = certificate(policy)
    assert (found["kind"], found["signs"]["holds"]) == ("grid", False)


def test_loss_and_spread_are_free() -> None:
    assert signs.prove(flipped(0, 3, 23)).holds
    assert signs.prove(flipped(0, 3, 4)).holds


def test_random_pairs_find_what_runs_wrongly() -> None:
    assert signs.violations(linear({"backlog": 0.1}, 0.0)) > 1000


def test_a_state_by_hand() -> None:
    # 10 ms of queue at 1666.7 packets/s, as in crates/policy/src/backlog.rs.
    at = Situation(1666.7 * 1448 * 8, 0.010, loss=0.01, spread=0.001)
    np.testing.assert_allclose(
        states("guided", at), [1.0, -0.9162907, 1.415639, 0.3, 0.02439508] * 5, rtol=1e-5, atol=1e-6
    )
    # Half of the 200 Mbit/s it has seen, base 40 ms: log10(2e8 / 1e5) / 5 and log10(400) / 5; 80 ms of round trip.
    paper = states("paper", Situation(100e6, 0.040, 0.040, peak=200e6))
    np.testing.assert_allclose(paper, [0.5, 0.660206, 2.0, 0.520412, 1.0, 0.0, 1.0, 0.5] * 5, rtol=1e-5)


@pytest.mark.parametrize(("octaves", "gain"), [(-8 / 3, 0.1), (8 / 3, 0.05)])
def test_the_law_rests_at_the_wanted_backlog(octaves: float, gain: float) -> None:
    rate, wanted = 2777 * 2**octaves, 10 * 2 ** (octaves * 3 / 8)  # the faster flow wants 1.1 ms: half of the gain
    expected = [0.025, min(gain / 4, 0.025), gain / 10, 0, -gain / 10, -0.9 * gain, -gain, -0.1]
    backlog = wanted * np.array([0.0, 0.75, 0.9, 1.0, 1.1, 1.9, 2.0, 50.0])
    at = Situation(rate * 1448 * 8, backlog / rate)
    np.testing.assert_allclose(step("guided", at, 0.0), expected, atol=1e-12)
    # 1 % of loss counts .3, 2 % or more .6, and all answer it in full.
    for loss, counts in ((0.01, 0.3), (0.02, 0.6), (0.5, 0.6)):
        at = Situation(rate * 1448 * 8, wanted * np.array([0.75 - counts, 1 - counts, 2 - counts]) / rate, loss=loss)
        np.testing.assert_allclose(step("guided", at, 0.0), [0.025, 0, -0.1], atol=1e-12)
    assert not step("pure", at, 0.0).any()


def test_the_network_leaves_a_quarter_of_the_growth() -> None:
    at = Situation(2777 * 1448 * 8, 10 / 2777 * np.array([0.5, 0.5, 0.9, 1.5]))
    found = step("guided", at, [-0.01, -0.04, 0.02, -0.04])
    np.testing.assert_allclose(found, [0.015, 0.00625, 0.03, -0.09], atol=1e-12)


def test_what_the_network_takes_fades_near_the_law_s_rest() -> None:
    at = Situation(2777 * 1448 * 8, 10 / 2777 * np.array([1.0, 1.125, 1.25, 1.125]))
    found = step("guided", at, [-0.04, -0.04, -0.04, 0.04])
    np.testing.assert_allclose(found, [0.0, -0.0325, -0.065, 0.0275], atol=1e-9)
    lossy = Situation(at.throughput, at.queue, loss=0.001)
    np.testing.assert_allclose(step("guided", lossy, -0.04), step("guided", lossy, 0.0) - 0.04, atol=1e-12)


def test_states_keep_their_shape() -> None:
    at = Situation(np.array([[10e6], [20e6]]), np.array([0.001, 0.01, 0.1]))
    assert states("guided", at).shape == (2, 3, 25)
    np.testing.assert_array_equal(states("guided", at)[1, 2], states("guided", Situation(20e6, 0.1)))
    assert states("paper", Situation(10e6, 0.0)).shape == (40,)


def test_flows_that_are_no_table() -> None:
    with pytest.raises(ValueError, match='form: is "other", expected one of paper, pure, guided'):
        _native.steady_states("other", np.zeros((1, 6)))
    for flows in (np.zeros((1, 5)), np.zeros(6), "text"):
        with pytest.raises(ValueError, match="flows: expected numbers of shape"):
            _native.steady_step(flows, [])
    with pytest.raises(ValueError, match="network: expected 2 numbers, one for each flow"):
        _native.steady_step(np.ones((2, 6)), [0.0])


def test_crossings() -> None:
    delays = np.array([0.0, 1.0, 2.0, 3.0])
    steps = np.array(
        [
            [2.0, 1.0, -1.0, -2.0],
            [1.0, -1.0, 1.0, -1.0],
            [1.0, 1.0, 1.0, 1.0],
            [-1.0, -1.0, -1.0, -1.0],
            [-1.0, -1.0, 1.0, 1.0],
            [3.0, -1.0, -1.0, -1.0],
        ]
    )
    nan = float("nan")
    np.testing.assert_allclose(grid.crossing(steps, delays), [1.5, nan, nan, nan, nan, 0.75])


def test_a_fair_policy_is_fair_on_the_grid() -> None:
    # Rests where 0.5 ln(0.3 + x q) = 0.4: own backlog of 1.93 packets. Without loss or spread in it.
    fair = linear({"backlog": -1.0}, 0.4)
    found = certificate(fair)
    assert found["kind"] == "proof"
    survey = found["grid"]
    assert survey["all"] == survey["falls_with_delay"] == survey["crosses_zero_once"] == 1
    assert survey["rest_falls_with_throughput"] == 1
    assert survey["failures"] == []
    backlog = np.exp(0.8) - 0.3
    found_rest = grid.lines(fair, next(grid.families("pure"))).rest
    np.testing.assert_allclose(found_rest, backlog / (grid.THROUGHPUTS / (8 * 1448)), rtol=0.01)
    # The step's slope there is -0.1 x 0.5 x (x q) / (0.3 + x q).
    slope = 0.05 * backlog / (backlog + 0.3)
    assert survey["halving_periods"]["median"] == pytest.approx(np.log(2) / slope, rel=0.02)


def test_resting_at_a_delay_is_not_fair() -> None:
    # All flows rest at ln(0.2 + 20 q) = 0, whatever their throughput: q = 40 ms. Any split is stable.
    found = certificate(linear({"delay": -1.0}, 0.0))
    assert found["kind"] == "proof"  # that nobody takes from the slower is still true
    assert "at equal throughputs only is not proved; on the grid it is so for 0 % of neighbours" in found["verdict"]
    survey = found["grid"]
    assert survey["falls_with_delay"] == survey["crosses_zero_once"] == 1
    assert survey["rest_falls_with_throughput"] == 0
    assert survey["all"] == 0
    assert "they rest at 40 and 40 ms, the faster one not at the smaller delay" in survey["failures"][0]
    assert survey["halving_periods"] == {"median": None, "largest": None}


def test_who_grows_with_throughput_is_not_fair() -> None:
    found = certificate(linear({"delay": -1.0, "rate": 1.0}, -0.5))
    assert found["kind"] == "grid"
    assert found["verdict"].startswith("Not proved: layer 1, unit 1")
    assert "On the grid 0 % of the flows" in found["verdict"]
    assert "layer 1, unit 1: its weight on rate, period 5 of 5 is 1, expected at most 0" in found["signs"]["place"]
    assert found["grid"]["falls_with_delay"] == 1
    assert found["grid"]["rest_falls_with_throughput"] == 0
    assert found["pairs"]["violations"] > 0


def test_a_step_that_rises_with_delay_is_seen() -> None:
    found = certificate(linear({"delay": 0.5, "backlog": -1.0}, 0.0))
    assert 0 <= found["grid"]["falls_with_delay"] < 1
    assert any("the step rises by" in place for place in found["grid"]["failures"])


def test_never_resting_is_seen() -> None:
    grows = certificate(linear({"delay": -0.01}, 2.0))["grid"]
    assert grows["crosses_zero_once"] == 0
    assert "the window grows at every delay" in grows["failures"][0]
    shrinks = certificate(linear({"delay": -0.01}, -2.0))["grid"]
    assert "the window grows at no delay" in shrinks["failures"][0]


def test_the_papers_form_is_counted() -> None:
    # Less for more delay, more for a smaller share: inputs 32 to 39 are the newest period.
    row = np.zeros((1, 40))
    row[0, 32], row[0, 34] = -1.0, -0.5
    policy = model.of(ByHand([(row, np.array([2.0]))], form="paper", activation="relu", alpha=0.025), "paper")
    found = certificate(policy)
    assert found["kind"] == "grid"
    assert found["verdict"].endswith("Neighbours share their base round-trip time and largest throughput.")
    assert found["pairs"] is None
    assert found["grid"]["crosses_zero_once"] == 1
    assert found["grid"]["rest_falls_with_throughput"] == 1
    # It rests where share + 0.5 (1 + q / base) = 2: with all of 200 Mbit/s at q = base, with half at twice that.
    at = Situation(np.array([[200e6], [100e6]]), grid.DELAYS, 0.04)
    np.testing.assert_allclose(grid.crossing(policy.step(at), grid.DELAYS), [0.04, 0.08], rtol=1e-3)
    # Equation 3: a full action would be 2.5 %.
    assert policy.step(Situation(200e6, 0.0)) == pytest.approx(np.log1p(0.025 * np.tanh(0.5)), rel=1e-5)


def test_figures_hold_what_the_law_says() -> None:
    silent = guided([(np.zeros((1, 25)), np.zeros(1))])
    found = figures.actions(silent)
    for flow in found["flows"]:
        rate = flow["throughput_mbps"] * 1e6 / (8 * 1448)
        assert flow["rest_ms"] == pytest.approx(1e3 * 10 * (rate / 2777) ** 0.375 / rate, rel=0.01)
        assert flow["step_percent"][0] == 2.5
    assert figures.equilibria(silent)["same_for_all_rtts"]


def test_pages(tmp_path: Path) -> None:
    made = model.of(ByHand(monotone_layers()), "<b>&nasty")
    found = explain.explain(made)
    written = explain.write(found, tmp_path / "new" / "deep")
    assert [path.name for path in written] == [
        "explain.json",
        "actions.svg",
        "actions.png",
        "equilibria.svg",
        "equilibria.png",
        "explain.html",
    ]
    assert json.loads(written[0].read_text()) == found
    for path in written[1:5]:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG") if path.suffix == ".png" else ET.fromstring(content) is not None
    text = written[-1].read_text()
    assert "&lt;b&gt;&amp;nasty" in text
    assert "<b>&nasty" not in text
    assert text.count("<svg") == 2
    for statement in found["certificate"]["statements"]:
        assert statement.replace("'", "&#39;") in text
    assert "http-equiv" not in text
    assert "src=" not in text


def test_pages_of_a_policy_that_never_rests(tmp_path: Path) -> None:
    found = explain.explain(linear({"delay": -0.01}, 2.0))
    text = explain.write(found, tmp_path)[-1].read_text()
    assert "crosses zero once for no flow" in text
    assert "the window grows at every delay" in text


@pytest.mark.parametrize(("share", "text"), [(1, "100"), (0.99999, "99.99"), (0.5, "50"), (0, "0"), (0.12345, "12.35")])
def test_percent_says_100_for_all_only(share: float, text: str) -> None:
    assert percent(share) == text


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert 'no policy "astrea"' in complaint(capsys, "astrea")
    assert "missing.safetensors: " in complaint(capsys, "missing.safetensors")
    (tmp_path / "not.safetensors").write_bytes(b"nonsense")
    assert "not.safetensors: " in complaint(capsys, "not.safetensors")
    saved().save("good.safetensors")
    (tmp_path / "taken").write_text("")
    assert "taken: cannot be made: " in complaint(capsys, "good.safetensors", "--out", "taken")
    assert {path.name for path in tmp_path.iterdir()} == {"not.safetensors", "good.safetensors", "taken"}


def saved() -> _native.Policy:
    return _native.Policy.from_weights("guided", "split", monotone_layers())


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved().save("mine.safetensors")
    assert main(["explain", "mine.safetensors"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Proved from the signs of 192 weights")
    assert "page:  out/explain-mine/explain.html" in shown
    assert main(["explain", "mine.safetensors", "--out", "there", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "there" / "explain.json").read_text())
    # The network by NumPy in these tests is the one that runs, but for rounding.
    by_hand = guided()
    states_ = np.random.default_rng(1).normal(size=(1000, 25)).astype(np.float32)
    np.testing.assert_allclose(saved().forward(states_), by_hand.policy.forward(states_), atol=1e-6)


def test_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        explain.write(explain.explain(guided()), tmp_path / "file" / "below")


def test_form_that_is_not_known() -> None:
    with pytest.raises(UserError, match="form is 'other'; expected one of paper, pure, guided"):
        model.of(ByHand(monotone_layers(), form="other"), "x")


@pytest.mark.parametrize("form", ["pure", "guided"])
def test_flows_rest_where_it_says(form: str, tmp_path: Path) -> None:
    """Features and law are those that run: two simulated flows come to rest at the delay that is shown."""
    row = np.zeros((1, 25))
    row[0, 22] = -1.0 if form == "pure" else 0.0  # the newest backlog, or the law alone
    policy = _native.Policy.from_weights(form, "relu", [(row, np.array([1.2 if form == "pure" else 0.0]))])
    policy.save(tmp_path / "mine.safetensors")
    each = 50e6 * 1448 / 1500 / 2
    steps = model.load(str(tmp_path / "mine.safetensors")).step(Situation(np.array([[each]]), grid.DELAYS))
    (expected,) = 1e3 * grid.crossing(steps, grid.DELAYS)
    settings = {
        "link.bottleneck.rate": "50Mbps",
        "link.bottleneck.delay": "20ms",
        "link.bottleneck.buffer": "4bdp",
        "flow.count": 2,
        "flow.start": "0s",
        "flow.duration": "30s",
    }
    series = run("three-flows", str(tmp_path / "mine.safetensors"), settings=settings, trials=1, jobs=1).series
    settled = series.filter(series["t"] > 15)["rtt"].drop_nulls().to_numpy()
    # A packet takes 0.24 ms to be sent; drains are short, and the median does not see them.
    assert np.nanmedian(settled) - 40.24 == pytest.approx(expected, rel=0.15)
    assert 4 < expected < 6


def test_certificate_of_what_is_shipped() -> None:
    found = certificate(model.load("astraea"))
    assert found["kind"] == "proof", found["signs"]["place"]
    assert found["pairs"]["violations"] == 0
    # Flows of every throughput, loss and spread of the grid: what the proof leaves open holds there.
    assert found["grid"]["all"] == 1, found["grid"]["failures"]
