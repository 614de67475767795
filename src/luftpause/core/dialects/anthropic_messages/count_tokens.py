"""Counting the tokens of a request, also at engines that have no `/v1/messages/count_tokens`.

Sans-IO: what to ask such an engine, and where, and what to make of its answer.
"""

from typing import Final

import msgspec
from msgspec import Struct

from luftpause.core.dialects.anthropic_messages.errors import engine_refusal, error_body, error_event
from luftpause.core.dialects.anthropic_messages.request import read_request
from luftpause.core.dialects.anthropic_messages.to_chat import chat_request
from luftpause.core.dialects.dialect import Peek, UnfitAnswerError
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.request import model_in, read_members
from luftpause.core.dialects.single_request import CHAT_PATH, Sent, SingleRequest
from luftpause.core.model.replicas import EngineKind, Placement
from luftpause.core.model.turns import TurnShape

_COUNTS_AT: Final = {
    EngineKind.LLAMA_CPP: b"/v1/chat/completions/input_tokens",
    EngineKind.VLLM: b"/tokenize",
}
"""Where engines count the tokens of a conversation without answering it."""


class CountTokens(SingleRequest):
    """A `Dialect`: of the one question that Messages asks beside its conversations."""

    def __init__(self) -> None:
        super().__init__("count_tokens")

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`."""
        del path, with_identity
        return Peek(model=model_in(read_members(body, ("model",), "messages")), stream=False, shape=TurnShape.ERRAND)

    def sent(self, target: bytes, body: bytes, placement: Placement, *, speaks: bool) -> Sent:
        """See `SingleRequest.sent`. An engine that has no way to count reads the prompt and answers one token."""
        if speaks:
            return Sent(target=target, body=body)
        counts_at = _COUNTS_AT.get(placement.engine, CHAT_PATH)
        return Sent(target=counts_at, body=counting_request(body), back=CountBack())

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return error_body(failure)

    def error_event(self, failure: Failure) -> bytes:
        """See `Dialect.error_event`."""
        return error_event(error_body(failure))


class CountBack:
    """The way back of a count that an engine was asked for in other words: a `WayBack`."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> bytes:
        """See `WayBack.feed`."""
        self._pieces.append(data)
        return b""

    def end(self) -> bytes:
        """See `WayBack.end`."""
        answer = counted(b"".join(self._pieces))
        if answer is None:
            raise UnfitAnswerError("its answer tells no number of tokens")
        return answer

    def error(self, status: int, body: bytes) -> bytes:
        """See `WayBack.error`."""
        return engine_refusal(status, body)


def counting_request(body: bytes) -> bytes:
    """Return the body by which an engine counts the tokens of a request.

    vLLM's `/tokenize` and llama-server's `/v1/chat/completions/input_tokens` take it. As a Chat Completions request it
    costs the prompt and one token, and its usage has the count.

    Raises:
        BadRequestError: the request cannot be said in Chat Completions.
    """
    request = read_request(body)
    request.stream, request.max_tokens = False, 1
    return msgspec.json.encode(chat_request(request))


def counted(body: bytes) -> bytes | None:
    """Return the answer `{"input_tokens": n}` from what an engine answered; None where it tells no count."""
    try:
        told = _COUNT.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    usage = None if told.usage is None else told.usage.prompt_tokens
    tokens = None if told.tokens is None else len(told.tokens)
    found = next((count for count in (told.input_tokens, told.count, usage, tokens) if count is not None), None)
    return None if found is None or found < 0 else msgspec.json.encode({"input_tokens": found})


class _Usage(Struct):
    prompt_tokens: int


class _Count(Struct):
    input_tokens: int | None = None
    count: int | None = None
    usage: _Usage | None = None
    tokens: list[object] | None = None


_COUNT: Final = msgspec.json.Decoder(_Count)
