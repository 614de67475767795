"""The checksum at the end of every line: CRC-32 of everything before it, in hexadecimal, always the last field.

It tells a line that was written whole from one that was not; it is no protection against anybody.
"""

import zlib
from typing import Final

_FIELD: Final = b',"crc":"'
CRC_TAIL_LEN: Final = len(_FIELD) + 8 + len(b'"}')


class BrokenLineError(Exception):
    """The line is not what was written."""


def with_checksum(open_body: bytes) -> bytes:
    """Return the line, newline included, of a JSON object whose closing brace is left out."""
    return open_body + _tail(open_body) + b"\n"


def require_sound(line: bytes) -> None:
    """Look at a line without its newline.

    Raises:
        BrokenLineError: its checksum is off.
    """
    if line[-CRC_TAIL_LEN:] != _tail(line[:-CRC_TAIL_LEN]):
        raise BrokenLineError("the checksum does not fit")


def _tail(open_body: bytes) -> bytes:
    return _FIELD + b"%08x" % zlib.crc32(open_body) + b'"}'
