"""Which dialect turns are asked for in, by the path that they are posted to."""

from typing import Final

from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.dialect import Dialect
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.openai_responses.dialect import OpenAiResponses

_DIALECTS: Final[dict[str, Dialect]] = {
    "/v1/chat/completions": OpenAiChat(),
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": OpenAiResponses(),
}
TURN_ROUTES: Final = tuple(_DIALECTS)
"""The routes that turns are posted to, as a person reads them."""


def dialect_for(path: str) -> Dialect | None:
    """Return the dialect of the turns that are posted to a path, None where none are."""
    return _DIALECTS.get(path)
