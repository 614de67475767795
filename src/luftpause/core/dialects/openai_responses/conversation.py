"""The items of a request's `input` as messages of Chat Completions.

What a model said and called between two times that it was told something is one assistant message there; what it was
told is the results of its calls and then one message of the user. So roles alternate as chat templates want them, and
what was said once is written the same way in every later turn, which keeps an engine's cached prefix good.

Instructions that come before everything else are one system message. Later ones stay in their place as a marked text of
the user's: many templates refuse a system message that is not the first.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from luftpause.core.dialects.files import NAME_CHARS_MAX, media_type_at, named, text_at, text_of, unreadable
from luftpause.core.dialects.openai_responses.tools import (
    TOOL_SEARCH,
    Tool,
    ToolKind,
    ToolSpec,
    ToolTable,
    callable_tools,
    custom_arguments,
)
from luftpause.core.dialects.request import BadRequestError

Message: TypeAlias = dict[str, object]

BETWEEN: Final = "\n\n"
"""Between texts that become one."""


class Part(Struct):
    """A part of a message, of a tool's output or of a reasoning item."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    input_audio: Raw | UnsetType = UNSET


class Item(Struct):
    """An item of `input`."""

    type: str | None = None
    role: str | None = None
    content: str | list[Part] | None = None
    summary: list[Part] | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Raw = Raw(b"null")
    input: str | None = None
    output: str | list[Part] | None = None
    tools: list[ToolSpec] | None = None

    @property
    def kind(self) -> str:
        """What it is: a message may leave its type out."""
        return self.type or ("message" if self.role else "item_reference")


def tools_of(items: Iterable[Item]) -> list[ToolSpec]:
    """Return the tools that came with the conversation: what a search found, and what was added."""
    return [tool for item in items if item.kind in _WITH_TOOLS for tool in item.tools or ()]


def messages_of(instructions: str, items: Sequence[Item], table: ToolTable) -> list[Message]:
    """Return the conversation.

    Raises:
        BadRequestError: an item that cannot be said; the message names it and its place.
    """
    conversation = _Conversation(instructions, table)
    for number, item in enumerate(items):
        try:
            conversation.add(item)
        except BadRequestError as error:
            raise BadRequestError(f"`input[{number}]`: {error}") from error
    return conversation.ended()


_LEFT_OUT: Final = (
    "additional_tools",
    "code_interpreter_call",
    "file_search_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "web_search_call",
)
"""Items that say what a hosted tool did, of which a message tells, and the tools that are offered anyway."""

_WITH_TOOLS: Final = ("tool_search_output", "additional_tools")
_CALLS: Final = {kind.value: kind for kind in ToolKind}
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output", "tool_search_output")
_SYSTEM: Final = ("system", "developer")


