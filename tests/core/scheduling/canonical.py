"""Values of the core as text, equal when they are, in every process: maps and sets in the order of their text."""

from enum import Enum

from immutables import Map


def text_of(value: object) -> str:
    """Return the text of a value of the core.

    Raises:
        TypeError: it holds something that a state, an event or an order must not hold.
    """
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case None | bool() | int() | float() | str():
            return repr(value)
        case Map():
            pairs = sorted(f"{text_of(key)}: {text_of(entry)}" for key, entry in value.items())
            return f"{{{', '.join(pairs)}}}"
        case frozenset():
            return f"<{', '.join(sorted(map(text_of, value)))}>"
        case tuple():
            return f"{type(value).__name__}({', '.join(map(text_of, value))})"
        case _ if names := getattr(type(value), "_fields", None) or getattr(type(value), "__dataclass_fields__", None):
            told = (f"{name}={text_of(getattr(value, name))}" for name in names)
            return f"{type(value).__name__}({', '.join(told)})"
        case _:
            raise TypeError(f"a {type(value).__name__} is no value of the core: {value!r}")
