"""Multi-agent TD3 with central critics.

All flows share one actor, which sees a flow's local state s. Each flow is an agent of its own with the same reward r,
and two critics Q(g, s, a) see the global state g as well, so that what the other flows do is no noise to them (Astraea,
section 3.4; Lowe et al., NeurIPS 2017). The critics are trained on

    y = r + discount * min over both of Q'(g2, s2, clip(pi'(s2) + clip(noise)))

where (g2, s2) come n periods later, r is the discounted sum of the rewards in between and discount is gamma to the n
(more where a sequence ends sooner, 0 where an episode diverged). ' are target networks. The actor climbs the first
critic, and is updated less often (Fujimoto et al., "Addressing function approximation error in actor-critic methods",
ICML 2018).

Rewards can be centred (Naik et al., "Reward centering", 2024): the critics then estimate by how much rewards exceed
their present average. That average for ever is most of a value, says nothing about actions, and takes the target
networks thousands of updates to follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from astraea.learn.average import Average
from astraea.learn.config import PolicySettings, Td3Settings
from astraea.learn.forms import FORMS
from astraea.learn.nets import Actor, Critics
from astraea.learn.replay import Layout


@dataclass(frozen=True)
class Progress:
    """Means since they were last asked for, over the updates in which the actor learnt too: every `policy_delay`-th."""

    critic_loss: float
    """Mean squared error of the critics."""
    value: float
    """Mean of the first critic's estimates."""
    largest: float
    """Largest magnitude of an estimate."""
    actor_value: float
    """Mean of the first critic's estimate of the actor's own actions."""
    saturated: float
    """Share of the actor's actions beyond ±0.99."""


