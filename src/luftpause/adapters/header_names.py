"""Names of headers in lower case, as they are compared. What comes again is remembered."""

from typing import Final

_NAMES_MAX: Final = 1024
_NAME_BYTES_MAX: Final = 64
_NAMES: Final[dict[bytes, bytes]] = {}


def lowered(name: bytes) -> bytes:
    """Return a header's name in lower case."""
    known = _NAMES.get(name)
    if known is None:
        known = name.lower()
        if len(name) <= _NAME_BYTES_MAX:
            if len(_NAMES) >= _NAMES_MAX:
                _NAMES.clear()
            _NAMES[name] = known
    return known
