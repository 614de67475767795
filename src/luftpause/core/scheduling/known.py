"""Looking things up in maps."""

from typing import TypeVar

from immutables import Map

Key = TypeVar("Key")
Value = TypeVar("Value")


def known(there: Map[Key, Value], key: Key) -> Value | None:
    """Return what a map has under a key that it has as a rule; else None.

    A map's own `get` is called by its name and takes four times as long. Here it is a missing key that takes long.
    """
    try:
        return there[key]
    except KeyError:
        return None


def found(there: Map[Key, Value], key: Key) -> Value | None:
    """Return what a map has under a key that it may as well lack; else None. Two look-ups take less than one `get`."""
    if key in there:
        return there[key]
    return None
