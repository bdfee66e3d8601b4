"""What a training is made of, as a TOML file: every key with what it means."""

from __future__ import annotations

import math
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from astraea.errors import UserError, check_text, nearest
from astraea.learn.forms import FORMS, FormName

_SHIPPED = Path(str(resources.files("astraea"))) / "configs"

RESOLVED = "config.toml"
"""Name of the file in a training's directory that holds all settings."""

Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
Moderate = Annotated[float, Field(ge=0, le=1e6)]
Count = Annotated[int, Field(ge=1, le=2**53)]
CountOrZero = Annotated[int, Field(ge=0, le=2**53)]
Sizes = Annotated[tuple[Annotated[int, Field(ge=2, le=4096)], ...], Field(min_length=1, max_length=8, strict=False)]
ActorSizes = Annotated[
    tuple[Annotated[int, Field(ge=2, le=1024)], ...], Field(min_length=1, max_length=7, strict=False)
]

DURATION, PERIOD = (1.0, 3600.0), (0.001, 1.0)
"""Lengths in s that an episode and a monitoring period of a training may have."""

DEEPEST = 8
"""Lists and tables within each other that a value of the environment's settings may have: more than any needs."""


class Settings(BaseModel):
    """A table of the file: no other keys or types than these, no infinities, nothing changed after reading."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class PolicySettings(Settings):
    """`[policy]`: what is trained."""

    form: FormName
    """How the network is embedded: "paper", "pure" or "guided"."""
    alpha: Annotated[float, Field(ge=1e-4, le=1)]
    """Change of the window by a full action."""
    hidden: ActorSizes = (256, 128, 64)
    """Units of the hidden layers: 1 to 7 layers of 2 to 1024."""
    monotone: bool = False
    """Whether the action can never rise with the flow's own rate, backlog or delay, by the signs of the weights."""
    first_actions: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor on the first weights of the last layer. As they are drawn, a network can begin with actions that open
    every window to its limit, and then sees nothing that it could learn from; 0.1 keeps the first actions near zero."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.monotone and not FORMS[self.form].falling:
            raise ValueError(f'the form "{self.form}" has no inputs in which a policy could be monotone')
        if self.monotone and any(units % 2 for units in self.hidden):
            raise ValueError("a monotone network needs even numbers of units")
        return self


class RolloutSettings(Settings):
    """`[rollouts]`: what the learner sees between two of its turns."""

    episodes: Annotated[int, Field(ge=1, le=1_000_000)] = 16
    """Episodes of an iteration, all with the same policy; the updates of the iteration before run meanwhile."""
    noise: Annotated[float, Field(ge=0, le=2)] = 0.3
    """Exploration: standard deviation of what is added to the actions, times U(0.2, 1.5) drawn for each episode."""
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """Threads that simulate; 0: one per core. The result is the same for any number."""


