"""Which dialect turns are asked for in, by the path that they are posted to, and in which one failures are told."""

from typing import Final

from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.dialect import Dialect
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.openai_responses.dialect import OpenAiResponses

_DIALECTS: Final[dict[str, Dialect]] = {
    "/v1/chat/completions": OpenAiChat(),
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": OpenAiResponses(),
}
_ELSEWHERE: Final = _DIALECTS["/v1/chat/completions"]
TURN_ROUTES: Final = tuple(_DIALECTS)
"""The routes that turns are posted to, as a person reads them."""


def dialect_for(path: str) -> Dialect | None:
    """Return the dialect of the turns that are posted to a path, None where none are."""
    return _DIALECTS.get(path)


def dialect_at(path: str) -> Dialect:
    """Return whose client it must be that asks for a path: that of its dialect, or of the one above it, else Chat's."""
    dialect = dialect_for(path)
    if dialect is not None:
        return dialect
    return next((each for above, each in _DIALECTS.items() if path.startswith(f"{above}/")), _ELSEWHERE)


def error_at(path: str, failure: Failure) -> bytes:
    """Return the body that tells of a failure at a path."""
    return dialect_at(path).error(failure)