class _Assistant:
    """What the model said and called since it was last told something."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[Message] = []

    def message(self) -> Message | None:
        if not self.texts and not self.calls:
            return None  # reasoning that led to nothing
        message: Message = {"role": "assistant", "content": BETWEEN.join(self.texts)}
        if self.reasoning:
            message["reasoning_content"] = BETWEEN.join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return message


class _Told:
    """What the model is told between two times that it speaks: results of its calls, then one message of the user."""

    def __init__(self) -> None:
        self.results: list[Message] = []
        self.shown: list[Message] = []
        self.parts: list[Message] = []

    def messages(self) -> list[Message]:
        parts = self.shown + self.parts
        return [*self.results, {"role": "user", "content": _joined(parts)}] if parts else self.results


class _Conversation:
    def __init__(self, instructions: str, table: ToolTable) -> None:
        self._table = table
        self._messages: list[Message] = []
        self._system: list[Message] = [_text(instructions)] if instructions else []
        self._assistant: _Assistant | None = None
        self._user: _Told | None = None

    def add(self, item: Item) -> None:
        kind = item.kind
        if kind == "message":
            self._add_message(item)
        elif kind == "reasoning":
            self._speaker().reasoning += _texts(item.content or item.summary or ())
        elif kind in _CALLS:
            self._add_call(item, _CALLS[kind])
        elif kind in _OUTPUTS:
            self._add_output(item)
        elif kind == "item_reference":
            raise BadRequestError(
                "an `item_reference` names an item of an earlier answer, and no answers are kept here; "
                "send the item itself, with `store` false"
            )
        elif kind not in _LEFT_OUT:
            raise BadRequestError(f"an item of type {kind!r} cannot be said to an engine that speaks Chat Completions")

    def ended(self) -> list[Message]:
        self._end_assistant()
        self._end_user()
        system: list[Message] = [{"role": "system", "content": _joined(self._system)}] if self._system else []
        return system + self._messages

    def _add_message(self, item: Item) -> None:
        if item.role == "assistant":
            self._speaker().texts += _texts(item.content or ())
        elif item.role == "user":
            self._listener().parts += _parts(item.content)
        elif item.role not in _SYSTEM:
            raise BadRequestError(f"a message has the role {item.role!r}")
        elif self._messages or self._assistant or self._user:
            texts = [f"<instructions>\n{text}\n</instructions>" for text in _texts(item.content or ()) if text]
            self._listener().parts += [_text(text) for text in texts]
        else:
            self._system += [_text(text) for text in _texts(item.content or ()) if text]

    def _add_call(self, item: Item, kind: ToolKind) -> None:
        tool = Tool(kind, TOOL_SEARCH if kind is ToolKind.SEARCH else item.name or "", item.namespace or "")
        arguments = custom_arguments(item.input or "") if kind is ToolKind.CUSTOM else _json_text(item.arguments)
        function = {"name": self._table.function(tool), "arguments": arguments}
        self._speaker().calls.append({"id": _call_id(item), "type": "function", "function": function})

    def _add_output(self, item: Item) -> None:
        call_id = _call_id(item)
        told = self._listener()
        if item.kind == "tool_search_output":
            found = [tool for spec in item.tools or () for tool, _ in callable_tools(spec)]
            said = [_text(msgspec.json.encode({"found": [self._table.function(tool) for tool in found]}).decode())]
        else:
            said = _parts(item.output)
        texts = [part for part in said if part["type"] == "text"]
        pictures = [part for part in said if part["type"] != "text"]
        if pictures:
            texts.append(_text(f"({len(pictures)} more, shown in the next message of the user)"))
            told.shown += [_text(f"Returned by the tool call {call_id}:"), *pictures]
        told.results.append({"role": "tool", "tool_call_id": call_id, "content": _joined(texts)})

    def _speaker(self) -> _Assistant:
        """Return what the model says at the moment."""
        self._end_user()
        self._assistant = self._assistant or _Assistant()
        return self._assistant

    def _listener(self) -> _Told:
        """Return what the model is told at the moment."""
        self._end_assistant()
        self._user = self._user or _Told()
        return self._user

    def _end_assistant(self) -> None:
        message = self._assistant.message() if self._assistant else None
        self._assistant = None
        if message is not None:
            self._messages.append(message)

    def _end_user(self) -> None:
        if self._user:
            self._messages += self._user.messages()
        self._user = None


def _call_id(item: Item) -> str:
    if not item.call_id:
        raise BadRequestError(f"a `{item.kind}` has no `call_id`")
    return item.call_id


def _json_text(arguments: Raw) -> str:
    """Return arguments that stand there as JSON text, or as the object itself.

    What a model wrote wrongly once is said as a text: engines refuse a conversation with arguments that are no JSON,
    and the run could never go on.
    """
    if bytes(arguments).startswith(b'"'):
        text = msgspec.json.decode(arguments, type=str)
    else:
        text = msgspec.json.format(arguments, indent=0).decode()  # on one line, as models write it
    try:
        msgspec.json.decode(text, type=dict[str, Raw])
    except msgspec.DecodeError:
        return custom_arguments(text) if text.strip() else "{}"
    return text


def _texts(content: str | Iterable[Part]) -> list[str]:
    """Return the texts of a message that is no user's, or of reasoning: they hold nothing else, but files at most."""
    if isinstance(content, str):
        return [content]
    return [_file(part) if part.type == "input_file" else part.text or part.refusal or "" for part in content]


def _parts(content: str | Sequence[Part] | None) -> list[Message]:
    return [_text(content)] if isinstance(content, str) else [_part(part) for part in content or ()]


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _joined(parts: Sequence[Message]) -> str | list[Message]:
    """Return parts as one text, as a list only where there are others than texts."""
    if all(part["type"] == "text" for part in parts):
        return BETWEEN.join(str(part["text"]) for part in parts)
    return list(parts)


def _part(part: Part) -> Message:
    if part.type in ("input_text", "output_text", "text", "refusal"):
        return _text(part.text or part.refusal or "")
    if part.type == "input_image" and part.image_url:
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": part.image_url, **detail}}
    if part.type == "input_image":
        raise BadRequestError("an `input_image` has no `image_url`, and no files are kept here")
    if part.type == "input_file":
        return _text(_file(part))
    if part.type == "input_audio" and part.input_audio is not UNSET:
        return {"type": "input_audio", "input_audio": part.input_audio}
    raise BadRequestError(f"a part of type {part.type!r} cannot be said to an engine that speaks Chat Completions")


def _file(part: Part) -> str:
    """Return a file that is text, under its name.

    Raises:
        BadRequestError: it is none, or lies elsewhere.
    """
    url = part.file_url or ""
    given = part.file_data or (url if url.startswith("data:") else "")
    text = text_at(given) if given.startswith("data:") else text_of("", given)
    if given and text is not None:
        return f"{part.filename}:{BETWEEN}{text}" if part.filename else text
    if given:
        raise unreadable(f"a message holds {named(part.filename, media_type_at(given))}")
    where = f"a message shows a file at {url[:NAME_CHARS_MAX]!r}" if url else "an `input_file` names a file by its id"
    raise unreadable(where)
