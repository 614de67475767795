"""The lines of an event log and the values that they stand for. Pure.

One JSON object a line. A `segment` holds the whole state; each `event` after it says what happened, when on the
scheduler's own clock, and what was ordered, at times with a digest of the state that it led to; a `gap` says how many
events were dropped, and a segment follows it. No line holds a prompt or an answer: events have none but in what an
engine said when a turn failed, and that is left out.
"""

import hashlib
import math
from dataclasses import replace
from types import GenericAlias
from typing import Final, TypeAlias, get_args, get_origin

import msgspec
from immutables import Map

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.actions import Action, HoldTurn
from luftpause.core.scheduling.events import Event, TurnFailed
from luftpause.core.scheduling.state import State

FORMAT: Final = 2
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


Line: TypeAlias = Segment | Entry | Gap


def segment(state: State, now: Instant, *, version: str, policy: str, utc: str) -> bytes:
    """Return the line of a segment, newline included."""
    raw = msgspec.Raw(_ENCODER.encode(state))
    return _line(Segment(FORMAT, version, policy, utc, now, raw))


def entry(event: Event, now: Instant, actions: tuple[Action, ...], digest: str) -> bytes:
    """Return the line of an event, newline included."""
    if isinstance(event, TurnFailed):
        event = replace(event, cause="", retry_after_s=_writable(event.retry_after_s))
    raw = msgspec.Raw(_ENCODER.encode(event))
    return _line(Entry(now, type(event).__name__, raw, msgspec.Raw(orders_text(actions)), digest))


def gap(dropped: int) -> bytes:
    """Return the line of a gap, newline included."""
    return _line(Gap(dropped))


def line_in(text: bytes) -> Line:
    """Return what a line says.

    Raises:
        LineError: nothing, in this format.
    """
    try:
        line = _LINES.decode(text)
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
        state: State = msgspec.json.decode(line.state, type=State, dec_hook=_decode_map)
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


def _encode_map(value: object) -> object:
    """Write a map as its pairs, in an order that does not depend on how keys are hashed."""
    if isinstance(value, Map):
        return msgspec.Raw(b"[" + b",".join(sorted(map(_ENCODER.encode, value.items()))) + b"]")
    raise NotImplementedError(f"a state holds no {type(value).__name__}")


def _decode_map(kind: type, value: object) -> object:
    if get_origin(kind) is Map:
        pair = GenericAlias(tuple, get_args(kind))
        pairs: list[tuple[object, object]] = msgspec.convert(value, GenericAlias(list, (pair,)), dec_hook=_decode_map)
        return Map(pairs)
    raise NotImplementedError(f"a state holds no {kind}")


def _writable(seconds: float | None) -> float | None:
    """Return a wish to be left alone that JSON can hold and that means the same."""
    return None if seconds is None or math.isnan(seconds) else max(-FOREVER_S, min(FOREVER_S, seconds))


def _line(line: Line) -> bytes:
    return _ENCODER.encode(line) + b"\n"


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_encode_map)
_LINES: Final = msgspec.json.Decoder(Line)
_EVENTS: Final = {kind.__name__: msgspec.json.Decoder(kind) for kind in get_args(Event)}
