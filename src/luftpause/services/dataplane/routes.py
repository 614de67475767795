"""Which dialect turns are asked for in, by the path that they are posted to, and in which one failures are told.

What is no conversation stands alone, in no run: `core/dialects/single_request.py`.
"""

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Final

from luftpause.core.dialects.anthropic_messages.count_tokens import CountTokens
from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.decide import Decide
from luftpause.core.dialects.dialect import Dialect
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.gemini.count_tokens import GeminiCountTokens
from luftpause.core.dialects.gemini.dialect import Gemini
from luftpause.core.dialects.gemini.from_chat import EMPTY_EVENT
from luftpause.core.dialects.gemini.paths import is_below, is_called, is_counted, wants_events
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.openai_responses.dialect import OpenAiResponses
from luftpause.core.dialects.pass_through import PassThrough
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import TurnShape

_ALONE: Final = TurnShape.ALONE
_COMPLETIONS: Final = PassThrough("completions", kind=ReplicaKind.GENERATIVE, shape=_ALONE, needs_model=True)
_EMBEDDINGS: Final = PassThrough("embeddings", kind=None, shape=_ALONE, needs_model=True)
_RERANK: Final = PassThrough("rerank", kind=None, shape=_ALONE, needs_model=True)
_TOKENIZE: Final = PassThrough("tokenize", kind=None, shape=TurnShape.ERRAND, needs_model=False)

_DIALECTS: Final[dict[str, Dialect]] = {
    "/v1/chat/completions": OpenAiChat(),
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": OpenAiResponses(),
}
_SINGLE: Final[dict[str, Dialect]] = {
    "/v1/messages/count_tokens": CountTokens(),
    "/v1/decide": Decide(),
    "/v1/completions": _COMPLETIONS,
    "/v1/embeddings": _EMBEDDINGS,
    "/v1/rerank": _RERANK,
    "/rerank": _RERANK,
    "/tokenize": _TOKENIZE,
    "/detokenize": _TOKENIZE,
}
_ELSEWHERE: Final = _DIALECTS["/v1/chat/completions"]
_GEMINI_ARRAYS: Final = Gemini(events=False)
_GEMINI_EVENTS: Final = Gemini(events=True)
_GEMINI_EVENTS_ALONE: Final = Gemini(events=True, sign=EMPTY_EVENT)
_GEMINI_COUNTS: Final = GeminiCountTokens()
_SIGNS: Final[dict[bytes, Dialect]] = {
    b"anthropic-version": _DIALECTS["/v1/messages"],
    b"x-goog-api-key": _GEMINI_ARRAYS,
    b"x-goog-api-client": _GEMINI_ARRAYS,
}
"""Headers by which clients are known that share paths with OpenAI's."""
_READ_EVENTS_ALONE: Final = (b"genai-js/", b"genkit-node/")
"""How those name themselves that find no event behind a blank line: `@google/generative-ai`, which LangChain.js builds
on, and Genkit, which reads as it does."""
_NO_HEADERS: Final[Mapping[bytes, bytes]] = MappingProxyType({})
SINGLE_ROUTES: Final = tuple(_SINGLE)
"""The routes of what stands alone."""
TURN_ROUTES: Final = (*_DIALECTS, "/v1beta/models/MODEL:generateContent")
"""The routes that the turns of runs are posted to, as a person reads them."""


def dialect_for(path: str, query: bytes = b"", headers: Mapping[bytes, bytes] = _NO_HEADERS) -> Dialect | None:
    """Return the dialect of the turns that are posted to a path, None where none are.

    Args:
        path: percent-decoded.
        query: without its question mark. It only matters to how an answer is written, not to how a failure is.
        headers: by name; they matter as the query does.
    """
    dialect = _DIALECTS.get(path) or _SINGLE.get(path)
    if dialect is None and is_called(path):
        return _gemini(query, headers)
    if dialect is None and is_counted(path):
        return _GEMINI_COUNTS
    return dialect


def _gemini(query: bytes, headers: Mapping[bytes, bytes]) -> Dialect:
    if not wants_events(query):
        return _GEMINI_ARRAYS
    client = headers.get(b"x-goog-api-client", b"")
    return _GEMINI_EVENTS_ALONE if any(name in client for name in _READ_EVENTS_ALONE) else _GEMINI_EVENTS


def dialect_at(path: str, headers: Container[bytes] = ()) -> Dialect:
    """Return whose client it must be that asks for a path.

    That of the path's dialect, or of the one above it; else the one that its headers show, else Chat's.
    """
    dialect = dialect_for(path)
    if dialect is not None:
        return dialect
    if is_below(path):
        return _GEMINI_ARRAYS
    above = next((each for route, each in _DIALECTS.items() if path.startswith(f"{route}/")), None)
    return above or next((each for sign, each in _SIGNS.items() if sign in headers), _ELSEWHERE)


def error_at(path: str, failure: Failure) -> bytes:
    """Return the body that tells of a failure at a path."""
    return dialect_at(path).error(failure)
