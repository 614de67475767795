"""A whole Chat Completions answer, said again as the stream that its client asked for.

Some engines stream nothing, or not everything: they answer with one document whatever they are asked. What they say
beyond the standard is carried. Sans-IO.
"""

from typing import Final, TypeAlias, cast

import msgspec

from luftpause.core.dialects.dialect import UnfitAnswerError

Json: TypeAlias = dict[str, object]

_DONE: Final = b"data: [DONE]\n\n"
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)


def in_pieces(body: bytes) -> bytes:
    """Return the events of an answer: what is said, why it ended, what it took, and the end.

    Raises:
        UnfitAnswerError: it is no answer.
    """
    try:
        said = msgspec.json.decode(body, type=Json)
    except _UNREADABLE as error:
        raise UnfitAnswerError("its answer is neither an event stream nor a JSON object") from error
    found = enumerate(_list(said.pop("choices", None)))
    choices: list[Json] = [{"index": at, **cast("Json", each)} for at, each in found if isinstance(each, dict)]
    if not choices:
        raise UnfitAnswerError("its answer is no event stream, and nothing is said in it")
    usage = said.pop("usage", None)
    said["object"] = "chat.completion.chunk"
    events = [_event({**said, "choices": [_piece(choice) for choice in choices]})]
    events.append(_event({**said, "choices": [_ending(choice) for choice in choices]}))
    if usage is not None:
        events.append(_event({**said, "choices": [], "usage": usage}))
    return b"".join((*events, _DONE))


def _piece(choice: Json) -> Json:
    """Return a choice as its first piece: all that it says, and not yet why it ended."""
    message = choice.get("message")
    delta: Json = dict(cast("Json", message)) if isinstance(message, dict) else {}
    if isinstance(calls := delta.get("tool_calls"), list):
        numbered = enumerate(cast("list[object]", calls))
        delta["tool_calls"] = [{"index": at, **cast("Json", call)} for at, call in numbered if isinstance(call, dict)]
    probabilities = {"logprobs": choice["logprobs"]} if "logprobs" in choice else {}
    return {"index": choice["index"], "delta": delta, **probabilities, "finish_reason": None}


def _ending(choice: Json) -> Json:
    """Return a choice as its last piece: why it ended, and what else the engine says of it."""
    rest = {name: value for name, value in choice.items() if name not in ("message", "logprobs")}
    return {"finish_reason": None, **rest, "delta": {}}


def _event(document: Json) -> bytes:
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
