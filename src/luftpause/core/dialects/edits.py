"""Changes to a request body, from HOUSE's closed table: a member set or taken out, every other value kept verbatim."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from msgspec import Raw

from luftpause.core.dialects.request import BadRequestError

_DECODE_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw]).decode


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
