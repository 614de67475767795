"""One event as one line of JSON and back: `{"v", "seq", "run", "tree", "epoch", "at", "t", "kind", …, "crc"}`.

A condensed run is a line too: `archive` tells where its history went, and its `seq` is that of its last event. A spawn
names the list of its tools, which is a line of its own: see `toolsets`.
"""

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, get_args

import msgspec

from luftpause.adapters.journal_file.checksums import BrokenLineError, require_sound, with_checksum
from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.events import Event, RunSpawned

VERSION: Final = 3


class NewerVersionError(Exception):
    """The line is sound but was written by a newer luftpause."""


class Piece(NamedTuple):
    """Where lines of one run stand in the archive: in segment `runs-NNNN.jsonl`, bytes."""

    segment: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A line's content.

    Attributes:
        at: when it happened, on the clock of the run's tree.
        utc_s: the same in seconds since the Unix epoch, for people.
        archive: of a condensed run, where its lines are, in order.
        toolset: of a spawn, the name of the list of its tools; the event is without them then.
    """

    seq: int
    tree: RunId
    epoch: int
    at: ActiveMs
    utc_s: float
    event: Event | RunCondensed
    archive: tuple[Piece, ...] = ()
    toolset: str = ""


class _Head(msgspec.Struct):
    v: int
    seq: int
    tree: str
    epoch: int
    t: str
    kind: str
    at: int = 0  # version 1 had no clocks
    archive: tuple[Piece, ...] = ()
    toolset: str = ""  # before version 3 the tools themselves stood there


def _kind(event_type: type[Event | RunCondensed]) -> str:
    name = event_type.__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


_TYPES: Final[dict[str, type[Event | RunCondensed]]] = {
    _kind(event_type): event_type for event_type in (*get_args(Event), RunCondensed)
}
_KINDS: Final = {event_type: kind for kind, event_type in _TYPES.items()}
_DECODERS: Final = {kind: msgspec.json.Decoder(event_type) for kind, event_type in _TYPES.items()}
_HEAD: Final = msgspec.json.Decoder(_Head)


_USUAL: Final = {
    shape: {field.name: field.default for field in dataclasses.fields(shape)} for shape in (RunCondensed, RunSpawned)
}
_KIND_FIELD: Final = b'"kind":"'
_CONDENSED: Final = _kind(RunCondensed).encode() + b'"'


def is_condensed(line: bytes) -> bool:
    """Whether a line is a condensed run's, without reading it whole."""
    return line.startswith(_CONDENSED, line.find(_KIND_FIELD) + len(_KIND_FIELD))


def encode(record: Record) -> bytes:
    """Return the line, newline included.

    Raises:
        UnicodeEncodeError: a text holds half of a surrogate pair.
    """
    fields: dict[str, object] = {
        "v": VERSION,
        "seq": record.seq,
        "run": record.event.run,
        "tree": record.tree,
        "epoch": record.epoch,
        "at": record.at,
        "t": datetime.fromtimestamp(record.utc_s, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "kind": _KINDS[type(record.event)],
    }
    if isinstance(record.event, RunCondensed):
        fields["archive"] = record.archive
        # There may be a hundred thousand of them: what is as usual is left out.
        fields.update(_unusual(record.event))
        fields["spawn"] = _unusual(record.event.spawn)
    else:
        fields.update(msgspec.to_builtins(record.event))
    if record.toolset:
        del fields["tools"]
        fields["toolset"] = record.toolset
    return with_checksum(msgspec.json.encode(fields)[:-1])


def decode(line: bytes) -> Record:
    """Return what a line (without its newline) holds.

    Raises:
        BrokenLineError: its checksum is off, or it holds no known event.
        NewerVersionError: its version is above ours.
    """
    require_sound(line)
    try:
        head = _HEAD.decode(line)
        refuse_newer(head.v)
        decoder = _DECODERS.get(head.kind)
        if decoder is None:
            raise BrokenLineError(f"there is no event {head.kind!r}")
        event = decoder.decode(line)
        utc_s = datetime.fromisoformat(head.t).timestamp()
    except (msgspec.MsgspecError, ValueError) as error:
        raise BrokenLineError(f"no journal record: {error}") from error
    return Record(
        seq=head.seq,
        tree=RunId(head.tree),
        epoch=head.epoch,
        at=ActiveMs(head.at),
        utc_s=utc_s,
        event=event,
        archive=head.archive,
        toolset=head.toolset,
    )


def refuse_newer(version: int) -> None:
    """Look at the version of a sound line.

    Raises:
        NewerVersionError: it is above ours.
    """
    if version > VERSION:
        raise NewerVersionError(f"record version {version}, this luftpause knows up to {VERSION}")


def _unusual(value: RunCondensed | RunSpawned) -> dict[str, object]:
    usual = _USUAL[type(value)]
    unusual = {name: held for name in usual if (held := getattr(value, name)) != usual[name]}
    built: dict[str, object] = msgspec.to_builtins(unusual, order="deterministic")
    return built
