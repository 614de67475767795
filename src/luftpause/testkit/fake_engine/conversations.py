"""A chat request as the fake engine reads it: the parsed body, its prefix chain, its length in tokens.

Four characters count as a token, and every message costs four more. Knows nothing of replies.
"""

import hashlib
import json
from collections.abc import Sequence

import msgspec

from luftpause.testkit.fake_engine.prefix_cache import Piece

CHARS_PER_TOKEN = 4
MESSAGE_TOKENS = 4


class Function(msgspec.Struct, frozen=True):
    """A function a model may call."""

    name: str
    description: str = ""
    parameters: dict[str, object] | None = None


class Tool(msgspec.Struct, frozen=True):
    """An offered tool; only functions exist here."""

    function: Function
    type: str = "function"


class CalledFunction(msgspec.Struct, frozen=True):
    """A function as it was called, arguments as JSON text."""

    name: str
    arguments: str = ""


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call that an assistant message carries."""

    id: str
    function: CalledFunction


class ContentPart(msgspec.Struct, frozen=True):
    """One part of a message; parts without text count as empty."""

    type: str = "text"
    text: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        """All text of the message."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class NamedFunction(msgspec.Struct, frozen=True):
    """The name in a tool choice."""

    name: str


class ToolChoice(msgspec.Struct, frozen=True):
    """A tool choice that names a function."""

    function: NamedFunction
    type: str = "function"


class StreamOptions(msgspec.Struct, frozen=True):
    """How to stream."""

    include_usage: bool = False


class Chat(msgspec.Struct, frozen=True):
    """The body of a chat request; whatever else it holds is ignored."""

    model: str
    messages: list[Message]
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: str | ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None

    @property
    def task(self) -> str:
        """Text of the last user message, markers included; "" without one."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def since_user(self) -> Sequence[Message]:
        """The messages after the last user message."""
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index].role == "user":
                return self.messages[index + 1 :]
        return self.messages

    @property
    def token_cap(self) -> int | None:
        """The longest reply that the client wants, tokens."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens


def tokens_in(text: str) -> int:
    """Return how many tokens a text counts for."""
    return -(-len(text) // CHARS_PER_TOKEN)


def extended(prefix: str, message: Message) -> Piece:
    """Return the piece that a message adds to a conversation of that prefix.

    Only what the model would read counts, so a client may echo our reply in its own JSON and still meet its prefix.
    """
    calls = [[call.id, call.function.name, call.function.arguments] for call in message.tool_calls or ()]
    read = json.dumps([message.role, message.text, calls, message.tool_call_id])
    tokens = tokens_in(message.text) + sum(tokens_in(name + arguments) for _, name, arguments in calls)
    return Piece(_named(prefix, read), MESSAGE_TOKENS + tokens)


def pieces(chat: Chat) -> tuple[Piece, ...]:
    """Return the prompt as a chain: model and tools first, then one piece per message."""
    tools = msgspec.json.encode(chat.tools or []).decode()
    chain = [Piece(_named(chat.model, tools), 1 + (tokens_in(tools) if chat.tools else 0))]
    for message in chat.messages:
        chain.append(extended(chain[-1].prefix, message))
    return tuple(chain)


def text_pieces(model: str, text: str) -> tuple[Piece, ...]:
    """Return a bare text as a prompt of one piece."""
    return (Piece(_named(model, text), MESSAGE_TOKENS + tokens_in(text)),)


def _named(prefix: str, read: str) -> str:
    return hashlib.blake2b(f"{prefix}\n{read}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
