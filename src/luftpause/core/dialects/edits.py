"""The closed table of changes to a request body: a member set or taken out, every other value kept as it was."""

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final

import msgspec
from msgspec import Raw

from luftpause.core.dialects.request import BadRequestError

_DECODE_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class Edit(Enum):
    """A change to what a client asked for; the value is the member that is set."""

    MODEL = "model"
    ID_SLOT = "id_slot"
    STREAM = "stream"
    INCLUDE_USAGE = "stream_options.include_usage"
    PRIORITY = "priority"
    """Set where the engine takes one; taken out where only the scheduler may say one and says none."""

    MAX_TOKENS = "max_tokens"
    MAX_OUTPUT_TOKENS = "max_output_tokens"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


ALL_EDITS: Final = frozenset(Edit)


def named(edits: Iterable[Edit]) -> str:
    """Return the members that were changed, for people."""
    return ", ".join(edit.value for edit in edits)


def with_members(body: bytes, members: Mapping[str, object], without: Collection[str] = ()) -> bytes:
    """Return a JSON object with some members set, in their old place or at the end, and others taken out.

    Raises:
        BadRequestError: the body is read by the standard library only (half of a surrogate pair), not by this one.
    """
    try:
        raws = _DECODE_MEMBERS(body)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the request body is not valid JSON: {error}") from error
    for name in without:
        raws.pop(name, None)
    for name, value in members.items():
        raws[name] = Raw(msgspec.json.encode(value))
    return msgspec.json.encode(raws)
