"""The text of a custom tool, read out of the arguments of the function that stands for it while they come."""

import json
import re
from typing import Final

from luftpause.core.dialects.openai_responses.tools import CUSTOM_ARGUMENT


class CustomInput:
    """Reads `{"input": "…"}` in pieces. Of arguments that begin otherwise it reads nothing."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._rest = ""
        self._inside = False
        self._over = False

    def text(self) -> str:
        """Return what was read up to now."""
        return "".join(self._texts)

    def grown(self, arguments: str) -> str:
        """Take the next piece of the arguments; return the next piece of the text."""
        if self._over:
            return ""
        self._rest += arguments
        if not self._inside:
            found = _BEFORE.match(self._rest)
            if found is None:
                return ""
            self._inside = True
            self._rest = self._rest[found.end() :]
        readable = _READABLE.match(self._rest)
        escaped = readable.group() if readable else ""
        self._rest = self._rest[len(escaped) :]
        self._over = self._rest.startswith('"')
        return self._read(_unescaped(escaped))

    def ended(self) -> str:
        """Return the last piece of the text: what stood behind an escape that is none."""
        if not self._inside or self._over or len(self._rest) < _ESCAPE_CHARS_MAX:
            return ""
        rest, self._rest = self._rest, ""
        return self._read(rest)

    def _read(self, text: str) -> str:
        self._texts.append(text)
        return text


_ESCAPE_CHARS_MAX: Final = 12
_BEFORE: Final = re.compile(rf'\s*\{{\s*"{CUSTOM_ARGUMENT}"\s*:\s*"')
_READABLE: Final = re.compile(
    r"""(?: [^"\\]+
          | \\ [^u]
          | \\u (?! d[89ab] ) [0-9a-f]{4}
          | \\u d[89ab] [0-9a-f]{2} (?: \\u d[c-f] [0-9a-f]{2} | (?= [^\\] | \\ [^u] | \\u (?: [^d] | d [^c-f] ) ) )
        )*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Whole characters of a JSON text, up to its end or to an escape that is not yet whole.

Before Python 3.11.5 a group that is repeated possessively finds too little: gh-106052.
"""


def _unescaped(text: str) -> str:
    """Return what JSON text says. Models write line ends as they are; half of a surrogate pair cannot be said."""
    if "\\" not in text:
        return text
    try:
        said = str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text
    return said.encode("utf-8", "replace").decode()
