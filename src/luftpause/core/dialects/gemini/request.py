"""The parts of a Gemini request that translating it looks at. Everything else of it is left out by not being here.

Members may be written in camel case or, as Google's own examples do in places, in snake case. What belongs to the
client (arguments, results, schemas) stays as it is written.
"""

import re
from typing import Final, TypeVar, cast

import msgspec
from msgspec import Struct

from luftpause.core.dialects.numbers import whole
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.surrogates import read_mended

Members = dict[str, object]


class Blob(Struct, rename="camel"):
    """Data in base64, the usual or the one for URLs."""

    mime_type: str = ""
    data: str = ""


class FileData(Struct, rename="camel"):
    """Data at an address."""

    mime_type: str = ""
    file_uri: str = ""


class FunctionCall(Struct, rename="camel"):
    """A call that the model made. Some clients leave its id out."""

    name: str = ""
    id: str | None = None
    args: Members | None = None


class FunctionResponse(Struct, rename="camel"):
    """What a call returned; `parts` holds what is no text."""

    name: str = ""
    id: str | None = None
    response: object = None
    parts: "list[Part] | None" = None


class Part(Struct, rename="camel"):
    """One part of a message: of these members one is there. `thought` says that a text is no answer."""

    text: str | None = None
    thought: bool | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    executable_code: object = None
    code_execution_result: object = None
    tool_call: object = None
    tool_response: object = None


class Content(Struct, rename="camel"):
    """One message. Without a role it is the user's."""

    role: str | None = None
    parts: list[Part] | None = None


class FunctionDeclaration(Struct, rename="camel"):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: Members | None = None
    parameters_json_schema: object = None


class FunctionCallingConfig(Struct, rename="camel"):
    """Which functions the model may or must call."""

    mode: str = "AUTO"
    allowed_function_names: list[str] | None = None


class ToolConfig(Struct, rename="camel"):
    """How tools are to be used."""

    function_calling_config: FunctionCallingConfig | None = None


class ThinkingConfig(Struct, rename="camel"):
    """Whether and how much the model is to think, and whether the client wants to read it."""

    include_thoughts: bool | None = None
    thinking_budget: int | None = None
    thinking_level: str | None = None


class GenerationConfig(Struct, rename="camel"):
    """How the answer is to be made, and its form."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop_sequences: list[str] | None = None
    candidate_count: int | None = None
    response_mime_type: str | None = None
    response_schema: Members | None = None
    response_json_schema: object = None
    response_modalities: list[str] | None = None
    response_logprobs: bool | None = None
    logprobs: int | None = None
    thinking_config: ThinkingConfig | None = None


class Request(Struct, rename="camel"):
    """A request. Each tool is a set of members: functions, or something that Google runs."""

    contents: list[Content] = []
    system_instruction: Content | None = None
    tools: list[Members] | None = None
    tool_config: ToolConfig | None = None
    generation_config: GenerationConfig | None = None
    cached_content: str | None = None


class Counted(Request, rename="camel"):
    """What is to be counted: a request, or one that holds a whole one."""

    generate_content_request: Request | None = None


_AnyRequest = TypeVar("_AnyRequest", Request, Counted)


def read_request(body: bytes) -> Request:
    """Return a request. Half of an escaped surrogate pair, which a client makes by cutting a text, is replaced.

    Raises:
        BadRequestError: it does not have the shape of one; the message names the place.
    """
    return _read(body, Request)


def read_counted(body: bytes) -> Request:
    """Return the request whose tokens are to be counted.

    Raises:
        BadRequestError: it does not have the shape of one; the message names the place.
    """
    asked = _read(body, Counted)
    return asked.generate_content_request or asked


def _read(body: bytes, kind: type[_AnyRequest]) -> _AnyRequest:
    try:
        return msgspec.convert(_camel_members(read_mended(_ANY, body)), kind)
    except msgspec.DecodeError as error:
        raise unfitting(error) from error
    except RecursionError as error:
        raise BadRequestError("the request body is nested too deeply") from error


def unfitting(error: Exception) -> BadRequestError:
    """Return the refusal of what does not have the shape that it should have."""
    return BadRequestError(f"the request body does not fit: {str(error).replace('Expected', 'expected')}")


def unspeakable(what: str) -> BadRequestError:
    """Return the refusal of something that no engine could be told of in Chat Completions."""
    return BadRequestError(f"{what}, which cannot be said in Chat Completions, and that is all that engines here speak")


_ANY: Final = msgspec.json.Decoder()
_CLIENTS: Final = ("args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema")
_LISTS: Final = ("contents", "parts", "tools", "functionDeclarations")
"""Where there is one of it, it may stand alone: Google's own examples write so."""
_SNAKE: Final = re.compile(r"(?<=[a-z])_([a-z])")


def _camel_members(value: object) -> object:
    """Return a document with its own members in camel case and its numbers whole where they are; the client's stay."""
    if isinstance(value, float):
        return whole(value)
    if isinstance(value, list):
        return [_camel_members(each) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    members: Members = {}
    for name, inner in cast("Members", value).items():
        known = _SNAKE.sub(lambda found: found[1].upper(), name).removeprefix("_")
        own = inner if known in _CLIENTS else _camel_members(inner)
        members[known] = [own] if known in _LISTS and isinstance(own, dict) else own
    return members
