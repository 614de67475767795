"""The parts of a Messages request that translating it looks at. Everything else of it is left out by not being here.

Members that mean different things in different blocks stay as they were written until somebody knows which block it is.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.request import BadRequestError, check_text
from luftpause.core.dialects.surrogates import read_mended

NULL: Final = Raw(b"null")


class Block(Struct):
    """A content block of any type, in messages, in `system` or in a tool result."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: Raw = NULL
    tool_use_id: str = ""
    tool_name: str = ""
    is_error: bool | None = None
    content: Raw = NULL
    source: Raw = NULL
    title: str | None = None
    context: str | None = None
    tool: Raw = NULL


class Message(Struct):
    """One message; `clear_at` says how long the text of a system message counts."""

    role: str
    content: str | list[Block] | None = None
    clear_at: str | None = None


class Tool(Struct):
    """A tool that the request declares."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: Raw = NULL
    defer_loading: bool | None = None
    strict: bool | None = None


class ToolChoice(Struct):
    """Which tools the model may or must call."""

    type: str
    name: str = ""
    disable_parallel_tool_use: bool | None = None


class Format(Struct):
    """The form that the answer is to have."""

    type: str
    schema: Raw = NULL


class OutputConfig(Struct):
    """How much the model is to think, and the form of its answer."""

    effort: str | None = None
    format: Format | None = None


class Thinking(Struct):
    """Whether the model is to think before it answers."""

    type: str


class Request(Struct):
    """A request; values that go on as they are stay as they were written."""

    model: Raw
    messages: list[Message]
    system: str | list[Block] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    stream: bool | None = None
    max_tokens: float | int | None = None
    stop_sequences: list[str] | None = None
    temperature: Raw = NULL
    top_p: Raw = NULL
    top_k: Raw = NULL
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: Format | None = None
    mcp_servers: list[Raw] | None = None
    container: Raw = NULL


def read_request(body: bytes) -> Request:
    """Return a request. Half of an escaped surrogate pair, which a client makes by cutting a text, is replaced.

    Raises:
        BadRequestError: it does not have the shape of one; the message names the place.
    """
    check_text(body)
    try:
        return read_mended(_REQUEST, body)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the request body does not fit: {str(error).replace('Expected', 'expected')}") from error
    except RecursionError as error:
        raise BadRequestError("the request body is nested too deeply") from error


def unspeakable(what: str) -> BadRequestError:
    """Return the refusal of something that no engine could be told of in Chat Completions."""
    return BadRequestError(
        f"{what}, which cannot be said in Chat Completions, and that is all this model's engine speaks"
    )


_REQUEST: Final = msgspec.json.Decoder(Request)