class Td3(nn.Module):
    """Actor, critics, their targets, their optimisers and the average of the actor.

    Everything random comes from `generator`, which lives on the CPU.
    """

    def __init__(
        self, settings: Td3Settings, policy: PolicySettings, layout: Layout, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.settings = settings
        self.layout = layout
        self.generator = generator
        self.updates = 0
        self.centre: float | None = None
        """Average of the rewards, which the values leave out; None before the first."""
        falling = FORMS[policy.form].falling if policy.monotone else ()
        self.actor = Actor(layout.s, policy.hidden, falling, first_actions=policy.first_actions, generator=generator)
        self.critics = Critics(layout.g + layout.s + 1, settings.hidden, generator=generator)
        self.average = Average(self.actor.effective(), settings.average)
        self.target_actor: Tensor
        self.target_critics: Tensor
        self.register_buffer("target_actor", self.actor.effective().detach().clone())
        self.register_buffer("target_critics", self.critics.raw.detach().clone())
        self.actor_optimizer = torch.optim.Adam([self.actor.raw], settings.learning_rate, fused=True)
        self.critic_optimizer = torch.optim.Adam([self.critics.raw], settings.learning_rate, fused=True)
        self._seen: list[Tensor] = []

    def update(self, rows: Tensor) -> None:
        """One update from transitions, shape (n, layout.width)."""
        noise = torch.randn(len(rows), generator=self.generator, dtype=torch.float32).to(rows)
        loss, values = self.critic_loss(rows, self.target(rows, noise))
        self._step(self.critic_optimizer, self.critics.raw, loss)
        self.updates += 1
        if self.updates % self.settings.policy_delay == 0:
            actor_loss, actor_value, actions = self.actor_loss(rows)
            self._step(self.actor_optimizer, self.actor.raw, actor_loss)
            self._follow()
            self._note(loss, values, actor_value, actions)

    def see_reward(self, mean: float) -> None:
        """Take in the mean reward of an iteration, scaled as the rows are."""
        if self.settings.centring > 0:
            self.centre = mean if self.centre is None else self.centre + self.settings.centring * (mean - self.centre)

    @torch.no_grad()
    def target(self, rows: Tensor, noise: Tensor) -> Tensor:
        """What the critics should say, shape (n,), with standard normal `noise` of shape (n,)."""
        settings, there = self.settings, rows[:, self.layout.there]
        reward, discount = rows[:, self.layout.reward], rows[:, self.layout.discount]
        if self.centre is not None:
            # 1 + gamma + … for each of the steps; for ever after an end, where there is no reward any more.
            reward = reward - self.centre * (1.0 - discount) / (1.0 - settings.gamma)
        clip = settings.target_noise_clip
        smoothing = (noise * settings.target_noise).clamp_(-clip, clip)
        actions = self.actor(there[:, self.layout.g :], self.target_actor).add_(smoothing).clamp_(-1.0, 1.0)
        values = self.critics(torch.cat([there, actions[:, None]], 1), self.target_critics)
        return torch.addcmul(reward, discount, values.amin(0))

    def critic_loss(self, rows: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Mean squared error of both critics, added; and their values, shape (2, n)."""
        values = self.critics(rows[:, self.layout.here])
        return (values - target).square().mean() * 2, values

    def actor_loss(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss of the actor; the first critic's mean value of its actions; and these actions, shape (n,).

        The loss is minus the value, plus the penalty on the logits. Where an action changes little, its value hardly
        falls towards ±1, and errors of the critics that all states share can carry the output's bias there. tanh is
        flat by then, and all states are given one action; the penalty is what leads back.
        """
        here = rows[:, : self.layout.g + self.layout.s]
        logits = self.actor.logits(here[:, self.layout.g :])
        actions = torch.tanh(logits)
        value = self.critics.first(torch.cat([here, actions[:, None]], 1), self.critics.raw.detach()).mean()
        penalty = self.settings.logit_penalty
        loss = -value + penalty * logits.square().mean() if penalty > 0 else -value
        return loss, value, actions

    def _step(self, optimizer: torch.optim.Optimizer, parameters: nn.Parameter, loss: Tensor) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate()
        (parameters.grad,) = torch.autograd.grad(loss, parameters)
        if self.settings.gradient_norm > 0:
            nn.utils.clip_grad_norm_([parameters], self.settings.gradient_norm)
        optimizer.step()

    @torch.no_grad()
    def _follow(self) -> None:
        """The targets and the average move towards what is trained."""
        effective = self.actor.effective()
        self.target_actor.lerp_(effective, self.settings.tau)
        self.target_critics.lerp_(self.critics.raw, self.settings.tau)
        self.average.update(effective)

    def learning_rate(self) -> float:
        """Step size now: halved every `half_life` updates down to the floor."""
        settings = self.settings
        decay = 0.5 ** (self.updates / settings.half_life) if settings.half_life else 1.0
        return settings.learning_rate * max(decay, settings.learning_rate_floor)

    @torch.no_grad()
    def _note(self, loss: Tensor, values: Tensor, actor_value: Tensor, actions: Tensor) -> None:
        saturated = (actions.abs() > 0.99).to(loss).mean()
        self._seen.append(torch.stack([loss.detach(), values[0].mean(), values.abs().max(), actor_value, saturated]))

    def progress(self) -> Progress | None:
        """What the updates since the last call were like; None if the actor learnt in none of them."""
        if not self._seen:
            return None
        seen = torch.stack(self._seen).double()
        self._seen.clear()
        loss, value, largest, actor_value, saturated = seen.mean(0).tolist()
        return Progress(loss / 2, value, max(largest, float(seen[:, 2].max())), actor_value, saturated)

    def state(self) -> dict[str, Any]:
        """All that `restore` needs: networks, optimisers, generator, counters."""
        return {
            "networks": self.state_dict(),
            "actor_optimizer": self.actor_optimizer.state_dict(),
            "critic_optimizer": self.critic_optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "updates": self.updates,
            "centre": self.centre,
            "averaged": self.average.count,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a `state`."""
        self.load_state_dict(state["networks"])
        self.actor_optimizer.load_state_dict(state["actor_optimizer"])
        self.critic_optimizer.load_state_dict(state["critic_optimizer"])
        self.generator.set_state(state["generator"])
        self.updates = state["updates"]
        self.centre = state["centre"]
        self.average.count = state["averaged"]
