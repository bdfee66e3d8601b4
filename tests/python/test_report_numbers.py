"""The report's own arithmetic, on values worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from report_runs import write_run

from astraea.eval import registry
from astraea.eval.metrics import NAMES
from astraea.report import load, theme
from astraea.report.block import representative
from astraea.report.distribution import cdf, ellipse
from astraea.report.fairness import fairness
from astraea.report.glossary import METRICS
from astraea.report.labels import domain, places
from astraea.report.numbers import interval, show
from astraea.report.sampling import Grid, slot_length, smooth
from astraea.report.setup import sentence
from astraea.report.table import headline


def test_every_metric_is_explained_in_the_order_of_the_results() -> None:
    assert tuple(item.name for item in METRICS) == NAMES
    assert all(item.definition for item in METRICS)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.99723, "0.997"), (12.345, "12.3"), (1234.5, "1234"), (-0.5, "\N{MINUS SIGN}0.500"), (0.0, "0"), (None, "–")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (5.39, -0.594, 11.38, "[−0.6, 11.4]"),
        (0.000463, -0.001401, 0.002327, "[−0.0014, 0.0023]"),
        # No further than the mean, however narrow it is.
        (0.99996, 0.999951, 0.999969, "[1.000, 1.000]"),
        (40.0, 40.0, 40.0, "[40.0, 40.0]"),
        (0.0, -0.02, 0.02, "[−0.020, 0.020]"),
        (0.0, 0.0, 0.0, "[0, 0]"),
    ],
)
def test_intervals_have_two_digits_of_their_width(mean: float, low: float, high: float, text: str) -> None:
    assert interval(mean, low, high) == text


@pytest.mark.parametrize("mode", theme.MODES)
def test_all_schemes_that_are_shipped_have_colours_of_their_own(mode: theme.Mode) -> None:
    def brightness(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722])) + 0.05

    colours = theme.SCHEME_COLOURS[mode]
    assert len(set(colours)) == len(colours) >= len(registry.native())
    surface = theme.INK[mode].surface
    assert surface is not None
    for colour in colours:
        dark, bright = sorted(map(brightness, (colour, surface)))
        assert bright / dark >= 3, colour


def test_smoothing_is_a_centred_mean_that_skips_what_is_missing() -> None:
    t = np.array([0.0, 0.1, 0.2, 0.4, 0.5])
    y = np.array([1.0, 2.0, 6.0, np.nan, 4.0])
    line = smooth(t, y, Grid(slot_s=0.1, step_s=0.1, window_s=0.3))
    assert line is not None
    assert line.t0 == 0
    # Slot 0.3 has no row and 0.4 no number: their means are over what is around them.
    assert line.y == pytest.approx([1.5, 3.0, 4.0, 6.0, 4.0, 4.0])


def test_lines_of_a_panel_share_their_times() -> None:
    grid = Grid(slot_s=0.1, step_s=0.4, window_s=0.1)
    early = smooth(np.arange(0, 20) / 10, np.arange(20.0), grid)
    late = smooth(np.arange(7, 20) / 10, np.arange(7.0, 20), grid)
    assert early is not None
    assert late is not None
    assert early.y.tolist() == [0, 4, 8, 12, 16]
    assert late.t0 == pytest.approx(0.8)
    assert late.y.tolist() == [8, 12, 16]


def test_slots_are_found_where_some_are_missing() -> None:
    assert slot_length(np.array([0.0, 0.05, 0.01, 0.02])) == pytest.approx(0.01)


def test_a_distribution_ends_at_one_and_keeps_its_quantiles() -> None:
    x, p = cdf(np.array([3.0, 1.0, 2.0, 2.0]))
    assert x.tolist() == [1, 2, 2, 3]
    assert p.tolist() == [0.25, 0.5, 0.75, 1]
    x, p = cdf(np.arange(1.0, 10_001))
    assert len(x) <= 160
    assert p == pytest.approx(x / 10_000)


def test_an_ellipse_is_one_standard_deviation() -> None:
    x, y = np.array([-1.0, 1.0, -1.0, 1.0]), np.array([-2.0, -2.0, 2.0, 2.0])
    outline = ellipse(x + 5, y)
    assert outline is not None
    deviation = np.std([-1, 1, -1, 1], ddof=1)
    assert outline[0].max() == pytest.approx(5 + deviation, rel=1e-3)
    assert outline[1].max() == pytest.approx(2 * deviation, rel=1e-3)
    assert ellipse(x[:2], y[:2]) is None
    assert ellipse(np.ones(3), np.ones(3)) is None


def test_names_avoid_each_other() -> None:
    x, y = np.array([1.0, 1.01]), np.array([1.0, 1.0])
    first, second = places(x, y, ["one scheme", "another"], [0, 2], [0, 2])
    assert first != second


def two_flows(directory: Path, shares: tuple[float, float]) -> Path:
    """A run in which two flows get constant throughputs on a link of 10 Mbit/s; flow 2 starts after a second."""
    path = write_run(directory, schemes=("alpha",), trials=1, lives=[(0.0, 3.0), (1.0, 3.0)], capacity=10.0)
    series = pl.read_parquet(path / "series.parquet").with_columns(
        throughput=pl.when(pl.col("flow") == 0).then(shares[0]).otherwise(shares[1])
    )
    series.write_parquet(path / "series.parquet")
    return path


def test_jain_and_the_fair_share_follow_the_active_flows(tmp_path: Path) -> None:
    jain, fair = fairness(load(two_flows(tmp_path / "run", (3.0, 1.0))), Grid(0.01, 0.5, 0.5), 3.0)
    # (3 + 1)^2 / (2 (9 + 1)) in the four slots of 500 ms in which both are active.
    assert jain["alpha"] == pytest.approx([0.8] * 4)
    assert fair[0, "alpha"][0].y == pytest.approx([10, 10, 5, 5, 5, 5])


def test_the_best_value_is_marked_and_what_cannot_be_told_from_it(tmp_path: Path) -> None:
    run = load(write_run(tmp_path / "run", trials=2, lives=[(0.0, 2.0)]))
    run.summary["alpha"]["queue_delay_ms"].update(mean=5.0, low=4.0, high=6.0)  # type: ignore[attr-defined]
    run.summary["beta"]["queue_delay_ms"].update(mean=6.5, low=5.5, high=7.5)  # type: ignore[attr-defined]
    run.summary["gamma"]["queue_delay_ms"].update(mean=9.0, low=8.0, high=10.0)  # type: ignore[attr-defined]
    table = headline(run)
    column = [item.name for item in table.metrics].index("queue_delay_ms")
    cells = [cells[column] for _, cells in table.rows]
    assert [cell.rank for cell in cells] == ["best", "tie", ""]
    assert [cell.interval for cell in cells] == ["[4.0, 6.0]", "[5.5, 7.5]", "[8.0, 10.0]"]
    assert "jain" not in {item.name for item in table.metrics}, "one flow has no Jain's index"


def test_one_trial_has_no_interval(tmp_path: Path) -> None:
    table = headline(load(write_run(tmp_path / "run", trials=1, lives=[(0.0, 2.0)])))
    assert not table.has_interval
    assert not table.has_tie


def test_the_trial_in_view_is_nearest_to_the_median(tmp_path: Path) -> None:
    run = load(write_run(tmp_path / "run", schemes=("alpha",), trials=3, lives=[(0.0, 2.0), (0.0, 2.0)]))
    for trial, jain in zip(run.trials, (0.9, 0.95, 0.5), strict=True):
        trial.metrics["jain"] = jain  # type: ignore[index]
    assert representative(run) == (0, "jain")


def test_the_set_up_is_one_sentence(tmp_path: Path) -> None:
    run = load(write_run(tmp_path / "run", trials=1, lives=[(0.0, 2.0)]))
    assert sentence(run) == (
        "3 flows (40 s apart, 120 s each) over bottleneck (100 Mbps, 15 ms one way, drop-tail buffer 1 BDP)."
    )


def test_what_is_varied_is_said(tmp_path: Path) -> None:
    points = [(f"rate {rate}", {"link.bottleneck.rate": rate}) for rate in (1, 2)]
    run = load(write_run(tmp_path / "run", trials=1, lives=[(0.0, 2.0)], points=points))
    assert sentence(run).endswith("buffer 1 BDP). Varied: link.bottleneck.rate.")


def test_a_sweep_of_a_single_point_is_said_as_it_ran(tmp_path: Path) -> None:
    points = [("2 flows", {"flow.count": 2, "link.bottleneck.rate": "20Mbps"})]
    run = load(write_run(tmp_path / "run", trials=1, lives=[(0.0, 2.0)], points=points))
    assert sentence(run) == (
        "2 flows (40 s apart, 120 s each) over bottleneck (20 Mbps, 15 ms one way, drop-tail buffer 1 BDP)."
    )
    points = [("other", {"link.other.rate": "20Mbps"})]
    run = load(write_run(tmp_path / "other", trials=1, lives=[(0.0, 2.0)], points=points))
    assert sentence(run).endswith("buffer 1 BDP). Varied: link.other.rate.")
    run = load(write_run(tmp_path / "text", trials=1, lives=[(0.0, 2.0)], points=[("", {"flow.count": "two"})]))
    assert sentence(run).startswith("3 flows")


def test_axes_do_not_magnify_what_hardly_differs() -> None:
    assert domain(np.array([8.318, 8.320]), zero=False) == pytest.approx([8.318 - 0.416, 8.320 + 0.416])
    assert domain(np.array([60.0, 100.0]), zero=False) == pytest.approx([55, 105])
    assert domain(np.array([1.0, 100.0]), zero=False) == pytest.approx([0, 110])
