"""Every value that is in force, with the place that set it. Secrets stay out: only names of variables are shown."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from luftpause.config.load import Loaded, Origin
from luftpause.config.problems import ConfigError, KeyPath, Problem, as_toml, dotted
from luftpause.config.shape import known_keys, unknown_key
from luftpause.config.value_types import Section

HIDDEN = "…"
"""Stands for each value of an `env` table: people put secrets there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One key, its value as TOML text, and where it was set."""

    key: str
    value: str
    origin: Origin


def explain(loaded: Loaded, key: str = "") -> list[Explained]:
    """Return the values below a dotted key in the order of the schema, all of them without one.

    Raises:
        ConfigError: there is no such key.
    """
    rows = [row for row in _rows(loaded, loaded.config, ()) if _is_below(row.key, key)]
    if not rows:
        known = known_keys()
        siblings = [name.rpartition(".")[2] for name in known if name.rpartition(".")[0] == key.rpartition(".")[0]]
        raise ConfigError(Problem(where="config", what=unknown_key(tuple(key.split(".")), siblings or known)))
    return rows


def _is_below(key: str, wanted: str) -> bool:
    return not wanted or key == wanted or key.startswith((f"{wanted}.", f"{wanted}["))


def _rows(loaded: Loaded, section: Section, path: KeyPath) -> Iterator[Explained]:
    for field in msgspec.structs.fields(section):
        here = (*path, field.encode_name)
        value = getattr(section, field.name)
        if isinstance(value, Section):
            yield from _rows(loaded, value, here)
        elif isinstance(value, list) and any(isinstance(item, Section) for item in value):
            for index, item in enumerate(value):
                yield from _rows(loaded, item, (*here, index))
        else:
            shown = dict.fromkeys(value, HIDDEN) if isinstance(value, dict) else value
            yield Explained(key=dotted(here), value=as_toml(shown), origin=loaded.origin(dotted(here)))
