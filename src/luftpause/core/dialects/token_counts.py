"""Asking an engine how many tokens a conversation has, in the words of its kind, for dialects that it does not speak.

Sans-IO: where to ask, and what to make of the answer.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.single_request import CHAT_PATH
from luftpause.core.model.ids import ToolCallId
from luftpause.core.model.replicas import EngineKind

_COUNTS_AT: Final = {
    EngineKind.LLAMA_CPP: b"/v1/chat/completions/input_tokens",
    EngineKind.VLLM: b"/tokenize",
}
"""Where engines count the tokens of a conversation without answering it."""


def counts_at(engine: EngineKind) -> bytes:
    """Return where an engine is sent a chat of one token to have its prompt counted.

    One that has no way to count reads the prompt and answers that token, and its usage has the count.
    """
    return _COUNTS_AT.get(engine, CHAT_PATH)


class CountBack:
    """The way back of such a count: a `WayBack`.

    Args:
        written: returns the client's answer for a number of tokens.
        refused: returns an engine's refusal, by its status and body, in the shape of the client's dialect.
    """

    def __init__(self, written: Callable[[int], bytes], refused: Callable[[int, bytes], bytes]) -> None:
        self._written = written
        self._refused = refused
        self._pieces: list[bytes] = []

    @property
    def failure(self) -> str:
        """See `WayBack.failure`."""
        return ""

    def feed(self, data: bytes) -> bytes:
        """See `WayBack.feed`."""
        self._pieces.append(data)
        return b""

    def end(self) -> bytes:
        """See `WayBack.end`."""
        count = counted(b"".join(self._pieces))
        if count is None:
            raise UnfitAnswerError("its answer tells no number of tokens")
        return self._written(count)

    def error(self, status: int, body: bytes) -> bytes:
        """See `WayBack.error`."""
        return self._refused(status, body)

    def call_ids(self) -> Sequence[ToolCallId]:
        """See `WayBack.call_ids`."""
        return ()


def counted(body: bytes) -> int | None:
    """Return the number of tokens that an engine's answer tells; None where it tells none."""
    try:
        told = _COUNT.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    usage = None if told.usage is None else told.usage.prompt_tokens
    tokens = None if told.tokens is None else len(told.tokens)
    found = next((count for count in (told.input_tokens, told.count, usage, tokens) if count is not None), None)
    return None if found is None or found < 0 else found


class _Usage(Struct):
    prompt_tokens: int


class _Count(Struct):
    input_tokens: int | None = None
    count: int | None = None
    usage: _Usage | None = None
    tokens: list[object] | None = None


_COUNT: Final = msgspec.json.Decoder(_Count)
