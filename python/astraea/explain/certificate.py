"""The fairness certificate: what can be said, and how surely, about where flows of a policy come to rest."""

from __future__ import annotations

from typing import Any

from astraea.explain import grid, signs
from astraea.explain.model import Model
from astraea.learn.forms import FORMS

PROVED = (
    "At equal loss and spread, the step (the relative change of the window in a period) never rises with the queueing "
    "delay and never rises with the flow's own throughput, in any of the five periods that the policy remembers.",
    "So of two flows that see the same queue, loss and spread, and have seen them for a while, the slower one never "
    "shrinks while the faster one grows, whatever their round-trip times: those change how large a step is, not its "
    "sign.",
    "At a given queueing delay, loss and spread, the throughputs at which flows rest are one value or one interval, "
    "never two values apart.",
)
STRICT = (
    "While the law is within its limits the step falls strictly, so that flows at rest have one and the same "
    "throughput. Without loss that is where the own backlog is .75 to 2 times the wanted one up to 40 Mbit/s, and .5 "
    "to 3 times from 122 Mbit/s on; with loss .75 to 2 times at all rates, less 30 times the share of packets lost, "
    "at most .6, or what is lost beyond the path's own loss if that counts more. Beyond them that is the network's "
    "doing: see the grid."
)
WEAK = (
    "No law is added, so whether the step falls strictly (one value) or is flat somewhere (an interval) is the "
    "network's doing: see the grid."
)
COVERS = (
    "any number of flows on one bottleneck, at any throughput, delay, loss and spread, not only those trained on",
    "flows of different round-trip times: the policy does not see them",
)
LEAVES_OUT = (
    "whether and how fast flows come to rest: delay in the loop could make them swing, which simulations must show",
    "flows that see different things: a late one that takes the others' queue for its base round-trip time, one with "
    "more random loss or more jitter than the other, one that takes more of its losses for the path's own, one that "
    "has just seen another queue (over .25 s)",
    "flows that have lost more than 2 % of their packets for ten seconds: they want less then, by what each has lost",
    "slow start, drains, leaps, competition with other schemes, bursts of losses, paths that keep showing no queue, "
    "and windows at their smallest or largest",
    "paths with several bottlenecks",
)
COUNTED = (
    "Nothing is proved. Steady flows are tried on a grid over the declared domain: 5 to 1000 Mbit/s shared by 1 to 50 "
    "flows, 5 to 300 ms, 0 to 2 % loss, jitter to 5 ms.",
    "Counted is for how many the step (the relative change of the window in a period) falls with the queueing delay, "
    "for how many it crosses zero once, and of how many neighbours with the same loss and spread the faster one rests "
    "at the smaller delay.",
)
BETWEEN = "whatever lies between the points of the grid or outside of it, and flows whose situation changes"


def certificate(model: Model) -> dict[str, Any]:
    """The proof if there is one, else what was counted; the grid in both cases. The object of docs/explain.md."""
    proof = signs.prove(model)
    ordered = bool(FORMS[model.form].falling)
    counted = grid.survey(model)
    statements = [*PROVED, STRICT if model.form == "guided" else WEAK] if proof.holds else list(COUNTED)
    return {
        "kind": "proof" if proof.holds else "grid",
        "verdict": _verdict(model, proof, counted),
        "statements": statements,
        "covers": list(COVERS) if proof.holds else [],
        "leaves_out": list(LEAVES_OUT) if proof.holds else [BETWEEN, *LEAVES_OUT],
        "signs": {"holds": proof.holds, "weights": proof.weights, "place": proof.place or None},
        "pairs": {"tried": signs.PAIRS, "violations": signs.violations(model)} if ordered else None,
        "grid": counted,
    }


def _verdict(model: Model, proof: signs.Proof, counted: dict[str, Any]) -> str:
    if not proof.holds:
        alike = " Neighbours share their base round-trip time and largest throughput." if model.form == "paper" else ""
        return (
            f"Not proved: {proof.place}. On the grid {percent(counted['all'])} % of the flows take less as the delay "
            f"grows, rest at one delay, and agree with their neighbours.{alike}"
        )
    where = "is proved where the law is within its limits" if model.form == "guided" else "is not proved"
    return (
        f"Proved from the signs of {proof.weights} weights: of flows that have seen the same queue for a while, no "
        f"slower one shrinks while a faster one grows. That they rest at equal throughputs only {where}; on "
        f"the grid it is so for {percent(counted['rest_falls_with_throughput'])} % of neighbours."
    )


def percent(share: float) -> str:
    """A share as a percentage that says 100 only if it is all."""
    shown = f"{100 * share:.4g}"
    return "99.99" if shown == "100" and share < 1 else shown
