"""Which dialect turns are asked for in, by the path that they are posted to."""

from typing import Final

from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.dialect import Dialect
from luftpause.core.dialects.gemini.dialect import Gemini
from luftpause.core.dialects.gemini.paths import is_called, wants_events
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.openai_responses.dialect import OpenAiResponses

_DIALECTS: Final[dict[str, Dialect]] = {
    "/v1/chat/completions": OpenAiChat(),
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": OpenAiResponses(),
}
_GEMINI_ARRAYS: Final = Gemini(events=False)
_GEMINI_EVENTS: Final = Gemini(events=True)
TURN_ROUTES: Final = (*_DIALECTS, "/v1beta/models/MODEL:generateContent")
"""The routes that turns are posted to, as a person reads them."""


def dialect_for(path: str, query: bytes = b"") -> Dialect | None:
    """Return the dialect of the turns that are posted to a path, None where none are.

    Args:
        path: percent-decoded.
        query: without its question mark. It only matters to how an answer is written, not to how a failure is.
    """
    dialect = _DIALECTS.get(path)
    if dialect is None and is_called(path):
        return _GEMINI_EVENTS if wants_events(query) else _GEMINI_ARRAYS
    return dialect
