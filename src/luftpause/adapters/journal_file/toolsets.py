"""The tools that runs were given, each list written once for all runs that have it.

A list goes by the digest of its own text, so whoever finds a list of the name that a spawn says has the very list that
the run was given: `{"v", "kind": "toolset", "digest", "tools", "crc"}`.
"""

import hashlib
import re
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from luftpause.adapters.journal_file.checksums import CRC_TAIL_LEN, with_checksum
from luftpause.core.runs.tools import ToolSpec

REMEMBERED: Final = 16
_DIGEST_HEX: Final = 32
_BEGINNING: Final = re.compile(rb'\{"v":\d+,"kind":"toolset","digest":"([0-9a-f]{%d})","tools":' % _DIGEST_HEX)
_TOOLS: Final = msgspec.json.Decoder(tuple[ToolSpec, ...])


class Toolset(NamedTuple):
    """A list of tools: its name, and its line in a journal, newline included."""

    digest: str
    line: bytes


def toolset_of(tools: Sequence[ToolSpec], version: int) -> Toolset:
    """Return a list's name and line."""
    text = msgspec.json.encode(tools)
    digest = hashlib.sha256(text).hexdigest()[:_DIGEST_HEX]
    head = b'{"v":%d,"kind":"toolset","digest":"%s","tools":' % (version, digest.encode())
    return Toolset(digest, with_checksum(head + text))


def digest_in(line: bytes) -> str | None:
    """Return the name of the list that a line holds, sound or not; None for a line of another kind."""
    begins = _BEGINNING.match(line)
    return None if begins is None else begins.group(1).decode()


def tools_in(line: bytes) -> tuple[ToolSpec, ...]:
    """Return the tools of a sound line, without its newline, that `digest_in` knows.

    Raises:
        msgspec.MsgspecError: they are not what a list holds.
    """
    begins = _BEGINNING.match(line)
    assert begins is not None, "asked before"
    return _TOOLS.decode(line[begins.end() : -CRC_TAIL_LEN])


class Toolsets:
    """Names lists, and remembers the latest: making the text of a long one takes milliseconds, and most are alike."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._latest: deque[tuple[tuple[ToolSpec, ...], Toolset]] = deque(maxlen=REMEMBERED)

    def named(self, tools: tuple[ToolSpec, ...]) -> Toolset:
        """Return a list's name and line."""
        for known, named in self._latest:
            if known == tools:
                return named
        named = toolset_of(tools, self._version)
        self._latest.append((tools, named))
        return named
