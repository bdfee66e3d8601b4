"""Fair shares and Jain's index over time, by the definitions of the metrics."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from astraea.eval.data import TrialData
from astraea.eval.fairshare import crossings, fair_shares
from astraea.eval.metrics import jain_series
from astraea.report.bottleneck import Key, varies
from astraea.report.run import Run
from astraea.report.sampling import Floats, Grid, Line, smooth
from astraea.report.trial_data import MBIT_PER_BYTE, trial_data

MAX_LINES = 4
"""Different fair shares drawn at a time: more dashes would hide the flows."""


def fairness(run: Run, grid: Grid, duration_s: float) -> tuple[dict[str, Floats], dict[Key, list[Line]]]:
    """Jain's index of each 500 ms slot by scheme, and the fair shares (Mbit/s) by trial.

    Both only for trials in which `jain` is defined. The shares are given on `grid`.
    """
    indices: dict[str, list[float]] = defaultdict(list)
    lines: dict[Key, list[Line]] = {}
    for trial, data in trial_data(run, duration_s):
        active = data.active()
        # The metrics leave Jain's index out where flows pause, which have no fair share, or never meet.
        if trial.metrics.get("jain") is None or active.sum(axis=0).max(initial=0) < 2:
            continue
        crosses = crossings([flow.path for flow in data.flows], len(data.capacity))
        shares, _ = fair_shares(data.capacity, crosses, active)
        indices[trial.cc] += jain_series(data, shares)
        lines[trial.number, trial.cc] = _lines(data, np.where(active, shares, np.nan), grid)
    return {cc: np.array(indices[cc]) for cc in run.schemes if indices.get(cc)}, lines


def _lines(data: TrialData, shares: Floats, grid: Grid) -> list[Line]:
    """One line for all flows whose shares agree whenever they are active together."""
    merged: list[Floats] = []
    for share in shares:
        for line in merged:
            if _agree(line, share):
                np.copyto(line, share, where=np.isnan(line))
                break
        else:
            merged.append(share.copy())
    # A constant capacity needs no smoothing, so that the share jumps where a flow comes or goes.
    fine = grid if any(varies(row) for row in data.capacity) else Grid(grid.slot_s, grid.step_s, grid.slot_s)
    t = np.arange(data.slots, dtype=np.float64) * grid.slot_s
    found = [smooth(t, row / (grid.slot_s / MBIT_PER_BYTE), fine) for row in merged[:MAX_LINES]]
    return [line for line in found if line is not None]


def _agree(a: Floats, b: Floats) -> bool:
    both = np.isfinite(a) & np.isfinite(b)
    return bool(np.allclose(a[both], b[both], rtol=1e-6))
