"""Reading the top level of a JSON request: what every dialect's peek begins with.

The body itself passes through byte for byte, so unknown fields, odd values and the order of keys stay untouched.
A repeated top-level key is refused, however it is written, since two readers could disagree about what it says.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, TypeAlias, cast

import msgspec
from msgspec import Raw

from luftpause.core.model.ids import ModelName

MODEL_CHARS_MAX: Final = 512
CACHE_KEY_CHARS_MAX: Final = 256
REPLY_MAX: Final = 1_000_000_000
"""No answer has more tokens, whatever a request says."""
REPEAT_BYTES_MIN: Final = 5
"""What the shortest repeated member adds to a body: `,"":0`."""
LONG_VALUE_BYTES: Final = 64
"""Longer values are cut out before keys are compared, so that comparing costs the same for long conversations."""

Members: TypeAlias = dict[str, object]
"""Members of a JSON object that were asked for. A dictionary: of any other mapping compiled code knows nothing."""


class BadRequestError(Exception):
    """The body is no request that could be routed. The message is for the client."""


def read_members(body: bytes, wanted: tuple[str, ...], *raw: str) -> Members:
    """Return members of the top-level object, those that are there.

    Args:
        body: the request body as it came.
        wanted: the members to decode.
        raw: members to leave as they were written, as `Raw`s; from an odd body they are decoded, objects as `Pairs`.

    Raises:
        BadRequestError: not a JSON object, or a repeated key.
    """
    try:
        return _members(body, wanted, raw)
    except RecursionError as error:
        raise BadRequestError("the request body is nested too deeply") from error


def check_text(body: bytes) -> None:
    """Make sure that a body can be written anew, which also takes in what nobody looked at of it.

    Raises:
        BadRequestError: it is not in UTF-8.
    """
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise BadRequestError(f"the request body is not valid JSON: no UTF-8 at byte {error.start}") from error


def model_in(members: Members) -> ModelName:
    """Return the model that a request names.

    Raises:
        BadRequestError: none, or none that could be a name.
    """
    model = members.get("model")
    if "model" not in members:
        raise BadRequestError("the request names no model: `model` is missing")
    if not isinstance(model, str):
        raise BadRequestError(f"the request body does not fit: expected `str`, got `{_kind(model)}` - at `$.model`")
    if not model:
        raise BadRequestError("the request names no model: `model` is empty")
    if len(model) > MODEL_CHARS_MAX:
        raise BadRequestError(f"`model` is longer than {MODEL_CHARS_MAX} characters")
    if not is_text(model):
        raise BadRequestError("`model` holds half of a surrogate pair")
    return ModelName(model)


def stream_in(members: Members) -> bool:
    """Return whether the answer is to be streamed.

    Raises:
        BadRequestError: `stream` is neither true nor false.
    """
    stream = members.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise BadRequestError(f"the request body does not fit: expected `bool`, got `{_kind(stream)}` - at `$.stream`")
    return stream is True


def cache_key_in(members: Members) -> str:
    """Return the request's `prompt_cache_key`, empty where it has none that could be compared."""
    key = members.get("prompt_cache_key")
    return key if isinstance(key, str) and len(key) <= CACHE_KEY_CHARS_MAX and is_text(key) else ""


def reply_max_in(members: Members, *names: str) -> int:
    """Return how many tokens an answer may have, by the first of these members that says so; 0 where none does."""
    for name in names:
        most = members.get(name)
        if isinstance(most, int) and not isinstance(most, bool) and most > 0:
            return min(most, REPLY_MAX)
    return 0


def offers_tools(members: Members, names: tuple[str, ...]) -> bool:
    """Say whether a request offers tools.

    Args:
        members: as `read_members` returned them; those that offer tools may be raw.
        names: of the members that offer tools.
    """
    for name in names:
        offered = members.get(name)
        if offered is not None and (len(offered) > _NO_TOOLS_BYTES if isinstance(offered, Raw) else offered):
            return True
    return False


_NO_TOOLS_BYTES: Final = len(b"null")
"""A list of tools is longer."""


