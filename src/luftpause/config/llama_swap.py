"""A llama-swap configuration as a luftpause.toml. Pure: values in, text and notes out.

Its commands become `command` backends, word by word. What has no counterpart here is noted, never dropped in silence.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")
_MACRO: Final = re.compile(r"\$\{([A-Za-z0-9_.-]+)\}")
_MACRO_DEPTH_MAX: Final = 10
_DEFAULT_GROUP: Final = "default"
_KNOWN: Final = frozenset(
    ("models", "groups", "macros", "globalTTL", "healthCheckTimeout", "unloadTimeout", "hooks", "startPort", "logLevel")
)
_KNOWN_OF_MODEL: Final = frozenset(
    ("cmd", "cmdStop", "aliases", "ttl", "env", "checkEndpoint", "macros", "name", "description", "unlisted", "proxy")
)

Tree = Mapping[str, object]


class NotLlamaSwapError(Exception):
    """The file is no llama-swap configuration; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The text of a luftpause.toml, and what could not be carried over."""

    text: str
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Writer:
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self, header: str, values: Mapping[str, object]) -> None:
        self.lines += ["", header]
        self.lines += [f"{key} = {_toml(value)}" for key, value in values.items() if value not in ([], {}, "", None)]


def imported(tree: object) -> Imported:
    """Return the same in our words.

    Raises:
        NotLlamaSwapError: it has no models.
    """
    root = _tree(tree)
    models = _tree(root.get("models"))
    if not models:
        raise NotLlamaSwapError("it has no `models`; is it a llama-swap configuration?")
    out = _Writer()
    out.notes += [f"{key}: has no counterpart here" for key in root if key not in _KNOWN]
    out.table(
        "[launcher]", {"ttl": _ttl(root.get("globalTTL", 0)), "stop_grace": f"{_whole(root, 'unloadTimeout', 10)}s"}
    )
    group_of = _groups(out, root, models)
    preload = _texts(_tree(_tree(root.get("hooks")).get("on_startup")).get("preload"))
    for name, value in models.items():
        _model(out, root, name, _tree(value), {"group": group_of[name], "preload": name in preload})
    return Imported(text="\n".join(out.lines).strip() + "\n", notes=tuple(out.notes))


def _groups(out: _Writer, root: Tree, models: Tree) -> Mapping[str, str]:
    """Write the groups and return each model's; those in none swap with each other, as they do there."""
    group_of = dict.fromkeys(models, _DEFAULT_GROUP)
    for name, value in _tree(root.get("groups")).items():
        group = _tree(value)
        rules = {"swap": group.get("swap", True), "exclusive": group.get("exclusive", True)}
        out.table("[[launcher.groups]]", {"name": name, **rules, "persistent": group.get("persistent", False)})
        group_of.update({member: name for member in _texts(group.get("members")) if member in group_of})
    if _DEFAULT_GROUP in group_of.values() and _DEFAULT_GROUP not in _tree(root.get("groups")):
        out.table("[[launcher.groups]]", {"name": _DEFAULT_GROUP, "swap": True, "exclusive": True})
    return group_of


def _model(out: _Writer, root: Tree, name: str, model: Tree, more: Mapping[str, object]) -> None:
    if not _NAME.fullmatch(name):
        out.notes.append(f"models.{name}: left out, its name cannot be used here")
        return
    known = {**_tree(root.get("macros")), **_tree(model.get("macros")), "MODEL_ID": name, "PORT": "${port}"}
    command = list(_words(out, f"models.{name}.cmd", model.get("cmd"), known))
    if not any("${port}" in word for word in command):
        out.notes.append(f"models.{name}: its command does not say ${{PORT}}; give the model its `port`")
    stop = list(_words(out, f"models.{name}.cmdStop", model.get("cmdStop"), known))
    health = str(model.get("checkEndpoint") or "/health")
    if health == "none":
        out.notes.append(f"models.{name}.checkEndpoint: here every engine must answer a health path; '/' is asked")
        health = "/"
    out.notes += [f"models.{name}.{key}: has no counterpart here" for key in model if key not in _KNOWN_OF_MODEL]
    ttl = model.get("ttl", -1)
    keys: dict[str, object] = {
        "name": name,
        "aliases": [alias for alias in _texts(model.get("aliases")) if _NAME.fullmatch(alias)],
        "backend": "command",
        "command": command,
        "stop_command": stop,
        "health": health,
        "ttl": "" if isinstance(ttl, int) and ttl < 0 else _ttl(ttl),
        "env": dict(pair.split("=", 1) for pair in _texts(model.get("env")) if "=" in pair),
        "readiness_timeout": f"{_whole(root, 'healthCheckTimeout', 120)}s",
    }
    out.table("[[launcher.models]]", {**keys, "group": more["group"], "preload": more["preload"] or None})


def _words(out: _Writer, where: str, command: object, known: Mapping[str, object]) -> Iterator[str]:
    text = str(command or "")
    for _ in range(_MACRO_DEPTH_MAX):
        filled = _MACRO.sub(lambda found: str(known.get(found[1], found[0])), text)
        if filled == text:
            break
        text = filled
    for unknown in dict.fromkeys(_MACRO.findall(text)):
        if unknown != "port":
            out.notes.append(f"{where}: knows no ${{{unknown}}} here; write what it stands for")
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    try:
        yield from shlex.split(kept.replace("\\\n", " "))
    except ValueError as error:
        out.notes.append(f"{where}: cannot be cut into words ({error})")


def _ttl(value: object) -> str:
    return f"{value}s" if isinstance(value, int) and not isinstance(value, bool) and value > 0 else "never"


def _whole(root: Tree, key: str, default: int) -> int:
    value = root.get(key, default)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def _tree(value: object) -> Tree:
    return {str(key): each for key, each in value.items()} if isinstance(value, Mapping) else {}


def _texts(value: object) -> Sequence[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    return msgspec.json.encode(value).decode()
