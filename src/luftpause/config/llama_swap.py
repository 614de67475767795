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
_PROXY: Final = re.compile(r"https?://(?P<host>\[[^]]*\]|[^:/]*)(?::(?P<port>[0-9]+|\$\{port\}))?(?P<path>/.+)?/?")
_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
_DEFAULT_GROUP: Final = "default"
_KNOWN: Final = frozenset(
    ("models", "groups", "routing", "macros", "globalTTL", "healthCheckTimeout", "unloadTimeout", "hooks")
)
_KNOWN_OF_MODEL: Final = frozenset(("cmd", "cmdStop", "aliases", "ttl", "env", "checkEndpoint", "macros", "proxy"))
_INSTEAD: Final[Mapping[str, str]] = {
    "apiKeys": "set LUFTPAUSE_TOKEN, or declare [[principals]]",
    "peers": "declare each under [[replicas]]",
    "profiles": "see default_model and [[rules]]",
    "selectors": "see default_model and [[rules]]",
    "startPort": "engines get free ports here",
    "logLevel": "say --log-level at the start",
    "filters": "requests go on as they came here",
    "useModelName": "an engine is asked for the model's own name here",
    "unloadTimeout": "launcher.stop_grace is for all models here",
    "concurrencyLimit": "turns wait here until their engine has room",
    "unlisted": "every model is listed here",
}
"""What stands in for a key that has no counterpart."""
_CONTAINERS: Final = frozenset(("docker", "podman", "nerdctl"))

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
    out.notes += [_without(key, key) for key in root if key not in _KNOWN]
    out.table(
        "[launcher]", {"ttl": _ttl(root.get("globalTTL", 0)), "stop_grace": f"{_whole(root, 'unloadTimeout', 10)}s"}
    )
    group_of = _groups(out, root, models)
    preload = _preloaded(out, _tree(root.get("hooks")), models)
    for name, value in models.items():
        _model(out, root, name, _tree(value), {"group": group_of[name], "preload": name in preload})
    return Imported(text="\n".join(out.lines).strip() + "\n", notes=tuple(out.notes))


def _without(where: str, key: str) -> str:
    return f"{where}: " + _INSTEAD.get(key, "has no counterpart here")


def _groups(out: _Writer, root: Tree, models: Tree) -> Mapping[str, str]:
    """Write the groups and return each model's; those in none swap with each other, as they do there."""
    router = _tree(_tree(root.get("routing")).get("router"))
    settings = _tree(router.get("settings"))
    out.notes += [f"routing.{key}: has no counterpart here" for key in _tree(root.get("routing")) if key != "router"]
    if router.get("use") == "matrix":
        out.notes.append("routing.router.settings.matrix: has no counterpart here; memory decides what stays together")
        return dict.fromkeys(models, "")
    declared = _tree(settings.get("groups")) or _tree(root.get("groups"))
    group_of = dict.fromkeys(models, _DEFAULT_GROUP)
    for name, value in declared.items():
        group = _tree(value)
        rules = {"swap": group.get("swap", True), "exclusive": group.get("exclusive", True)}
        out.table("[[launcher.groups]]", {"name": name, **rules, "persistent": group.get("persistent", False)})
        members = _texts(group.get("members"))
        out.notes += [f"groups.{name}: there is no model {member}" for member in members if member not in group_of]
        group_of.update({member: name for member in members if member in group_of})
    if _DEFAULT_GROUP in group_of.values() and _DEFAULT_GROUP not in declared:
        out.table("[[launcher.groups]]", {"name": _DEFAULT_GROUP, "swap": True, "exclusive": True})
    return group_of


def _preloaded(out: _Writer, hooks: Tree, models: Tree) -> Sequence[str]:
    at_start = _tree(hooks.get("on_startup"))
    preload = _texts(at_start.get("preload"))
    out.notes += [f"hooks.on_startup.{key}: has no counterpart here" for key in at_start if key != "preload"]
    out.notes += [f"hooks.on_startup.preload: there is no model {name}" for name in preload if name not in models]
    return preload


