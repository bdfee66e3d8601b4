"""The policies that come with Astraea, and policies in files.

Astraea's are files NAME.safetensors; those of other papers lie beside their code in `crates/policy`. Each has a card
NAME.md here: recipe, results, known weaknesses. The native module has them built in as schemes of the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from astraea import _native
from astraea.errors import UserError, check_text, nearest

DIRECTORY = Path(__file__).resolve().parent

SUFFIX = ".safetensors"
"""How the name of a policy file ends."""


Rival = _native.AuroraPolicy | _native.MoccPolicy | _native.OrcaPolicy | _native.SelectorPolicy
"""A policy of another paper's form."""


@dataclass(frozen=True)
class Paper:
    """Another paper's policies. The one that is shipped has a card here and is built into the native module."""

    what: str
    """What one is, in words."""
    shipped: Callable[[], Rival]
    """The one that is shipped."""
    load: Callable[[Path], Rival]
    """Reads a file with one."""
    parameters: bool = False
    """Whether a file takes the parameters of the scheme of its name."""


RIVALS = {
    "aurora": Paper("a policy of Aurora's", _native.AuroraPolicy.shipped, _native.AuroraPolicy.load),
    "mocc": Paper("a policy of MOCC's", _native.MoccPolicy.shipped, _native.MoccPolicy.load, parameters=True),
    "orca": Paper("a policy of Orca's", _native.OrcaPolicy.shipped, _native.OrcaPolicy.load),
    **{
        name: Paper(
            f"a policy of {title}'s", partial(_native.SelectorPolicy.shipped, name), _native.SelectorPolicy.load
        )
        for name, title in (("antelope", "Antelope"), ("hacc", "HACC"))
    },
}
"""By the name of the scheme, which is also how the name of a file with one ends."""


def rival(policy: object) -> str | None:
    """The name in `RIVALS` of what a file holds; None if it is no other paper's policy."""
    match policy:
        case _native.AuroraPolicy():
            return "aurora"
        case _native.MoccPolicy():
            return "mocc"
        case _native.OrcaPolicy():
            return "orca"
        case _native.SelectorPolicy():
            return policy.form
    return None


def paper(text: str) -> Paper | None:
    """Whose policy it is, by the name of the scheme or of the file; None if it is Astraea's."""
    return next((p for name, p in RIVALS.items() if text == name or text.endswith(f".{name}")), None)


def names() -> list[str]:
    """The shipped policies."""
    return sorted(file.stem for file in DIRECTORY.glob(f"*{SUFFIX}"))


def path(text: str) -> Path:
    """The file of a shipped policy, or the path itself of one that ends in .safetensors. Raises `UserError`."""
    check_text("policy", text)
    if text.endswith(SUFFIX):
        return Path(text)
    known = names()
    if other := paper(text):
        raise UserError(f"{text}: {other.what}; expected one of Astraea's ({', '.join(known)}, or a file *{SUFFIX})")
    if text not in known:
        raise UserError(
            f'no policy "{text}"{nearest(text, known)} (shipped: {", ".join(known) or "none"}; '
            f"the name of a file ends in {SUFFIX})"
        )
    return DIRECTORY / f"{text}{SUFFIX}"


def require_file(file: Path, what: str) -> None:
    """`UserError` if something else has that name: to open a pipe that nobody writes to would wait for ever."""
    if file.exists() and not file.is_file():
        raise UserError(f"{file}: is no file; expected {what}")


def read(file: Path) -> _native.Policy:
    """The policy in a file. Raises `UserError`."""
    require_file(file, "a policy")
    try:
        return _native.Policy.load(file)
    except ValueError as error:
        raise UserError(str(error)) from None


def load_any(text: str) -> _native.Policy | Rival:
    """A shipped policy by its name, or the policy in a file, of any paper. Raises `UserError`."""
    check_text("policy", text)
    other = paper(text)
    if other is None:
        return load(text)
    if text in RIVALS:
        return other.shipped()
    require_file(Path(text), other.what)
    try:
        return other.load(Path(text))
    except ValueError as error:
        raise UserError(str(error)) from None


def load(text: str) -> _native.Policy:
    """A shipped policy by its name, or the policy in a file. Raises `UserError`."""
    return read(path(text))
