"""The lines of an event log and the values that they stand for. Pure.

One JSON object a line. A `segment` holds the whole state; each `event` after it says what happened, when on the
scheduler's own clock, and what was ordered, at times with a digest of the state that it led to; a `gap` says how many
events were dropped, and a segment follows it; an `end` says that the writer closed the file and was not cut short. Each
line ends with a sum over itself and all lines since the last segment began, so that whatever was changed, lost or moved
since is noticed, although no decision may depend on it. No line holds a prompt or an answer: events have none but in
what an engine said when a turn failed, and that is left out.
"""

import hashlib
import math
import re
import zlib
from collections.abc import Iterable
from dataclasses import replace
from types import GenericAlias
from typing import Final, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from immutables import Map

from luftpause.core.model.ids import Instant
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.scheduling.actions import Action, HoldTurn
from luftpause.core.scheduling.ages import age_in
from luftpause.core.scheduling.events import (
    Event,
    KnownTool,
    MemoryRestored,
    PeerResynced,
    TurnArrived,
    TurnFailed,
    TurnFinished,
)
from luftpause.core.scheduling.memory import sensible
from luftpause.core.scheduling.residency.events import LauncherJoined, LoadProgressed, ModelDown
from luftpause.core.scheduling.state import State

FORMAT: Final = 10
DIGEST_CHARS: Final = 16
FOREVER_S: Final = 1e9


class LineError(Exception):
    """A line that is none of an event log of this format."""


class Segment(msgspec.Struct, frozen=True, tag_field="line", tag="segment"):
    """Where a replay can begin. `utc` is for people."""

    format: int
    version: str
    policy: str
    utc: str
    now: float
    state: msgspec.Raw


class Entry(msgspec.Struct, frozen=True, tag_field="line", tag="event", omit_defaults=True):
    """One event: its class, its fields, the orders. `digest` of the state after it, empty where it was not taken."""

    now: float
    kind: str
    event: msgspec.Raw
    orders: msgspec.Raw
    digest: str = ""


class Gap(msgspec.Struct, frozen=True, tag_field="line", tag="gap"):
    """So many events are missing here."""

    dropped: int


class End(msgspec.Struct, frozen=True, tag_field="line", tag="end"):
    """The writer closed the file here."""


Line: TypeAlias = Segment | Entry | Gap
"""What a log tells; an end tells something of the file."""


def segment(state: State, now: Instant, *, version: str, policy: str, utc: str) -> bytes:
    """Return the line of a segment, newline included."""
    raw = msgspec.Raw(_ENCODER.encode(state))
    return _line(Segment(FORMAT, version, policy, utc, now, raw))


def entry(event: Event, now: Instant, actions: tuple[Action, ...], digest: str) -> bytes:
    """Return the line of an event, newline included."""
    raw = msgspec.Raw(_ENCODER.encode(_writable(event)))
    return _line(Entry(now, type(event).__name__, raw, msgspec.Raw(orders_text(actions)), digest))


def gap(dropped: int) -> bytes:
    """Return the line of a gap, newline included."""
    return _line(Gap(dropped))


def end() -> bytes:
    """Return the line of an end, newline included."""
    return _line(End())


def sealed(line: bytes, before: int) -> tuple[bytes, int]:
    """Return a line with its sum, and that sum. `before` is the sum of the line before it, 0 for a segment."""
    body = line[: -len(_CLOSING)]
    total = zlib.crc32(body, before)
    return b'%b,"sum":"%08x"%b' % (body, total, _CLOSING), total


def sum_in(text: bytes, before: int) -> int:
    """Return the sum of a line, see `sealed`.

    Raises:
        LineError: it has none, or another than its text and the lines before it give.
    """
    told = _SUM.search(text)
    total = None if told is None else zlib.crc32(text[: told.start()], before)
    if told is None or total is None or told[1] != b"%08x" % total:
        raise LineError("it was changed, or what stood before it was changed or is missing")
    return total


def line_in(text: bytes) -> Line | End:
    """Return what a line says.

    Raises:
        LineError: nothing, in this format.
    """
    try:
        line: Line | End = _LINES.decode(text)
    except msgspec.DecodeError as error:
        raise LineError(str(error)) from error
    if isinstance(line, Segment) and line.format != FORMAT:
        raise LineError(f"the log has format {line.format}, not {FORMAT}")
    return line


def state_in(line: Segment) -> State:
    """Return the state of a segment.

    Raises:
        LineError: it is none.
    """
    try:
        state: State = msgspec.json.decode(line.state, type=State, dec_hook=_decode)
    except msgspec.DecodeError as error:
        raise LineError(f"the segment's state: {error}") from error
    return state


