"""Trains the models of Antelope (ICNP 2021) or HACC by boosted trees: needs the extra train.

python examples/train_selector.py mine.antelope --links 300 --seed 1
astraea run three-flows --cc mine.antelope,antelope,bbr,cubic
python examples/train_selector.py --score mine.antelope

How the name of the file ends says whose they are. The shipped ones were made like this, and say with which seed
(`astraea models --json`); without options some seconds show that it runs. What one must know is in docs/environments.md
(Selectors) and in `crates/policy/src/selector/sender.rs`.
"""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import gymnasium
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor

import astraea.envs  # noqa: F401  registers the environments
from astraea._native import SelectorPolicy

SCHEMES = SelectorPolicy.candidates

KEPT = 200
"""Moments of a flow that are learnt from, spread over its life: a fast link has as much to say as a slow one."""

SPELL = {"antelope": 1, "hacc": 200}
"""Intervals over which the mean reward is what a choice is worth: Antelope chooses with each, HACC seldom."""

ROUNDS = {"antelope": 0, "hacc": 2}
"""Rounds of learning from what was learnt."""

PRICE = 0.05
"""What HACC pays for another scheme (alpha of equation 1)."""

DEPTH = 3
"""Questions of a tree, as in the authors' `ModelTrain.py`; so are the trees, 40, and their learning rate."""

Array = NDArray[np.float32]
Choice = Callable[[Array], int]
Model = tuple[float, NDArray[np.uint32], Array, Array]