class Td3Settings(Settings):
    """`[td3]`: the learner (Fujimoto et al., ICML 2018, with the central critics of Astraea, section 3.4)."""

    gamma: Annotated[float, Field(gt=0, lt=1)] = 0.98
    """Discount of a period (table 4)."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 5
    """Rewards that are summed before the critics estimate the rest: n of n-step returns."""
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Transitions of an update."""
    replays: Annotated[float, Field(gt=0, le=10_000)] = 2.0
    """How often a transition is learnt from, on average; sets the updates of an iteration unless the next key does."""
    updates_per_second: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    """Updates for each simulated second of an environment, whatever the number of transitions."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 5e-4
    """Step size of Adam, for actor and critics."""
    half_life: CountOrZero = 0
    """Updates in which the step size halves; 0: it stays."""
    learning_rate_floor: Share = 0.05
    """The step size stays above this share of its first value."""
    gradient_norm: Moderate = 0.0
    """Longer gradients are shortened to this norm; 0: none are."""
    tau: Annotated[float, Field(gt=0, le=1)] = 0.005
    """How far the target networks move towards the trained ones with each update of the actor."""
    policy_delay: Count = 2
    """Updates of the critics for one of the actor and the targets."""
    target_noise: Moderate = 0.2
    """Standard deviation of the noise on the target policy's actions, which smooths the value over similar actions."""
    target_noise_clip: Moderate = 0.5
    """That noise is clipped to plus or minus this."""
    logit_penalty: Moderate = 0.0
    """Weight, in the actor's loss, of the mean square of what tanh makes the actions of; 0: the actor is free to
    saturate, where nothing is learnt any more."""
    hidden: Sizes = (256, 128, 64)
    """Units of the hidden layers of each critic: 1 to 8 layers of 2 to 4096."""
    reward_scale: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Factor of all rewards: the critics learn faster when values are of order one."""
    centring: Share = 0.0
    """Weight of an iteration's mean reward in the running average that the values leave out; 0: they do not."""
    replay: Annotated[int, Field(ge=1, le=10**9)] = 600_000
    """Transitions that are remembered."""
    warm_up: Annotated[int, Field(ge=0)] = 20_000
    """Transitions that are gathered before the first update."""
    average: Annotated[float, Field(ge=0, lt=1)] = 0.999
    """Decay, per update of the actor, of the average of the actor's weights: the average is what is kept."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.batch > self.replay:
            raise ValueError(f"batch is {self.batch}, more than the {self.replay} transitions of replay")
        if self.warm_up > self.replay:
            raise ValueError(f"warm_up is {self.warm_up}, more than the {self.replay} transitions of replay")
        return self


class ValidationSettings(Settings):
    """`[validation]`: how the best policy is chosen, by episodes without noise that are the same every time.

    The value of an episode is the sum of the figures below times their weights, and the least that this can be,
    -(delay + loss), if it diverged. The score is (1 - tail) * mean + tail * 10th percentile of the episodes' values.
    """

    every: Count = 10
    """Iterations between validations."""
    episodes: Annotated[int, Field(ge=1, le=10_000)] = 48
    """Episodes, drawn from the same domain as the training's."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1_000_000
    """Seed of the first episode; the next has one more. Never use these seeds, or those of training, for a test."""
    environment: dict[str, Any] = {}
    """Keys that differ from `[environment]`, in its tables too."""
    jain: Moderate = 1.0
    """Weight of Jain's index, over 500 ms slots."""
    utilization: Moderate = 1.0
    """Weight of the utilisation."""
    settled: Moderate = 0.1
    """Weight of the share of arrivals, departures and changes after which all flows come to equal shares and stay."""
    delay: Moderate = 0.05
    """Weight, negative, of the mean round-trip time beyond the base, in units of the base and at most 1."""
    loss: Moderate = 1.0
    """Weight, negative, of the share of packets lost beyond the random loss."""
    tail: Share = 0.5
    """Weight of the 10th percentile; the rest is that of the mean."""
    indifference: NotNegative = 0.0
    """Difference of scores that says nothing: a later policy is kept if it is at most so far below the highest."""

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.full() == 0:
            raise ValueError("expected one of jain, utilization and settled above 0: without them no score is good")
        return self

    def full(self) -> float:
        """The score of a perfect policy."""
        return self.jain + self.utilization + self.settled

    def least(self) -> float:
        """The score of the worst one."""
        return -(self.delay + self.loss)


class RunSettings(Settings):
    """`[run]`: how long, and on what."""

    updates: Count
    """Training is over after the iteration in which so many are reached; `--minutes` may end it sooner."""
    threads: Annotated[int, Field(ge=1, le=256)] = 1
    """Threads of PyTorch, beside those that simulate. Another number gives other weights, by rounding."""
    checkpoint_seconds: NotNegative = 60.0
    """Wall time between checkpoints."""
    patience: CountOrZero = 0
    """Stop after so many validations without a better score; 0: never."""


class Config(Settings):
    """A training file."""

    name: str = ""
    """Name of the policy; the file's own name if none is given."""
    reward: str | None = None
    """A function of one's own, "file.py:function", relative to the configuration; none: `environment.reward`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """From which all randomness comes; `--seed` sets it."""
    policy: PolicySettings
    environment: dict[str, Any] = {}
    """Settings of the multi-flow environment: the domain that is trained on, and the reward's coefficients."""
    rollouts: RolloutSettings = RolloutSettings()
    td3: Td3Settings = Td3Settings()
    validation: ValidationSettings = ValidationSettings()
    run: RunSettings

    def validation_environment(self) -> dict[str, Any]:
        """Settings of the environment for validation."""
        return _merged(self.environment, self.validation.environment)


