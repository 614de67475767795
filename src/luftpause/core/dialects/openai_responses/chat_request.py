"""A Responses request said in Chat Completions.

Each member of a request is one of four kinds: what Chat Completions calls the same or knows under another name; what
only the provider of an engine could use, which is left out; what cannot be had here, which is refused by its name; and
what nobody here knows, which is passed on for the engine to judge.
"""

import json
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.numbers import whole_raw
from luftpause.core.dialects.openai_responses.conversation import Item, messages_of, tools_of
from luftpause.core.dialects.openai_responses.response import ECHOED
from luftpause.core.dialects.openai_responses.tools import Choice, Tool, ToolSpec, ToolTable, server_tool
from luftpause.core.dialects.request import BadRequestError, check_text
from luftpause.core.dialects.server_tools import left_out


class ChatRequest(Struct, frozen=True, kw_only=True):
    """A translated request.

    Attributes:
        body: the Chat Completions request.
        stream: whether the answer comes piece by piece.
        tools: what its functions stand for.
        echo: what every response repeats of it.
        left_out: the tools, by name, that the request offers and no engine can be offered.
    """

    body: bytes
    stream: bool
    tools: ToolTable
    echo: Mapping[str, object]
    left_out: tuple[str, ...] = ()


def say_in_chat(body: bytes) -> ChatRequest:
    """Translate a request.

    Raises:
        BadRequestError: it asks for something that cannot be said; the message names it.
    """
    members = _members(body)
    for name, why in _REFUSED.items():
        if members.get(name, _NULL) not in _NOTHING:
            raise BadRequestError(f"`{name}` cannot be used with this model: {why}")
    if LOGPROBS in (_read(members, "include", _NAMES) or ()):
        raise BadRequestError(f"`include` asks for `{LOGPROBS}`, which cannot be translated")
    items = _items(members)
    specs = [*(_read(members, "tools", _TOOLS) or ()), *tools_of(items)]
    tools = ToolTable(specs)
    without = left_out(filter(None, map(server_tool, specs)), has_others=bool(tools.functions()))
    stream = _read(members, "stream", _FLAG) is True
    instructions = _read(members, "instructions", _TEXT) or ""
    chat: dict[str, object] = {"model": members["model"], "messages": messages_of(instructions, items, tools)}
    if stream:
        chat |= {"stream": True, "stream_options": {"include_usage": True}}
    chat |= _tools(members, tools) | _output(members)
    for name, value in members.items():
        if name not in _KNOWN and value != _NULL:
            chat[_RENAMED.get(name, name)] = whole_raw(value) if name in _COUNTS else value
    return ChatRequest(
        body=msgspec.json.encode(chat),
        stream=stream,
        tools=tools,
        echo=_echo(members),
        left_out=without,
    )


LOGPROBS: Final = "message.output_text.logprobs"


class _Format(Struct):
    type: str
    name: str | None = None
    description: str | None = None
    schema: Raw = Raw(b"{}")
    strict: bool | None = None


class _Text(Struct):
    format: _Format | None = None
    verbosity: Raw = Raw(b"null")


class _Reasoning(Struct):
    effort: Raw = Raw(b"null")


_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])
_INPUT: Final = msgspec.json.Decoder(str | list[Item] | None)
_TOOLS: Final = msgspec.json.Decoder(list[ToolSpec] | None)
_CHOICE: Final = msgspec.json.Decoder(str | Choice | None)
_FORMAT: Final = msgspec.json.Decoder(_Text | None)
_EFFORT: Final = msgspec.json.Decoder(_Reasoning | None)
_NAMES: Final = msgspec.json.Decoder(list[str] | None)
_FLAG: Final = msgspec.json.Decoder(bool | None)
_TEXT: Final = msgspec.json.Decoder(str | None)

_NULL: Final = Raw(b"null")
_NOTHING: Final = (_NULL, Raw(b"false"), Raw(b"0"), Raw(b'""'))
"""Values by which a member says that it is not wanted."""

_WHOLE: Final = "no answers are kept here; send the whole conversation as `input`, with `store` false"
_REFUSED: Final = {
    "previous_response_id": _WHOLE,
    "conversation": _WHOLE,
    "prompt": "no prompts are kept here; send it as `instructions` and `input`",
    "background": "nothing runs in the background; ask for a stream",
    "moderation": "nobody moderates here",
    "top_logprobs": "log probabilities cannot be translated",
}

