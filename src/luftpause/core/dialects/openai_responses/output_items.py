"""The items of a response: which events they consist of, and what stands in the response when it is over.

An item is opened, grows and is closed. Events are given without their number: that is counted by who writes them.
"""

from typing import Final, Protocol, TypeAlias

import msgspec
from msgspec import Raw

from luftpause.core.dialects.openai_responses.custom_input import CustomInput
from luftpause.core.dialects.openai_responses.tools import CUSTOM_ARGUMENT, Tool, ToolKind

Fields: TypeAlias = dict[str, object]
Event: TypeAlias = tuple[str, Fields]

ADDED: Final = "response.output_item.added"
DONE: Final = "response.output_item.done"


class OutputItem(Protocol):
    """An item that is being written. `status` is `in_progress`, `completed` or `incomplete`."""

    def item(self, status: str) -> Fields:
        """Return the item as far as it has come."""
        ...

    def opened(self) -> list[Event]:
        """Return the events that begin it."""
        ...

    def grown(self, text: str) -> list[Event]:
        """Add the next piece of what the engine says for it; return the events for it."""
        ...

    def closed(self, status: str) -> list[Event]:
        """Return the events that end it."""
        ...


class TextItem:
    """One part of text: a message, or what the model thinks where `reasoning` is true. `place` is its output index."""

    def __init__(self, place: int, item_id: str, *, reasoning: bool) -> None:
        self._at: Fields = {"item_id": item_id, "output_index": place}
        self.reasoning = reasoning
        self._texts: list[str] = []
        self._name = "response.reasoning_text" if reasoning else "response.output_text"

    def item(self, status: str) -> Fields:
        """See `OutputItem.item`."""
        content = [] if status == "in_progress" else [self._part("".join(self._texts))]
        if self.reasoning:
            own: Fields = {"type": "reasoning", "summary": []}
        else:
            own = {"type": "message", "role": "assistant"}
        return {"id": self._at["item_id"], **own, "status": status, "content": content}

    def opened(self) -> list[Event]:
        """See `OutputItem.opened`."""
        added = {"output_index": self._at["output_index"], "item": self.item("in_progress")}
        return [(ADDED, added), ("response.content_part.added", self._fields(part=self._part("")))]

    def grown(self, text: str) -> list[Event]:
        """See `OutputItem.grown`."""
        self._texts.append(text)
        return [(f"{self._name}.delta", self._fields(delta=text, **self._no_logprobs()))]

    def closed(self, status: str) -> list[Event]:
        """See `OutputItem.closed`."""
        text = "".join(self._texts)
        return [
            (f"{self._name}.done", self._fields(text=text, **self._no_logprobs())),
            ("response.content_part.done", self._fields(part=self._part(text))),
            (DONE, {"output_index": self._at["output_index"], "item": self.item(status)}),
        ]

    def _fields(self, **fields: object) -> Fields:
        return {**self._at, "content_index": 0, **fields}

    def _no_logprobs(self) -> Fields:
        return {} if self.reasoning else {"logprobs": []}

    def _part(self, text: str) -> Fields:
        if self.reasoning:
            return {"type": "reasoning_text", "text": text}
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class CallItem:
    """A call of a tool."""

    def __init__(self, place: int, item_id: str, call_id: str, tool: Tool) -> None:
        self._at: Fields = {"item_id": item_id, "output_index": place}
        self._call_id = call_id
        self._tool = tool
        self._arguments: list[str] = []
        self._custom = CustomInput()

    def item(self, status: str) -> Fields:
        """See `OutputItem.item`."""
        item: Fields = {"id": self._at["item_id"], "type": self._tool.kind.value, "status": status}
        item["call_id"] = self._call_id
        begun = status == "in_progress"
        if self._tool.kind is ToolKind.SEARCH:
            return {**item, "execution": "client", "arguments": {} if begun else _object(self.arguments())}
        item["name"] = self._tool.name
        if self._tool.namespace:
            item["namespace"] = self._tool.namespace
        if self._tool.kind is ToolKind.CUSTOM:
            return {**item, "input": "" if begun else self._input()}
        return {**item, "arguments": "" if begun else self.arguments() or "{}"}

    def arguments(self) -> str:
        """Return what the engine said for it up to now."""
        return "".join(self._arguments)

    def is_whole(self) -> bool:
        """Say whether its arguments are complete."""
        try:
            msgspec.json.decode(self.arguments(), type=Raw)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    def opened(self) -> list[Event]:
        """See `OutputItem.opened`."""
        return [(ADDED, {"output_index": self._at["output_index"], "item": self.item("in_progress")})]

    def grown(self, text: str) -> list[Event]:
        """See `OutputItem.grown`."""
        self._arguments.append(text)
        if self._tool.kind is ToolKind.CUSTOM:
            text = self._custom.grown(text)
        return self._delta(text)

    def closed(self, status: str) -> list[Event]:
        """See `OutputItem.closed`."""
        events: list[Event] = []
        if self._tool.kind is ToolKind.FUNCTION:
            if not self._arguments:
                events += self._delta("{}")
            fields = {**self._at, "name": self._tool.name, "arguments": self.arguments() or "{}"}
            events.append(("response.function_call_arguments.done", fields))
        elif self._tool.kind is ToolKind.CUSTOM:
            events += self._delta(self._custom.ended() if self._custom.text() else self._input())
            events.append(("response.custom_tool_call_input.done", {**self._at, "input": self._input()}))
        return [*events, (DONE, {"output_index": self._at["output_index"], "item": self.item(status)})]

    def _delta(self, text: str) -> list[Event]:
        kind = _DELTAS.get(self._tool.kind)
        return [(kind, {**self._at, "delta": text})] if kind and text else []

    def _input(self) -> str:
        """Return a custom tool's text. A model that did not wrap it is taken at its word."""
        text = self._custom.text()
        if text:
            return text
        arguments = self.arguments()
        said = _object(arguments).get(CUSTOM_ARGUMENT)
        if isinstance(said, str):
            return said
        try:
            return msgspec.json.decode(arguments, type=str)
        except (msgspec.DecodeError, RecursionError):
            return arguments


_DELTAS: Final = {
    ToolKind.FUNCTION: "response.function_call_arguments.delta",
    ToolKind.CUSTOM: "response.custom_tool_call_input.delta",
}


def _object(arguments: str) -> Fields:
    try:
        return msgspec.json.decode(arguments, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return {}