def event_in(line: Entry) -> Event:
    """Return the event of a line.

    Raises:
        LineError: its class is unknown, or its fields are another's.
    """
    decoder = _EVENTS.get(line.kind)
    if decoder is None:
        raise LineError(f"unknown event {line.kind!r:.80}")
    try:
        event: Event = decoder.decode(line.event)
    except msgspec.DecodeError as error:
        raise LineError(f"{line.kind}: {error}") from error
    return event


def orders_text(actions: tuple[Action, ...]) -> bytes:
    """Return orders as text that is equal when they are: class, fields, and the class of a hold's reason."""
    return _ENCODER.encode(
        [(type(each).__name__, each, type(each.why).__name__ if isinstance(each, HoldTurn) else "") for each in actions]
    )


def digest_of(state: State) -> str:
    """Return what differs when two states do. Costs a walk through the whole state."""
    return hashlib.sha256(_ENCODER.encode(state)).hexdigest()[:DIGEST_CHARS]


def _encode(value: object) -> object:
    """Write a map as its pairs, in an order that does not depend on how keys are hashed; a compiled tuple as one."""
    if isinstance(value, Map):
        return msgspec.Raw(b"[" + b",".join(sorted(map(_ENCODER.encode, value.items()))) + b"]")
    if hasattr(value, "_fields") and isinstance(value, Iterable):
        return tuple(value)
    raise NotImplementedError(f"a state holds no {type(value).__name__}")


def _decode(kind: type, value: object) -> object:
    if get_origin(kind) is Map:
        pair = GenericAlias(tuple, get_args(kind))
        pairs: list[tuple[object, object]] = msgspec.convert(value, GenericAlias(list, (pair,)), dec_hook=_decode)
        return Map(pairs)
    if hasattr(kind, "_fields"):
        members = GenericAlias(tuple, tuple(get_type_hints(kind).values()))
        return kind(*msgspec.convert(value, members, dec_hook=_decode))
    raise NotImplementedError(f"a state holds no {kind}")


def _writable(event: Event) -> Event:
    """Return an event that JSON can hold and that means the same, without what an engine said."""
    match event:
        case TurnArrived() | TurnFinished() | TurnFailed():
            return _of_turn(event)
        case LoadProgressed() | ModelDown() | LauncherJoined():
            return _of_launcher(event)
        case PeerResynced(runs=runs) if not all(math.isfinite(run.age_s) for run in runs):
            return replace(event, runs=tuple(replace(run, age_s=age_in(run.age_s)) for run in runs))
        case MemoryRestored(tools=tools) if not all(map(_is_finite, tools)):
            return sensible(event)
        case _:
            return event


def _of_turn(event: TurnArrived | TurnFinished | TurnFailed) -> Event:
    match event:
        case TurnFailed(retry_after_s=seconds):
            if seconds is not None:
                seconds = None if math.isnan(seconds) else max(-FOREVER_S, min(FOREVER_S, seconds))
            return replace(event, cause="", retry_after_s=seconds)
        case TurnFinished(restore_s=seconds) if seconds is not None and not math.isfinite(seconds):
            return replace(event, restore_s=None)
        case TurnArrived(age_s=age_s) if not math.isfinite(age_s):
            return replace(event, age_s=age_in(age_s))
        case _:
            return event


def _of_launcher(event: LoadProgressed | ModelDown | LauncherJoined) -> Event:
    match event:
        case LoadProgressed(fraction=fraction) if not math.isfinite(fraction):
            return replace(event, fraction=1.0 if fraction > 0 else 0.0)
        case ModelDown(prefill_s=prefill_s, kv=kv):
            return replace(event, prefill_s=prefill_s if math.isfinite(prefill_s) else 0.0, kv=_timed(kv))
        case LauncherJoined(kv=kv) if kv:
            return replace(event, kv=_timed(kv))
        case _:
            return event


def _timed(kv: tuple[SavedKv, ...]) -> tuple[SavedKv, ...]:
    """Return files with a time that JSON can hold; one that took no time that makes sense makes none itself."""
    return tuple(each if math.isfinite(each.took_s) else replace(each, took_s=-1.0) for each in kv)


def _is_finite(known: KnownTool) -> bool:
    return all(map(math.isfinite, (known.age_s, known.unit, *known.returns, *known.losses)))


def _line(line: Line | End) -> bytes:
    return _ENCODER.encode(line) + b"\n"


_CLOSING: Final = b"}\n"
_SUM: Final = re.compile(rb',"sum":"([0-9a-f]{8})"\}\s*\Z')
_ENCODER: Final = msgspec.json.Encoder(enc_hook=_encode)
_LINES: Final = msgspec.json.Decoder(Line | End)
_EVENTS: Final = {kind.__name__: msgspec.json.Decoder(kind) for kind in get_args(Event)}
