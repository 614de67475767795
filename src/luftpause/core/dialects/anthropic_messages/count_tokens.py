"""Counting the tokens of a request, for engines that have no `/v1/messages/count_tokens`.

Pure: what to ask such an engine, and what to make of its answer. Where the question goes is the door's affair.
"""

from typing import Final

import msgspec
from msgspec import Struct

from luftpause.core.dialects.anthropic_messages.request import read_request
from luftpause.core.dialects.anthropic_messages.to_chat import chat_request


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
