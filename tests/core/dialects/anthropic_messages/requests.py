"""Messages requests for the tests of this folder, and what becomes of them."""

import json
from typing import cast

from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages

MESSAGES = AnthropicMessages()
PATH = "/v1/messages"
HELLO = {"role": "user", "content": "hi"}


def written(*conversation: object, **members: object) -> bytes:
    """Return a request's body."""
    return json.dumps({"model": "m", "max_tokens": 9, "messages": conversation or [HELLO], **members}).encode()


def said(*conversation: object, **members: object) -> dict[str, object]:
    """Return what the request becomes in Chat Completions."""
    return cast("dict[str, object]", json.loads(MESSAGES.translate(PATH, written(*conversation, **members)).request))


def messages_of(*conversation: object, **members: object) -> list[dict[str, object]]:
    """Return the messages that it becomes."""
    return cast("list[dict[str, object]]", said(*conversation, **members)["messages"])


def user(*blocks: object) -> dict[str, object]:
    """Return a message of the user."""
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: object) -> dict[str, object]:
    """Return a message of the assistant."""
    return {"role": "assistant", "content": list(blocks)}


def text(value: str) -> dict[str, object]:
    """Return a text block."""
    return {"type": "text", "text": value}


def use(call_id: str, name: str = "look", **arguments: object) -> dict[str, object]:
    """Return a tool_use block."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: object = None, **members: object) -> dict[str, object]:
    """Return a tool_result block."""
    return {"type": "tool_result", "tool_use_id": call_id, **({"content": content} if content else {}), **members}
