"""The lines of an answer as they are written: its headers, and how long a chunk is. What comes again is remembered."""

from typing import Final

from luftpause.ports.engines import Header

_CONTROLS: Final = bytes({*range(32), 127} - {9})
"""Bytes that no header may hold."""
_KEPT_MAX: Final = 1024
_SIZE_LINES: Final[dict[int, bytes]] = {}
"""The lines that say how long a chunk is, for short ones: nearly all chunks of a stream are about as short."""


def size_line(size: int) -> bytes:
    """Return the line before a chunk of so many bytes."""
    line = _SIZE_LINES.get(size)
    if line is None:
        line = b"%x\r\n" % size
        if size < _KEPT_MAX:
            _SIZE_LINES[size] = line
    return line


_LINE_BYTES_KEPT: Final = 256
_LINES: Final[dict[Header, bytes]] = {}  # most headers of an answer are those of the one before


def line_of(header: Header) -> bytes:
    """Return a header as it is written; a RuntimeError where it holds what no header may."""
    line = _LINES.get(header)
    if line is None:
        line = b": ".join(header)
        if len(line.translate(None, _CONTROLS)) != len(line):
            raise RuntimeError("a header of the answer holds a control character")
        if len(line) <= _LINE_BYTES_KEPT:
            if len(_LINES) >= _KEPT_MAX:
                _LINES.clear()
            _LINES[header] = line
    return line
