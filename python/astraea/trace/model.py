"""Cellular-like traces by a doubly stochastic process.

The model follows the one behind Sprout's forecasts (Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts
Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013, section 3.1): packets are delivered as a
Poisson process whose rate itself wanders in Brownian motion, with outages. Here

* the rate moves every 20 ms by a normal step with the standard deviation `volatility` * `mean` * sqrt(0.02 s), and is
  reflected at 1.6 times the mean;
* when it has sunk to zero an outage begins, as in a hand-over: nothing is delivered for an exponentially distributed
  time with mean `outage`, and then the rate begins anew, uniform between zero and the top;
* within each 20 ms the number of opportunities is Poisson, their times uniform, rounded up to milliseconds.

In the long run the rate r outside outages has a density proportional to 2*r*top - r*r, the stationary law of such a
walk, and so the mean 5/8 of the top: hence the factor 1.6. A walk that is caught at zero, as in Sprout, spends a third
of its time in outages, far more than recorded LTE traces do.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from astraea.scenario.links import GeneratedTrace
from astraea.scenario.units import MTU, NS

TICK_S = 0.02
"""Time between two steps of the rate, in s."""


def generate(model: GeneratedTrace) -> NDArray[np.int64]:
    """Times in ms of the delivery opportunities of one period, ascending.

    The last one lies at the end of the period: that is how the file format says how long the trace is.
    """
    rng = np.random.default_rng(model.seed)
    ticks = math.ceil(model.duration / NS / TICK_S)
    counts = rng.poisson(_rates(model, ticks, rng) * TICK_S)
    begins = np.repeat(np.arange(ticks) * TICK_S, counts)
    times = np.ceil((begins + rng.uniform(0, TICK_S, begins.size)) * 1000).astype(np.int64)
    end = -(-model.duration // 1_000_000)
    return np.append(np.sort(times[times < end]), end)


def _rates(model: GeneratedTrace, ticks: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rate of each tick in packets/s; zero in outages."""
    mean = model.mean / (8 * MTU)
    top, step = 1.6 * mean, model.volatility * mean * math.sqrt(TICK_S)
    rates = np.zeros(ticks)
    rate, resume = rng.uniform(0, top), 0.0
    for tick in range(ticks):
        if tick * TICK_S < resume:
            continue
        rate += step * rng.standard_normal()
        if rate > top:
            rate = 2 * top - rate
        if rate <= 0:
            resume = tick * TICK_S + rng.exponential(model.outage / NS)
            rate = rng.uniform(0, top)
        else:
            rates[tick] = rate
    return rates
