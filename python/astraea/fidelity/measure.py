"""Running the settings on both backends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from astraea.eval import runner
from astraea.eval.backend import Backend
from astraea.eval.simulated import Simulator
from astraea.eval.trial import TrialKey
from astraea.fidelity.settings import RECORD, Setting
from astraea.scenario.units import NS, parse_time

PICTURE_S, RECORD_S = 0.1, parse_time(RECORD) / NS
"""Lengths in s of the slots of pictures, and of those that are recorded."""


@dataclass(frozen=True)
class Measured:
    """One scheme in one setting on one backend: trials as in results.json, and the first one's course for a picture."""

    trials: list[dict[str, Any]]
    course: dict[str, list[float | None]]
    """By slot of 0.1 s: `t` in s, `throughput` of all flows in Mbit/s, `cwnd` of the first in packets, `queue_delay`
    in ms."""


@dataclass(frozen=True)
class Pair:
    """One scheme in one setting on both backends."""

    setting: Setting
    cc: str
    sim: Measured
    kernel: Measured
    """On real traffic."""
    backend: str = "kernel"
    """Which: the key of its values in what is written."""


@dataclass(frozen=True)
class Finished:
    """The pairs that were measured in full, and whether others were given up."""

    pairs: list[Pair]
    interrupted: bool


def measure(
    settings: Sequence[Setting],
    schemes: Sequence[str],
    kernel: Backend,
    *,
    duration: str,
    trials: int,
    seed: int = 1,
    on_done: Callable[[str], None] = lambda _: None,
) -> Finished:
    """Run every scheme in every setting, `trials` times on each backend; the first trial has the seed `seed`.

    Seeds are the same on both, so that at random they lose the same packets.

    An interrupt (Ctrl-C) returns the pairs of which all trials had finished. Raises `UserError` for what cannot be run,
    before anything is.
    """
    simulator, pairs = Simulator(), list[Pair]()
    with tempfile.TemporaryDirectory(prefix="astraea-") as scratch:
        plans = []
        for number, setting in enumerate(settings):
            place = Path(scratch, str(number))
            place.mkdir()
            document = setting.document(duration)
            real = runner.plan(document, schemes, seed=seed, directory=place, trials=trials, backend=kernel)
            like = runner.plan(document, schemes, seed=seed, directory=place, trials=trials, backend=simulator)
            plans.append((setting, real, like))
        try:
            for setting, real, like in plans:
                simulated, interrupted = _run(like)
                if not interrupted:
                    measured, interrupted = _run(real, on_done)
                    pairs += [Pair(setting, cc, simulated[cc], mine, kernel.name) for cc, mine in measured.items()]
                if interrupted:
                    return Finished(pairs, interrupted=True)
        except KeyboardInterrupt:  # between two runs
            return Finished(pairs, interrupted=True)
    return Finished(pairs, interrupted=False)


def _run(plan: runner.Plan, on_done: Callable[[str], None] = lambda _: None) -> tuple[dict[str, Measured], bool]:
    """What became of each scheme of which all trials finished, and whether others were given up."""

    def done(key: TrialKey) -> None:
        on_done(f"{plan.document.name}: {key.cc}")

    outcome = runner.run(plan, jobs=os.cpu_count() or 1, on_done=done)
    found: dict[str, Measured] = {}
    for cc in dict.fromkeys(result.key.cc for result in outcome.results):
        mine = [result for result in outcome.results if result.key.cc == cc]
        if len(mine) < plan.trials:
            continue
        assert mine[0].series is not None
        assert mine[0].links is not None
        found[cc] = Measured([result.entry for result in mine], _course(mine[0].series, mine[0].links))
    return found, outcome.interrupted


def _course(series: pl.DataFrame, links: pl.DataFrame) -> dict[str, list[float | None]]:
    slot = (pl.col("t") / PICTURE_S + 1e-6).floor().cast(pl.Int64)
    total = series.group_by("t").agg(pl.col("throughput").sum())
    throughput = total.group_by(slot.alias("slot")).agg(pl.col("throughput").sum() * RECORD_S / PICTURE_S)
    cwnd = series.filter(pl.col("flow") == 0).group_by(slot.alias("slot")).agg(pl.col("cwnd").mean())
    delay = links.group_by(slot.alias("slot")).agg(pl.col("queue_delay").drop_nans().mean())
    joined = delay.join(throughput, on="slot", how="left").join(cwnd, on="slot", how="left").sort("slot")
    columns = {
        "t": joined["slot"] * PICTURE_S,
        **{name: joined[name] for name in ("throughput", "cwnd", "queue_delay")},
    }
    return {name: [_short(value) for value in column.to_list()] for name, column in columns.items()}


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.4g}")
