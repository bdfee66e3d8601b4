"""What the learner must know of the forms of a policy: see `crates/policy/src/form.rs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FormName = Literal["paper", "pure", "guided"]


@dataclass(frozen=True)
class Form:
    """Inputs of a policy.

    `falling` says for each input whether an action that is to be fair must not rise with it; empty where the form has
    no such order (the paper's inputs are ratios to the flow's own past, which say nothing about its share).
    """

    inputs: int
    falling: tuple[bool, ...] = ()


# Each of five periods, oldest first: rate, queueing delay, own backlog, loss, spread of the round-trip time. More rate,
# more delay or more backlog must never raise the window; what loss and spread mean is left to learning.
_FALLING = (True, True, True, False, False) * 5

FORMS: dict[FormName, Form] = {
    "paper": Form(40),
    "pure": Form(25, _FALLING),
    "guided": Form(25, _FALLING),
}
"""The forms by name."""