def _model(out: _Writer, root: Tree, name: str, model: Tree, more: Mapping[str, object]) -> None:
    if not _NAME.fullmatch(name):
        out.notes.append(f"models.{name}: left out, its name cannot be used here")
        return
    at = f"models.{name}"
    known = {**_tree(root.get("macros")), **_tree(model.get("macros")), "MODEL_ID": name, "PORT": "${port}"}
    command = list(_words(out, f"{at}.cmd", model.get("cmd"), known))
    stop = list(_words(out, f"{at}.cmdStop", model.get("cmdStop"), known))
    if any("${PID}" in word for word in stop):
        out.notes.append(f"{at}.cmdStop: left out, a signal ends the engine's whole group of processes here")
        stop = []
    if command and command[0].rpartition("/")[2] in _CONTAINERS and not stop:
        out.notes.append(f"{at}: a container needs a stop_command here, else what answers on its port is a stranger")
    health = _filled(out, f"{at}.checkEndpoint", model.get("checkEndpoint") or "/health", known)
    if health == "none":
        out.notes.append(f"{at}.checkEndpoint: here every engine must answer a health path; '/' is asked")
        health = "/"
    out.notes += [_without(f"{at}.{key}", key) for key in model if key not in _KNOWN_OF_MODEL]
    ttl = model.get("ttl", -1)
    keys: dict[str, object] = {
        "name": name,
        "aliases": list(_aliases(out, at, model, known)),
        "backend": "command",
        "command": command,
        "stop_command": stop,
        "port": _port(out, at, command, _filled(out, f"{at}.proxy", model.get("proxy"), known)),
        "health": health,
        "ttl": "" if isinstance(ttl, int) and ttl < 0 else _ttl(ttl),
        "env": dict(_env(out, at, model, known)),
        "readiness_timeout": f"{_whole(root, 'healthCheckTimeout', 120)}s",
    }
    out.table("[[launcher.models]]", {**keys, "group": more["group"], "preload": more["preload"] or None})


def _aliases(out: _Writer, at: str, model: Tree, known: Mapping[str, object]) -> Iterator[str]:
    for alias in _texts(model.get("aliases")):
        name = _filled(out, f"{at}.aliases", alias, known)
        if _NAME.fullmatch(name):
            yield name
        else:
            out.notes.append(f"{at}.aliases: {name} left out, it cannot be used as a name here")


def _env(out: _Writer, at: str, model: Tree, known: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for pair in _texts(model.get("env")):
        name, equals, value = _filled(out, f"{at}.env", pair, known).partition("=")
        if "${port}" in value:
            out.notes.append(f"{at}.env: {name} left out, only commands can say ${{PORT}} here")
        elif equals:
            yield name, value
        else:
            out.notes.append(f"{at}.env: {name} left out, it has no value")


def _port(out: _Writer, at: str, command: Sequence[str], proxy: str) -> int | None:
    """Return where an engine listens that is not told; None where it is, or nobody knows."""
    found = _PROXY.fullmatch(proxy)
    if proxy and (found is None or found["host"] not in _LOOPBACK or found["path"]):
        out.notes.append(f"{at}.proxy: engines are asked at launcher.host and their port here, with no path before it")
    if any("${port}" in word for word in command):
        return None
    if found is not None and found["port"].isdigit():
        return int(found["port"])
    out.notes.append(f"{at}: its command does not say ${{PORT}}; give the model its `port`")
    return None


def _words(out: _Writer, where: str, command: object, known: Mapping[str, object]) -> Iterator[str]:
    text = _filled(out, where, command, known)
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    try:
        yield from shlex.split(kept.replace("\\\n", " "))
    except ValueError as error:
        out.notes.append(f"{where}: cannot be cut into words ({error})")


def _filled(out: _Writer, where: str, value: object, known: Mapping[str, object]) -> str:
    """Return a text with its macros in place."""
    text = str(value or "")
    for _ in range(_MACRO_DEPTH_MAX):
        filled = _MACRO.sub(lambda found: _text(known[found[1]]) if found[1] in known else found[0], text)
        if filled == text:
            break
        text = filled
    for unknown in dict.fromkeys(_MACRO.findall(text)):
        if unknown not in ("port", "PID"):
            out.notes.append(f"{where}: knows no ${{{unknown}}} here; write what it stands for")
    return text


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