_COUNTS: Final = ("max_output_tokens", "n", "seed", "top_k")
"""Numbers that engines want whole."""
_RENAMED: Final = {"max_output_tokens": "max_tokens"}
_PROVIDERS: Final = (
    "access_programs",
    "background_options",
    "client_metadata",
    "context_management",
    "image",
    "include",
    "max_tool_calls",
    "metadata",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "truncation",
)
"""What only a provider that keeps accounts, answers and tools of its own could use."""

_READ: Final = (
    "input",
    "instructions",
    "model",
    "parallel_tool_calls",
    "reasoning",
    "stream",
    "text",
    "tool_choice",
    "tools",
)
_KNOWN: Final = frozenset({*_REFUSED, *_PROVIDERS, *_READ})

_T = TypeVar("_T")


def _members(body: bytes) -> dict[str, Raw]:
    check_text(body)
    try:
        return _MEMBERS.decode(body)
    except msgspec.DecodeError:
        pass
    except RecursionError as error:
        raise BadRequestError("the request body is nested too deeply") from error
    try:  # half of a surrogate pair is legal JSON; written as a question mark it can be sent on
        return _MEMBERS.decode(json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the request body is not valid JSON: {error}") from error


def _read(members: Mapping[str, Raw], name: str, decoder: msgspec.json.Decoder[_T]) -> _T | None:
    """Return a member, None without it.

    Raises:
        BadRequestError: it is something else; the message says what and where.
    """
    if name not in members:
        return None
    try:
        return decoder.decode(members[name])
    except msgspec.ValidationError as error:
        what = str(error).replace("Expected", "expected").replace("$", f"$.{name}")
        where = "" if "$" in what else f" - at `$.{name}`"
        raise BadRequestError(f"the request body does not fit: {what}{where}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequestError(f"`{name}` cannot be read: {error}") from error


def _echo(members: Mapping[str, Raw]) -> dict[str, object]:
    """Return what a response repeats, written anew: an event is one line, whatever lines the request has."""
    found = {name: members[name] for name in ECHOED if members.get(name, _NULL) != _NULL}
    return msgspec.json.decode(msgspec.json.encode(found), type=dict[str, object])


def _items(members: Mapping[str, Raw]) -> list[Item]:
    given = _read(members, "input", _INPUT)
    if given is None:
        raise BadRequestError("the request says nothing: `input` is missing")
    return [Item(role="user", content=given)] if isinstance(given, str) else given


def _tools(members: Mapping[str, Raw], tools: ToolTable) -> dict[str, object]:
    """Return the functions, and how they are to be chosen; nothing where there are none."""
    choice = _read(members, "tool_choice", _CHOICE)
    allowed: list[Tool] | None = None
    said: object = choice
    if isinstance(choice, Choice) and choice.type == "allowed_tools":
        allowed = [tools.chosen(each) for each in choice.tools or () if server_tool(each) is None]
        left_out(filter(None, map(server_tool, choice.tools or ())), has_others=bool(allowed))
        said = choice.mode
    elif isinstance(choice, Choice):
        said = {"type": "function", "function": {"name": tools.function(tools.chosen(choice))}}
    functions = tools.functions(allowed)
    if not functions:
        return {}
    chat: dict[str, object] = {"tools": functions}
    if said is not None:
        chat["tool_choice"] = said
    if "parallel_tool_calls" in members:
        chat["parallel_tool_calls"] = members["parallel_tool_calls"]
    return chat


def _output(members: Mapping[str, Raw]) -> dict[str, object]:
    """Return what the answer is to look like, and how much it is to be thought about."""
    text = _read(members, "text", _FORMAT) or _Text()
    reasoning = _read(members, "reasoning", _EFFORT) or _Reasoning()
    said: dict[str, object] = {
        "response_format": _NULL if text.format is None else _response_format(text.format),
        "verbosity": text.verbosity,
        "reasoning_effort": reasoning.effort,
    }
    return {name: value for name, value in said.items() if value != _NULL}


def _response_format(wanted: _Format) -> dict[str, object] | Raw:
    if wanted.type == "text":
        return _NULL
    if wanted.type == "json_object":
        return {"type": "json_object"}
    if wanted.type != "json_schema":
        raise BadRequestError(f"`text.format` of type {wanted.type!r} cannot be translated")
    schema: dict[str, object] = {"name": wanted.name or "answer", "schema": wanted.schema}
    if wanted.description is not None:
        schema["description"] = wanted.description
    if wanted.strict is not None:
        schema["strict"] = wanted.strict
    return {"type": "json_schema", "json_schema": schema}
