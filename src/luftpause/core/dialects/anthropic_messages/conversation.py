"""The messages of a Messages request as messages of Chat Completions.

Everything between two assistant messages becomes the tool messages that answer the first, then one user message. So
roles alternate as chat templates want them, and what was said once is written the same way in every later turn, which
keeps an engine's cached prefix good.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from luftpause.core.dialects.anthropic_messages.content import (
    BETWEEN,
    Part,
    blocks_of,
    joined,
    parts_of,
    result_blocks,
    text_part,
)
from luftpause.core.dialects.anthropic_messages.request import NULL, Block, Message, unspeakable

_BILLING: Final = "x-anthropic-billing-header:"
"""Begins a block that Claude Code puts first. It is no instruction, and differs from run to run."""

_SERVER_CALLS: Final = ("server_tool_use", "mcp_tool_use")
_SERVER_RESULT: Final = "_tool_result"
"""Types of blocks in an assistant's message, and how those of others end, that tell what Anthropic's servers ran."""
_TOOL_CHANGES: Final = ("tool_addition", "tool_removal")

_Said: TypeAlias = dict[str, object]


def chat_messages(system: str | Sequence[Block] | None, conversation: Sequence[Message]) -> list[_Said]:
    """Return the messages of a Chat Completions request.

    Raises:
        BadRequestError: there is something in them that cannot be said there; the message names it.
    """
    first = next((at for at, message in enumerate(conversation) if message.role != "system"), len(conversation))
    texts = [*_system_texts(system)]
    for message in conversation[:first]:
        texts += _system_texts(message.content)
    said: list[_Said] = [{"role": "system", "content": BETWEEN.join(texts)}] if texts else []
    last_user = max((at for at, message in enumerate(conversation) if message.role == "user"), default=-1)
    user, assistant = _UserSide(), _AssistantSide()
    for at, message in enumerate(conversation[first:], first):
        if message.role == "assistant":
            spoken = [block for block in blocks_of(message.content) if not _is_silent(block)]
            if spoken:
                said += user.taken()
                assistant.add(spoken)
        elif message.role == "user":
            said += assistant.taken()
            user.add(blocks_of(message.content))
        elif message.role != "system":
            raise unspeakable(f"a message has the role {message.role!r}")
        elif message.clear_at != "next_user_message" or at > last_user:
            said += assistant.taken()
            user.remind(_system_texts(message.content))
    return [*said, *assistant.taken(), *user.taken()]


def _system_texts(content: str | Sequence[Block] | None) -> Iterator[str]:
    for block in blocks_of(content):
        if block.type == "text":
            if block.text and not block.text.startswith(_BILLING):
                yield block.text
        elif block.type not in _TOOL_CHANGES:
            raise unspeakable(f"a system message holds a block of type {block.type!r}")


class _UserSide:
    """What comes between two assistant messages."""

    def __init__(self) -> None:
        self._results: list[_Said] = []
        self._pictures: list[Part] = []
        self._parts: list[Part] = []

    def add(self, blocks: Iterable[Block]) -> None:
        """Add a user message."""
        for block in blocks:
            if block.type == "tool_result":
                self._add_result(block)
            else:
                self._parts += parts_of(block)

    def remind(self, texts: Iterable[str]) -> None:
        """Add a system message.

        Many templates refuse a system message that is not the first, and moving it there would change the beginning of
        a prompt that the engine has cached. So it stays in its place, as a marked text of the user's.
        """
        text = BETWEEN.join(texts)
        if text:
            self._parts.append(text_part(f"<system-reminder>\n{text}\n</system-reminder>"))

    def taken(self) -> list[_Said]:
        """Return its messages and begin the next."""
        parts = [*self._pictures, *self._parts]
        said = self._results
        if parts:
            said.append({"role": "user", "content": joined(parts)})
        self._results, self._pictures, self._parts = [], [], []
        return said

    def _add_result(self, result: Block) -> None:
        """Add a tool result. Its pictures go into the user message: a tool message takes none."""
        texts: list[str] = []
        pictures: list[Part] = []
        for block in result_blocks(result):
            if block.type == "tool_reference":
                texts.append(f"The tool {block.tool_name} can be called now.")
                continue
            for part in parts_of(block):
                if part["type"] == "text":
                    texts.append(str(part["text"]))
                else:
                    pictures.append(part)
        if pictures:
            texts.append(f"({len(pictures)} image(s), shown in the next user message)")
            self._pictures += [text_part(f"Image(s) of the tool result {result.tool_use_id}:"), *pictures]
        text = BETWEEN.join(texts)
        if result.is_error:
            text = f"Error: {text}"
        self._results.append({"role": "tool", "tool_call_id": result.tool_use_id, "content": text})


class _AssistantSide:
    """What comes between two messages of the user.

    Thinking goes along: models that think between tool calls were trained to see it, and templates leave it out where
    it does not belong.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_Said] = []

    def add(self, blocks: Iterable[Block]) -> None:
        """Add an assistant message."""
        for block in blocks:
            if block.type == "text":
                self._texts.append(block.text)
            elif block.type == "thinking":
                self._thoughts.append(block.thinking)
            elif block.type == "tool_use":
                arguments = "{}" if block.input == NULL else msgspec.json.format(block.input, indent=-1).decode()
                function = {"name": block.name, "arguments": arguments}
                self._calls.append({"id": block.id, "type": "function", "function": function})
            else:
                raise unspeakable(f"an assistant message holds a block of type {block.type!r}")

    def taken(self) -> list[_Said]:
        """Return it as a message, none if it said nothing, and begin the next."""
        message: _Said = {"role": "assistant", "content": BETWEEN.join(self._texts)}
        if self._thoughts:
            message["reasoning_content"] = BETWEEN.join(self._thoughts)
        if self._calls:
            message["tool_calls"] = self._calls
        said = [message] if self._texts or self._thoughts or self._calls else []
        self._texts, self._thoughts, self._calls = [], [], []
        return said


def _is_silent(block: Block) -> bool:
    """Say whether a block of the assistant says nothing to an engine.

    It is empty, or only Anthropic can decipher it, or it says what a tool did that ran there: of that the text tells.
    """
    empty = {"text": not block.text, "thinking": not block.thinking, "redacted_thinking": True}
    return empty.get(block.type, block.type in _SERVER_CALLS or block.type.endswith(_SERVER_RESULT))