def _members(body: bytes, wanted: tuple[str, ...], raw: tuple[str, ...]) -> Members:
    try:
        raws = _DECODE_MEMBERS(body)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"the request body does not fit: {str(error).replace('Expected', 'expected')}") from error
    except msgspec.DecodeError as error:
        return _odd_members(body, str(error))
    _refuse_repeats(body, raws)
    members: Members = {}
    for key in raw:
        value = raws.get(key)
        if value is not None:
            members[key] = value
    try:
        for key in wanted:
            value = raws.get(key)
            if value is not None:
                members[key] = _DECODE(value)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the request body is not valid JSON: {error}") from error
    return members


_DECODE: Final = msgspec.json.Decoder().decode
_DECODE_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def _odd_members(body: bytes, why: str) -> Members:
    """Read with the standard library what msgspec does not take: half of an escaped surrogate pair is legal JSON."""
    try:
        top = parsed(body.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise BadRequestError(f"the request body is not valid JSON: {why}") from error
    if not isinstance(top, Pairs):
        raise BadRequestError(f"the request body does not fit: expected `object`, got `{_kind(top)}`")
    return top.members()


class Pairs:
    """A JSON object as it was written."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        self.pairs = pairs

    def members(self) -> dict[str, object]:
        """Return its members.

        Raises:
            BadRequestError: a key stands there more than once.
        """
        members = dict(self.pairs)
        if len(members) < len(self.pairs):
            keys = [key for key, _ in self.pairs]
            repeated = next(key for key in keys if keys.count(key) > 1)
            raise BadRequestError(f"the request names {json.dumps(repeated)[:100]} more than once")
        return members


def _refuse_repeats(body: bytes, values: dict[str, Raw]) -> None:
    """Make sure that no key of the top-level object is repeated.

    A body that is as long as its members, or hardly longer, has no room for another one. Else the keys are compared in
    a copy of the body without its long values. Each member has one colon, so where there are as many colons as
    different keys, no key is repeated; only where there are more (in texts, in nested objects, or for a repeated key)
    is the copy parsed.
    """
    told = 1 + 4 * len(values)
    for key, value in values.items():
        told += len(key) + len(value)
    if len(body) - told < REPEAT_BYTES_MIN:
        return
    parts: list[bytes] = []
    at = 0
    for value in values.values():
        text = bytes(value)
        if len(text) > LONG_VALUE_BYTES:
            found = body.find(text[:LONG_VALUE_BYTES], at)
            if found >= 0 and body.startswith(text, found):
                parts += (body[at:found], b"0")
                at = found + len(text)
    parts.append(body[at:])
    skeleton = b"".join(parts)
    if skeleton.count(b":") != len(values):
        pairs = parsed(skeleton.decode("utf-8", "surrogateescape"))
        if isinstance(pairs, Pairs):
            pairs.members()


def parsed(text: str) -> object:
    """Parse with the standard library, objects as they were written, every whole number as 0.

    Raises:
        ValueError: not JSON.
    """
    return json.loads(text, object_pairs_hook=Pairs, parse_constant=_refuse_constant, parse_int=_zero)


def _zero(_digits: str) -> int:
    """Stand in for a number: which one it is does not matter here, and thousands of digits are slow to read."""
    return 0


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def is_text(value: str) -> bool:
    """Whether it can be written as UTF-8: half of a surrogate pair cannot."""
    return value.isascii() or not _SURROGATE.search(value)


_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")  # mypyc takes no such literal


def _kind(value: object) -> str:
    return _JSON_NAMES.get(type(value), "object")


_JSON_NAMES: Final[dict[type, str]] = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    list: "array",
    type(None): "null",
}


def as_object(value: object) -> Mapping[str, object]:
    """Return the members of an object that `parsed` made; none of anything else."""
    return dict(value.pairs) if isinstance(value, Pairs) else {}


def as_array(value: object) -> Sequence[object]:
    """Return the elements of an array that `parsed` made; none of anything else."""
    return cast("list[object]", value) if isinstance(value, list) else ()
