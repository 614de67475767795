"""A whole Chat Completions answer, said again as the stream that its client asked for.

Some engines stream nothing, or not everything: they answer with one document whatever they are asked. What they say
beyond the standard is carried. Sans-IO.
"""

from typing import Final, TypeAlias, cast

import msgspec

from luftpause.core.dialects.chat_answer import Failed, read_chat_answer
from luftpause.core.dialects.chat_documents import UNREADABLE
from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.surrogates import read_mended

Json: TypeAlias = dict[str, object]

_DONE: Final = b"data: [DONE]\n\n"
_OBJECT: Final = msgspec.json.Decoder(Json)


def in_pieces(body: bytes) -> bytes:
    """Return the events of an answer: what is said, why it ended, what it took, and the end.

    Raises:
        UnfitAnswerError: it is no answer, or one that cannot be read whole: its pieces would have a hole.
    """
    try:
        said = read_mended(_OBJECT, body)
    except UNREADABLE as error:
        raise UnfitAnswerError("its answer is neither an event stream nor a JSON object") from error
    failure = next((piece.message for piece in read_chat_answer(body) if isinstance(piece, Failed)), None)
    if failure is not None:
        raise UnfitAnswerError(failure)
    choices = _numbered(said.pop("choices", None))
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
    if delta.get("tool_calls"):
        delta["tool_calls"] = _numbered(delta["tool_calls"])
    probabilities = {"logprobs": choice["logprobs"]} if "logprobs" in choice else {}
    return {"index": choice["index"], "delta": delta, **probabilities, "finish_reason": None}


def _ending(choice: Json) -> Json:
    """Return a choice as its last piece: why it ended, and what else the engine says of it."""
    rest = {name: value for name, value in choice.items() if name not in ("message", "logprobs")}
    return {"finish_reason": None, **rest, "delta": {}}


def _event(document: Json) -> bytes:
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def _numbered(objects: object) -> list[Json]:
    """Return choices or calls, each with its index. That they are objects was found when the answer was read."""
    return [{"index": at, **each} for at, each in enumerate(cast("list[Json] | None", objects) or ())]