def _merged(settings: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """The settings with these others in their place, in tables within tables too."""
    both = {key: (settings[key], others[key]) for key in settings.keys() & others.keys()}
    deeper = {key: _merged(*pair) for key, pair in both.items() if all(isinstance(value, dict) for value in pair)}
    return settings | others | deeper


def names() -> list[str]:
    """Names of the configurations that are shipped, sorted."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def find(config: str) -> Path:
    """The file of a configuration, given by name or by path."""
    if config.endswith(".toml") or "/" in config:
        path = Path(config)
        if not path.is_file():
            raise UserError(f"{config}: no such configuration file")
        return path
    if config not in names():
        raise UserError(
            f'no configuration "{config}"{nearest(config, names())} (there are {", ".join(names())}; '
            "a file needs its ending .toml)"
        )
    return _SHIPPED / f"{config}.toml"


def load(path: Path, seed: int | None = None) -> Config:
    """Read and check a configuration file; its function for the reward, if any, gets an absolute path.

    Raises `UserError` with one line: file, key and what was expected.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise UserError(f"{path.name}: {reason}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path.name}: not valid TOML: {error}") from None
    if seed is not None:
        raw["seed"] = seed
    check_text("CONFIG", str(path))
    raw.setdefault("name", path.stem)
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise UserError(f"{path.name}: {_explain(error)}") from None
    _check_environment(f"{path.name}: environment", config.environment)
    _check_environment(f"{path.name}: validation.environment", config.validation.environment)
    if config.reward is None:
        return config
    return config.model_copy(update={"reward": str(path.parent.resolve() / config.reward)})


def _check_environment(where: str, environment: dict[str, Any]) -> None:
    """What the environment itself cannot say, because it would be too late or in other words."""
    if "alpha" in environment:
        raise UserError(f"{where}.alpha: stands in [policy]")
    for key, value in environment.items():
        if not _is_plain(value, DEEPEST):
            raise UserError(
                f"{where}.{key}: expected finite numbers, text, lists or tables of them, not {_shown(value)}"
            )
    for key, (least, most) in (("duration", DURATION), ("period", PERIOD)):
        given = environment.get(key, least)
        if isinstance(given, int | float) and not least <= given <= most:
            raise UserError(f"{where}.{key}: is {given:g}, expected {least:g} to {most:g} (s)")


def _is_plain(value: Any, depth: int) -> bool:
    match value:
        case dict():
            return depth > 0 and all(_is_plain(item, depth - 1) for item in value.values())
        case list():
            return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
        case float():
            return math.isfinite(value)
        case int():
            return -(2**63) <= value < 2**63  # as TOML has them
    return isinstance(value, str)


def seed_of(directory: Path) -> int | None:
    """The seed of the training in a directory, None if there is none."""
    path = directory / RESOLVED
    try:
        return load(path).seed if path.is_file() else None
    except UserError as error:
        raise UserError(f"{directory}/{error}") from None


def _explain(error: ValidationError) -> str:
    """Key path and reason of the first mistake."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    given = first["input"]
    match first["type"]:
        case "extra_forbidden":
            return f"{key}: unknown key{nearest(str(first['loc'][-1]), _siblings(first['loc'][:-1]))}"
        case "missing":
            return f"{key}: this key is required"
        case "value_error":
            return f"{key}: {first['ctx']['error']}"
        case "model_type" | "dict_type":
            reason = "expected a table"
        case "too_short":
            reason = "expected at least one entry"
        case "too_long":
            reason = f"expected at most {first['ctx']['max_length']} entries"
        case _:
            reason = first["msg"].replace("Input should be", "expected").replace("tuple", "list")
    return f"{key}: {reason}, not {_shown(given)}"


def _shown(given: Any) -> str:
    """A value as far as it fits into a line."""
    try:
        shown = f'"{given}"' if isinstance(given, str) else str(given)
    except RecursionError:
        shown = "lists or tables within each other without end"
    except ValueError:
        # Python writes no integers of thousands of digits.
        shown = "digits without end"
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _siblings(location: tuple[int | str, ...]) -> list[str]:
    """The keys of a table."""
    model: type[BaseModel] = Config
    for part in location:
        found = model.model_fields[str(part)].annotation
        assert isinstance(found, type)
        assert issubclass(found, BaseModel)
        model = found
    return list(model.model_fields)


def to_toml(config: Config) -> str:
    """All settings, defaults included, as a file that `load` reads."""
    lines: list[str] = []
    _write_table(config.model_dump(exclude_none=True), "", lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _write_table(table: dict[str, Any], path: str, lines: list[str]) -> None:
    if path:
        lines += ["", f"[{path}]"]
    lines += [f"{key} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for key, value in table.items():
        if isinstance(value, dict):
            _write_table(value, f"{path}.{key}" if path else key, lines)


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            escapes = {ord('"'): '\\"', ord("\\"): "\\\\"} | {code: f"\\u{code:04x}" for code in [*range(32), 127]}
            return f'"{value.translate(escapes)}"'
        case list() | tuple():
            return f"[{', '.join(_value(item) for item in value)}]"
        case dict():
            return "{" + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + "}"
    return repr(value)
