"""The configuration from its four places: defaults, one TOML file, the environment, the command line; later ones win.

Every key remembers where it was set. All problems are found before any is reported. This module never reads
`os.environ` and never prints: both are given to it or left to its caller.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import msgspec
from msgspec import inspect

from luftpause.config.check import check, unset_secrets
from luftpause.config.locate import locate
from luftpause.config.problems import ConfigError, KeyPath, Problem, dotted, shown
from luftpause.config.schema import Config
from luftpause.config.shape import expectation, faults, plain, root, type_at

DEFAULT_FILE = Path("luftpause.toml")
"""Read from the working directory when no file is named, if it is there."""
ENV_PREFIX = "LUFTPAUSE_"
ENV_EXEMPT = frozenset({"LUFTPAUSE_TOKEN", "LUFTPAUSE_VERSION", "LUFTPAUSE_REGISTRY"})
"""Variables with our prefix that are no config keys."""
FILE_BYTES_MAX = 1 << 20

_HOLDER = re.compile(r"""(?:\[\d+\]|(?:^|\.)(?:[\w-]+|'[^']*'))$""")
"""The last part of a dotted key: what is before it holds it."""
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")


class Source(Enum):
    """Which of the four places a value came from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was set; `where` is what people read: `luftpause.toml:12`, `env LUFTPAUSE_…`."""

    source: Source
    where: str


DEFAULT = Origin(Source.DEFAULT, "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A configuration that passed all checks.

    Attributes:
        origins: by dotted key, where each key that is not a default was set.
        source: the file; None means that the embedded default is in force.
        warnings: what works but is probably not meant, such as a key variable that is not set.
    """

    config: Config
    origins: Mapping[str, Origin]
    source: Path | None
    warnings: tuple[Problem, ...]

    def origin(self, key: str) -> Origin:
        """Return where a dotted key was set."""
        return self.origins.get(key, DEFAULT)

    def placed(self, problem: Problem) -> Problem:
        """Return what was found wrong with a key later on with the place where the key, or what holds it, was set."""
        key = problem.key
        while key and key not in self.origins:
            key = _HOLDER.sub("", key)
        return replace(problem, where=self.origins[key].where) if key else problem


@dataclass(slots=True)
class _Layers:
    """The tree of plain values as it grows layer by layer, and who set what."""

    tree: dict[str, object]
    origins: dict[KeyPath, Origin]

    def add(self, layer: dict[str, object], origin_of: Callable[[KeyPath], Origin]) -> None:
        _merge(self.tree, layer)
        for path, value in _walk(layer, ()):
            if not isinstance(value, dict):
                for stale in [known for known in self.origins if known[: len(path)] == path]:
                    del self.origins[stale]
        for path, _ in _walk(layer, ()):
            self.origins[path] = origin_of(path)

    def where(self, path: KeyPath, fallback: str) -> str:
        while path:
            if path in self.origins:
                return self.origins[path].where
            path = path[:-1]
        return fallback


def load(path: Path | None, env: Mapping[str, str], overrides: Mapping[str, str]) -> Loaded:
    """Read and check the configuration.

    Args:
        path: the TOML file; None means `luftpause.toml` in the working directory if there is one, else no file.
        env: the environment, for `LUFTPAUSE_SECTION__KEY` and to see whether named secrets are set.
        overrides: dotted key to text, from the command line; lists and tables as JSON.

    Raises:
        ConfigError: something is wrong, with a line for each problem.
    """
    source = path if path is not None else (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    layers = _Layers({}, {})
    if source is not None:
        tree, lines = _read(source)
        layers.add(tree, lambda at: Origin(Source.FILE, _file_place(source, lines, at)))
    problems = [
        *_add_settings(layers, _env_settings(env)),
        *_add_settings(layers, _command_line_settings(overrides)),
    ]
    fallback = str(source) if source is not None else ""

    def located(at: KeyPath, what: str) -> Problem:
        key = "" if what.startswith("unknown key") else dotted(at)  # that sentence names the key itself
        return Problem(where=layers.where(at, fallback), key=key, what=what)

    problems += [located(at, what) for at, what in faults(layers.tree, root())]
    if problems:
        raise ConfigError(*problems)
    config = msgspec.convert(layers.tree, Config)
    problems = [located(at, what) for at, what in check(config)]
    if problems:
        raise ConfigError(*problems)
    return Loaded(
        config=config,
        origins={dotted(at): origin for at, origin in layers.origins.items()},
        source=source,
        warnings=tuple(located(at, what) for at, what in unset_secrets(config, env)),
    )


@dataclass(frozen=True, slots=True)
class _Setting:
    path: KeyPath
    text: str
    origin: Origin

    def set_at(self, _: KeyPath) -> Origin:
        return self.origin


def _env_settings(env: Mapping[str, str]) -> Iterator[_Setting]:
    for name in sorted(env):  # LUFTPAUSE_DATAPLANE before LUFTPAUSE_DATAPLANE__PORT, which is more exact
        if name.startswith(ENV_PREFIX) and name not in ENV_EXEMPT:
            path = tuple(name[len(ENV_PREFIX) :].lower().split("__"))
            yield _Setting(path, env[name], Origin(Source.ENVIRONMENT, f"env {name}"))


def _command_line_settings(overrides: Mapping[str, str]) -> Iterator[_Setting]:
    for key, text in overrides.items():
        yield _Setting(tuple(key.split(".")), text, Origin(Source.COMMAND_LINE, "command line"))


def _add_settings(layers: _Layers, settings: Iterator[_Setting]) -> list[Problem]:
    problems: list[Problem] = []
    for setting in settings:
        kind = type_at(setting.path)
        try:
            value: object = _decoded(setting.text, kind) if kind is not None else setting.text
        except ValueError as error:
            problems.append(Problem(where=setting.origin.where, key=dotted(setting.path), what=str(error)))
            continue
        for name in reversed(setting.path):
            value = {name: value}
        assert isinstance(value, dict)
        layers.add(value, setting.set_at)
    return problems


def _decoded(text: str, kind: inspect.Type) -> object:
    inner = plain(kind)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not UTF-8") from None
    if isinstance(inner, inspect.StrType | inspect.LiteralType):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        if isinstance(inner, inspect.ListType | inspect.DictType | inspect.StructType):
            raise ValueError(f"expected {expectation(kind)}, written as JSON, got {shown(text)}") from None
        return text


def _read(source: Path) -> tuple[dict[str, object], dict[KeyPath, int]]:
    text = _read_text(source)
    try:
        return tomllib.loads(text), locate(text)
    except RecursionError:
        raise ConfigError(Problem(where=str(source), what="lists or tables are nested too deeply")) from None
    except ValueError as error:  # TOMLDecodeError is one; a number with thousands of digits raises the plain one
        said = str(error)
        place = _TOML_PLACE.search(said)
        where = f"{source}:{place[1]}:{place[2]}" if place else str(source)
        what = f"not valid TOML: {said[: place.start()] if place else said}"
        raise ConfigError(Problem(where=where, what=what)) from None


def _read_text(source: Path) -> str:
    try:
        with source.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(Problem(where=str(source), what=f"cannot read it: {error.strerror or error}")) from None
    except ValueError as error:  # a NUL in the path
        raise ConfigError(Problem(where=shown(str(source)), what=f"cannot read it: {error}")) from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(Problem(where=str(source), what=f"is larger than {FILE_BYTES_MAX >> 20} MiB"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(Problem(where=f"{source}:{line}", what="not UTF-8")) from None


def _file_place(source: Path, lines: Mapping[KeyPath, int], path: KeyPath) -> str:
    while path:
        if path in lines:
            return f"{source}:{lines[path]}"
        path = path[:-1]
    return str(source)


def _merge(base: dict[str, object], layer: Mapping[str, object]) -> None:
    for key, value in layer.items():
        below = base.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _merge(below, value)
        else:
            base[key] = value


def _walk(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, (*path, index))