class Flow:
    """One flow from beginning to end, and what it came to."""

    def __init__(self, env: gymnasium.Env[Array, int], link: int, choose: Choice) -> None:
        observation, info = env.reset(seed=link)
        observations, choices, rewards, times, over = [], [], [], [float(info["time"])], False
        while not over:
            observations.append(observation)
            choices.append(choose(observation))
            observation, reward, _, over, info = env.step(choices[-1])
            rewards.append(float(reward))
            times.append(float(info["time"]))
        self.observations = np.array(observations, np.float32)
        """What was seen before each choice, shape (intervals, features)."""
        self.choices = np.array(choices)
        """The schemes, shape (intervals,)."""
        self.rewards = np.array(rewards)
        """What the interval after it was worth, shape (intervals,)."""
        self.times = np.array(times)
        """When each interval began and the last one ended, shape (intervals + 1,)."""

    def reward(self) -> float:
        """Mean over time. Of 21 acknowledgements those that come in a burst make a short interval of a high rate."""
        return float(np.average(self.rewards, weights=np.diff(self.times)))

    def worth(self, spell: int) -> NDArray[np.float64]:
        """Mean reward from each choice on, over so many intervals or until the next change of the scheme."""
        sums = np.concatenate([[0.0], np.cumsum(self.rewards)])
        ends = np.append(np.flatnonzero(np.diff(self.choices)) + 1, len(self.choices))
        first = np.arange(len(self.choices))
        last = np.minimum(ends[np.searchsorted(ends, first, side="right")], first + spell)
        means: NDArray[np.float64] = (sums[last] - sums[first]) / (last - first)
        return means

    def kept(self) -> NDArray[np.intp]:
        """The intervals of moments that are spread evenly over its life, and half as many of its beginning."""
        moments = np.linspace(self.times[1], self.times[-1], KEPT, endpoint=False)
        early = np.geomspace(1, len(self.rewards), KEPT // 2).astype(np.intp) - 1
        return np.unique(np.concatenate([early, np.searchsorted(self.times, moments, side="right") - 1]))


class Chooser:
    """Chooses as the scheme of a policy does, or, now and then by chance, another scheme for a while.

    Antelope chooses what it expects most of, after the first time only if it did so twice. HACC chooses what it expects
    more of by a price than of the scheme at work, and keeps to it until the path changes; here, for a spell.
    """

    def __init__(self, policy: SelectorPolicy, chance: float = 0.0, draws: np.random.Generator | None = None) -> None:
        self.policy, self.chance, self.draws = policy, chance, draws or np.random.default_rng()
        self.scheme, self.left = SCHEMES.index("cubic"), 0
        self.last: int | None = None

    def __call__(self, observation: Array) -> int:
        """The choice after an observation."""
        if self.left > 0:
            self.left -= 1
            return self.scheme
        spell = SPELL[self.policy.form]
        if self.chance and self.draws.random() < self.chance:
            self.scheme = int(self.draws.integers(len(SCHEMES)))
            self.left = int(self.draws.geometric(1 / spell))
            return self.scheme
        worth = self.policy.predict(observation[None])[0]
        expected = int(worth.argmax())
        if self.policy.form == "hacc":
            self.left = spell - 1
            if worth[expected] > worth[self.scheme] + PRICE:
                self.scheme = expected
        elif self.last in (None, expected):
            self.scheme = expected
        self.last = expected
        return self.scheme


def always(scheme: int) -> Choice:
    """Chooses one scheme."""
    return lambda _: scheme


def environment(form: str, **settings: Any) -> gymnasium.Env[Array, int]:
    """Links of that form, one after the other."""
    return gymnasium.make("astraea/Selector-v0", disable_env_checker=True, form=form, **settings)


class Data:
    """For each scheme, what was seen when it was chosen and what came of it."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.seen: list[list[Array]] = [[] for _ in SCHEMES]
        self.worth: list[list[NDArray[np.float64]]] = [[] for _ in SCHEMES]

    def add(self, flow: Flow) -> None:
        """Takes some intervals of a flow."""
        kept, worth = flow.kept(), flow.worth(SPELL[self.form])
        for scheme in range(len(SCHEMES)):
            its = kept[flow.choices[kept] == scheme]
            self.seen[scheme].append(flow.observations[its])
            self.worth[scheme].append(worth[its])

    def fit(self, seed: int, **notes: str) -> SelectorPolicy:
        """The models of all schemes."""
        models, intervals = {}, 0
        for name, seen, worth in zip(SCHEMES, self.seen, self.worth, strict=True):
            models[name] = fit(np.concatenate(seen), np.concatenate(worth), seed)
            intervals += sum(map(len, worth))
        return SelectorPolicy(self.form, models, metadata=notes | {"seed": str(seed), "intervals": str(intervals)})


def below(values: NDArray[np.float64]) -> Array:
    """The largest 32-bit numbers that are not above these: what is above the one is above the other."""
    nearest = values.astype(np.float32)
    return np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)


def complete(tree: Any, rate: float) -> tuple[list[int], list[float], list[float]]:
    """Features, thresholds and answers of a tree, where all its branches have the same length."""
    features, thresholds = [0] * (2**DEPTH - 1), [np.inf] * (2**DEPTH - 1)
    answers = [0.0] * 2**DEPTH
    places = [(0, 0)]
    while places:
        place, node = places.pop()
        if place >= len(features):
            answers[place - len(features)] = rate * float(tree.value[node, 0, 0])
        elif tree.children_left[node] < 0:
            places += [(2 * place + 1, node), (2 * place + 2, node)]
        else:
            features[place], thresholds[place] = int(tree.feature[node]), float(tree.threshold[node])
            places += [(2 * place + 1, tree.children_left[node]), (2 * place + 2, tree.children_right[node])]
    return features, thresholds, answers


def fit(observations: Array, rewards: NDArray[np.float64], seed: int) -> Model:
    """The model of a scheme.

    Trees, depth and learning rate are the authors'. They classify rewards, as if each value were a class; here they are
    what is learnt. A split must leave three thousandths of the intervals on both sides, instead of a gain of 1.
    """
    trees = GradientBoostingRegressor(
        n_estimators=40, max_depth=DEPTH, learning_rate=0.15, min_samples_leaf=0.003, random_state=seed
    )
    trees.fit(observations, rewards)
    parts = [complete(estimator.tree_, trees.learning_rate) for estimator in trees.estimators_[:, 0]]
    features, thresholds, answers = (np.array(part) for part in zip(*parts, strict=True))
    base = float(trees.init_.constant_[0, 0])
    return base, features.astype(np.uint32), below(thresholds), answers.astype(np.float32)


def train(form: str, links: int, seed: int, **settings: Any) -> SelectorPolicy:
    """A policy learnt on so many links.

    First each scheme has each of them for itself, as Antelope's authors do it (`getTrainData.py`). Then, for HACC,
    flows go by what was learnt and by chance, since models that have seen no change of the scheme know little of what
    comes after one. Antelope's do not get better by that.
    """
    env, data, draws = environment(form, **settings), Data(form), np.random.default_rng(seed)
    recipe = f"examples/train_selector.py NAME.{form} --links {links} --seed {seed}"
    for link in range(links):
        for scheme in range(len(SCHEMES)):
            data.add(Flow(env, 10**6 * seed + link, always(scheme)))
        if 10 * (link + 1) // links > 10 * link // links:
            print(f"{link + 1} links under each scheme", flush=True)
    policy = data.fit(seed, recipe=recipe)
    for done in range(ROUNDS[form]):
        chooser = partial(Chooser, policy, 0.5, draws)
        flows = [Flow(env, 10**6 * seed + link, chooser()) for link in range(links) for _ in range(2)]
        for flow in flows:
            data.add(flow)
        print(f"round {done + 1}: reward {np.mean([flow.reward() for flow in flows]):.4f}", flush=True)
        policy = data.fit(seed, recipe=recipe)
    return policy


def score(policy: SelectorPolicy, links: int = 40, seed: int = 10**6 + 1, **settings: Any) -> dict[str, float]:
    """Mean reward of a flow, of a `Chooser` and of each scheme alone, on links that no training draws."""
    env = environment(policy.form, **settings)
    choosers: dict[str, Callable[[], Choice]] = {policy.form: partial(Chooser, policy)}
    choosers |= {name: partial(always, scheme) for scheme, name in enumerate(SCHEMES)}
    return {
        name: float(np.mean([Flow(env, 10**6 * seed + link, chooser()).reward() for link in range(links)]))
        for name, chooser in choosers.items()
    }


def whole(text: str) -> int:
    """A whole number of the command line, from 1 to a million."""
    if not text.isdecimal() or not 1 <= int(text) <= 10**6:
        raise argparse.ArgumentTypeError(f"is {text}, expected a whole number from 1 to a million")
    return int(text)


def fail(problem: str) -> NoReturn:
    """Ends with one line."""
    print(f"train_selector.py: {problem}", file=sys.stderr)
    raise SystemExit(2)


def main() -> None:
    """Train and save, or score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default="mine.antelope", help="NAME.antelope or NAME.hacc")
    parser.add_argument("--links", type=whole, default=3, help="links on which each scheme is watched for 20 s")
    parser.add_argument("--seed", type=whole, default=1)
    parser.add_argument("--score", metavar="FILE", help="train nothing; mean rewards on links that were not trained on")
    options = parser.parse_args()
    if options.score:
        try:
            scored = SelectorPolicy.load(options.score)
        except ValueError as error:
            fail(str(error))
        for name, value in score(scored).items():
            print(f"{name:10} {value:.4f}")
        return
    path = Path(options.file)
    if path.suffix not in (".antelope", ".hacc") or path.is_dir() or not os.access(path.resolve().parent, os.W_OK):
        fail(f"{options.file}: expected NAME.antelope or NAME.hacc in a directory that can be written to")
    trained = train(path.suffix[1:], options.links, options.seed)
    trained.save(path)
    print(f"wrote {path}: {trained.metadata['intervals']} intervals")


if __name__ == "__main__":
    main()
