"""A request as the fake engine reads it: the parsed body, its messages as pieces of a prefix, its length in tokens.

Four characters count as a token. Every message costs four more, and whatever is ahead of the first one, or of a bare
text, one. Null says what leaving out says, as with OpenAI: many clients send each member. Knows nothing of replies.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from luftpause.testkit.fake_engine.chains import Piece

CHARS_PER_TOKEN = 4
MESSAGE_TOKENS = 4
OPENING_TOKENS = 1


class Function(msgspec.Struct, frozen=True):
    """A function a model may call."""

    name: str
    description: str | None = None
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
    text: str | None = None


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """All text of the message."""
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
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

    include_usage: bool | None = None


class NamedSchema(msgspec.Struct, frozen=True):
    """What a JSON reply must fit; no schema: any object will do."""

    name: str = ""
    schema: dict[str, object] | None = None


class ResponseFormat(msgspec.Struct, frozen=True):
    """Whether the reply is JSON, and of which shape."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None

    @property
    def schema(self) -> dict[str, object] | None:
        """What the reply must fit; None: it is text."""
        if self.type == "text":
            return None
        return (None if self.json_schema is None else self.json_schema.schema) or {}


class Chat(msgspec.Struct, frozen=True):
    """The body of a chat request; whatever else it holds is ignored. A smaller `priority` goes first."""

    model: str
    messages: list[Message]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: str | ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    priority: int | None = None
    id_slot: int | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None

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


class Completion(msgspec.Struct, frozen=True):
    """The body of a bare completion request: one prompt, as text, to go on from. It may stand alone in a list."""

    model: str
    prompt: str | Annotated[list[str], Meta(min_length=1, max_length=1)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = 16
    priority: int | None = None
    id_slot: int | None = None

    @property
    def text(self) -> str:
        """The prompt."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt[0]

    def as_chat(self) -> Chat:
        """Return the same request as a conversation of one message."""
        return Chat(
            model=self.model,
            messages=[Message(role="user", content=self.text)],
            stream=self.stream,
            stream_options=self.stream_options,
            max_tokens=self.max_tokens,
            priority=self.priority,
            id_slot=self.id_slot,
        )


def tokens_in(text: str) -> int:
    """Return how many tokens a text counts for."""
    return -(-len(text) // CHARS_PER_TOKEN)


def extended(prefix: str, message: Message) -> Piece:
    """Return the piece that a message adds to a conversation of that prefix.

    Only what the model would read counts, so a client may echo our reply in its own JSON and still meet its prefix.
    """
    calls = [[call.id, call.function.name, call.function.arguments] for call in message.tool_calls or ()]
    read = json.dumps([message.role, message.text, calls, message.tool_call_id or ""])
    tokens = tokens_in(message.text) + sum(tokens_in(name + arguments) for _, name, arguments in calls)
    return Piece(_named(prefix, read), MESSAGE_TOKENS + tokens)


def pieces(chat: Chat) -> tuple[Piece, ...]:
    """Return the prompt piece by piece: model and tools first, then each message."""
    tools = msgspec.json.encode(chat.tools or []).decode()
    chain = [Piece(_named(chat.model, tools), OPENING_TOKENS + (tokens_in(tools) if chat.tools else 0))]
    for message in chat.messages:
        chain.append(extended(chain[-1].prefix, message))
    return tuple(chain)


def text_pieces(model: str, text: str) -> tuple[Piece, ...]:
    """Return a bare text as a prompt of one piece."""
    return (Piece(_named(model, text), OPENING_TOKENS + tokens_in(text)),)


def _named(prefix: str, read: str) -> str:
    return hashlib.blake2b(f"{prefix}\n{read}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
