"""Schemes by name: those of the native module, policies in files, and classes in Python files."""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from astraea import _native, models
from astraea.errors import UserError, nearest, said
from astraea.eval import kernel
from astraea.scenario.resolve import SchemeFile, SchemeSpec
from astraea.scenario.units import parse_rate, parse_ratio, parse_size, parse_time

SWITCH = "0 or 1"
"""Unit of parameters that are on or off."""

_WORDS = {"on": 1.0, "true": 1.0, "yes": 1.0, "off": 0.0, "false": 0.0, "no": 0.0}

FILES: dict[str, tuple[str, Callable[[Path], SchemeFile]]] = {
    models.SUFFIX: ("a policy", _native.Policy.load),
    ".dna": ("a rule table", _native.RemyTable.load),
    **{f".{name}": (paper.what, paper.load) for name, paper in models.RIVALS.items()},
}
"""Files that stand for a scheme: how their names end, what they hold and how they are read."""

PYTHON_SLOT = "constant-window"
"""The native scheme whose place a controller written in Python takes."""


@functools.cache
def native() -> dict[str, dict[str, Any]]:
    """The built-in schemes by name: title, kind, year, reference, params."""
    return {scheme["name"]: scheme for scheme in _native.schemes()}


def backends() -> dict[str, dict[str, str | None]]:
    """By scheme and backend: why it does not run there on this machine, or None if it does."""
    found, quic = kernel.availability()
    unknown = found.get("", "the kernel backend has none")
    return {name: {"sim": None, "kernel": found.get(name, unknown), "quic": quic} for name in native()}


def split(texts: Iterable[str]) -> list[str]:
    """Schemes from `--cc` options: "a,b:x=1,y=2" has two, the second with two parameters.

    Raises `UserError` for options that name none, as an empty variable of a shell does.
    """
    found: list[str] = []
    for text in texts:
        before = len(found)
        for part in text.split(","):
            if "=" in part and ":" not in part and found:
                found[-1] += f",{part}"
            elif part.strip():
                found.append(part.strip())
        if len(found) == before:
            raise UserError(f'--cc "{text}": names no scheme; expected e.g. cubic,newreno')
    return list(dict.fromkeys(found))


def scheme(text: str, directory: Path = Path()) -> SchemeSpec:
    """The scheme of a text.

    That is "name", "name:param=value,param=value", "policy.safetensors", "table.dna", "policy.aurora",
    "policy.orca", "policy.antelope", "policy.hacc", "policy.mocc" with the parameters of the scheme `mocc`, or
    "file.py:ClassName". Files are looked for in `directory`. Raises `UserError` for what does not exist, with the
    nearest name.
    """
    for suffix in FILES:
        if suffix in text:
            return _file(text, suffix, directory)
    if ".py" in text.partition("=")[0]:
        return _python(text, directory)
    name, _, settings = text.partition(":")
    if name not in native():
        raise UserError(
            f'unknown scheme "{name}"{nearest(name, native())} '
            "(`astraea schemes` lists them; a policy is file.safetensors, one of Aurora's file.aurora, of "
            "Orca's file.orca, of MOCC's file.mocc, of selectors file.antelope or file.hacc, a RemyCC's rules are "
            "file.dna, a controller in Python is file.py:ClassName)"
        )
    return SchemeSpec(text, name, _params(name, settings, f"scheme {name}"))


def _params(name: str, settings: str, where: str) -> dict[str, float]:
    """The parameters of a built-in scheme in SI units, from "param=value,param=value"; errors begin with `where`."""
    known = {param["name"]: param for param in native()[name]["params"]}
    params: dict[str, float] = {}
    for key, value in _settings(where, settings):
        if key not in known:
            has = f"; it has {', '.join(known)}" if known else "; it has none"
            raise UserError(f'{where}: unknown parameter "{key}"{nearest(key, known) or has}')
        try:
            params[key] = _number(value, known[key]["unit"])
        except ValueError as error:
            raise UserError(f"{where}: {key}: {error}") from None
        if not known[key]["min"] <= params[key] <= known[key]["max"]:
            raise UserError(f"{where}: {key}: is {value}; expected {_range(known[key])}")
    return params


def _settings(where: str, text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for part in filter(None, text.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UserError(f'{where}: cannot read "{part}"; expected parameter=value')
        if key in dict(pairs):
            raise UserError(f'{where}: parameter "{key}" is given twice')
        pairs.append((key, value))
    return pairs


def _number(text: str, unit: str) -> float:
    """A parameter's value in SI units, from text in the unit that the scheme declares."""
    if unit == SWITCH and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    match unit:
        case "bit/s":
            return parse_rate(text)
        case "s":
            return parse_time(text) / 1e9
        case "bytes":
            return float(parse_size(text))
    try:
        number = parse_ratio(text) if text.endswith("%") else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        expected = {SWITCH: "on or off", "1": "a number", "": "a number"}.get(unit, f"a number of {unit}")
        raise ValueError(f'cannot read "{text}"; expected {expected}')
    return number


def _range(param: Mapping[str, Any]) -> str:
    """What a parameter may be, in words."""
    unit = param["unit"]
    return "on or off" if unit == SWITCH else f"{param['min']:g} to {param['max']:g}{'' if unit == '1' else f' {unit}'}"


def _file(text: str, suffix: str, directory: Path) -> SchemeSpec:
    file, _, rest = text.partition(suffix)
    path = directory / f"{file}{suffix}"
    what, load = FILES[suffix]
    params: dict[str, float] = {}
    paper = models.paper(f"{file}{suffix}")
    if paper is not None and paper.parameters:
        if rest and not rest.startswith(":"):
            raise UserError(f'{path}: is followed by "{rest}"; expected {path}:parameter=value')
        params = _params(suffix[1:], rest[1:], str(path))
    elif rest:
        raise UserError(f'{path}: {what} takes no parameters, not "{rest}"')
    models.require_file(path, what)
    try:
        return SchemeSpec(text, str(path), params, policy=load(path))
    except ValueError as error:
        raise UserError(str(error)) from None


def _python(text: str, directory: Path) -> SchemeSpec:
    file, _, rest = text.partition(".py")
    path = directory / f"{file}.py"
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    name, _, settings = rest.removeprefix(":").partition(":")
    if not name:
        raise UserError(f"{text}: no class named; expected {path}:ClassName")
    module = _module(path.resolve())
    controller = getattr(module, name, None)
    if not isinstance(controller, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise UserError(f'{path}: no class "{name}"{nearest(name, classes)}')
    if not callable(getattr(controller, "decide", None)):
        raise UserError(f"{path}: class {name} has no method decide(self, stats)")
    params = {}
    for key, value in _settings(f"scheme {name}", settings):
        try:
            params[key] = _number(value, "")
        except ValueError as error:
            raise UserError(f"{path}:{name}: {key}: {error}") from None
    factory = functools.partial(controller, **params)
    try:
        factory()
    except (Exception, SystemExit) as error:
        raise UserError(f"{path}: {name}(): {type(error).__name__}: {said(error)}") from None
    return SchemeSpec(text, PYTHON_SLOT, {}, factory)


def _module(path: Path) -> Any:
    """The module in a file; loaded once for as long as the file stays as it is."""
    state = path.stat()
    return _loaded(path, state.st_mtime_ns, state.st_size)


@functools.cache
def _loaded(path: Path, _modified: int, _size: int) -> Any:
    # Files of one name in two directories are two modules.
    name = f"astraea_controller_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UserError(f"{path}: line {error.lineno or 1}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        raise UserError(f"{path}: cannot be loaded: {type(error).__name__}: {said(error)}") from None
    return module
