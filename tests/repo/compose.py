"""The compose files, as the tests read them: anchors and merges resolved, one file laid over another."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from repo.sources import ROOT

FOLDER = ROOT / "deploy"
OVERLAYS = ("ollama", "testbed", "hosted", "otel")
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


@cache
def compose(overlay: str = "") -> dict[str, Any]:
    """Return the services of compose.yaml, with a second file laid over it."""
    services: dict[str, Any] = _read("compose.yaml")["services"]
    if overlay:
        _lay_over(services, _read(f"compose.{overlay}.yaml")["services"])
    return services


def filled_in(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with `${NAME}`, `${NAME:-default}` and `${NAME:?why}` replaced, as compose does.

    Raises:
        KeyError: a variable that must be there is not.
    """

    def value(match: re.Match[str]) -> str:
        name, sort, rest = match.groups()
        if variables.get(name):
            return variables[name]
        if sort == "?":
            raise KeyError(f"{name}: {rest}")
        return rest or ""

    return _VARIABLE.sub(value, text)


def _read(name: str) -> dict[str, Any]:
    read = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    assert isinstance(read, dict)
    return read


def _lay_over(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            below[key] = dict(below[key])
            _lay_over(below[key], value)
        else:
            below[key] = value
