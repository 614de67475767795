"""What a run is recognised by, as marks: each kind has its own first letters, so that no two kinds meet."""

from collections.abc import Iterable
from typing import Final

from luftpause.core.model.ids import Mark, ToolCallId
from luftpause.core.model.turns import IdentityKeys

_SESSION: Final = "session:"


def call_marks(calls: Iterable[ToolCallId]) -> tuple[Mark, ...]:
    """Return the marks of tool calls that a turn ended in, or that a request echoes."""
    return tuple(Mark(f"call:{call}") for call in calls)


def session_mark(session: str) -> Mark:
    """Return the mark of a harness's session."""
    return Mark(f"{_SESSION}{session}")


def is_session(mark: Mark) -> bool:
    """Whether it is the mark of a harness's session."""
    return mark.startswith(_SESSION)


def key_mark(cache_key: str) -> Mark:
    """Return the mark of a `prompt_cache_key`."""
    return Mark(f"key:{cache_key}")


def named_marks(keys: IdentityKeys) -> tuple[Mark, ...]:
    """Return the marks that a request gives its run by its own names: they stay the run's from turn to turn."""
    named: list[Mark] = []
    if keys.session:
        named.append(session_mark(keys.session))
    if keys.cache_key:
        named.append(key_mark(keys.cache_key))
    return tuple(named)
