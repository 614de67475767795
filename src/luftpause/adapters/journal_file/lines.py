"""One event as one line of JSON and back: `{"v", "seq", "run", "tree", "epoch", "at", "t", "kind", …, "crc"}`.

`crc` is the CRC-32 of everything before it in the line, in hexadecimal, and always the last field. It tells a line
that was written whole from one that was not; it is no protection against anybody.
"""

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, get_args

import msgspec

from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.events import Event

VERSION: Final = 2
_CRC_FIELD: Final = b',"crc":"'
_CRC_TAIL_LEN: Final = len(_CRC_FIELD) + 8 + len(b'"}')


class NewerVersionError(Exception):
    """The line is sound but was written by a newer luftpause."""


class BrokenLineError(Exception):
    """The line is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A line's content.

    Attributes:
        at: when it happened, on the clock of the run's tree.
        utc_s: the same in seconds since the Unix epoch, for people.
    """

    seq: int
    tree: RunId
    epoch: int
    at: ActiveMs
    utc_s: float
    event: Event


class _Head(msgspec.Struct):
    v: int
    seq: int
    tree: str
    epoch: int
    t: str
    kind: str
    at: int = 0  # version 1 had no clocks


def _kind(event_type: type[Event]) -> str:
    name = event_type.__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


_TYPES: Final[dict[str, type[Event]]] = {_kind(event_type): event_type for event_type in get_args(Event)}


def encode(record: Record) -> bytes:
    """Return the line, newline included.

    Raises:
        UnicodeEncodeError: a text holds half of a surrogate pair.
    """
    when = datetime.fromtimestamp(record.utc_s, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    fields: dict[str, object] = {
        "v": VERSION,
        "seq": record.seq,
        "run": record.event.run,
        "tree": record.tree,
        "epoch": record.epoch,
        "at": record.at,
        "t": when,
        "kind": _kind(type(record.event)),
    }
    fields.update(msgspec.to_builtins(record.event))
    open_body = msgspec.json.encode(fields)[:-1]
    return open_body + _CRC_FIELD + b"%08x" % zlib.crc32(open_body) + b'"}\n'


def decode(line: bytes) -> Record:
    """Return what a line (without its newline) holds.

    Raises:
        BrokenLineError: its checksum is off, or it holds no known event.
        NewerVersionError: its version is above ours.
    """
    open_body, tail = line[:-_CRC_TAIL_LEN], line[-_CRC_TAIL_LEN:]
    if tail != _CRC_FIELD + b"%08x" % zlib.crc32(open_body) + b'"}':
        raise BrokenLineError("the checksum does not fit")
    try:
        head = msgspec.json.decode(line, type=_Head)
        if head.v > VERSION:
            raise NewerVersionError(f"record version {head.v}, this luftpause knows up to {VERSION}")
        event_type = _TYPES.get(head.kind)
        if event_type is None:
            raise BrokenLineError(f"there is no event {head.kind!r}")
        event = msgspec.json.decode(line, type=event_type)
        when = datetime.fromisoformat(head.t).timestamp()
    except (msgspec.MsgspecError, ValueError) as error:
        raise BrokenLineError(f"no journal record: {error}") from error
    return Record(seq=head.seq, tree=RunId(head.tree), epoch=head.epoch, at=ActiveMs(head.at), utc_s=when, event=event)
