"""What the fake engine answers: filler that mentions the task, JSON of the wanted shape, or calls of the offered tools.

Pure: the same seed, conversation and number give the same reply, token by token. Knows nothing of time or HTTP.
"""

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from luftpause.testkit.fake_engine.alternatives import Alternatives, beside, chosen_among, options_in
from luftpause.testkit.fake_engine.arguments import as_schema, fill_arguments, fill_value
from luftpause.testkit.fake_engine.conversations import (
    CalledFunction,
    Chat,
    Message,
    Tool,
    ToolCall,
    ToolChoice,
)
from luftpause.testkit.fake_engine.markers import Orders, read_orders, without_markers
from luftpause.testkit.fake_engine.settings import Settings
from luftpause.testkit.fake_engine.spoken_calls import spoken

QUOTE_WORDS_MAX = 12
JSON_CHARS = 6
"""Characters of JSON per token."""

CALLS_MAX = 32
_FILLER = (
    "Nothing here was looked up; these words only take up room.",
    "A kettle on a cold stove would know as much.",
    "The answer is as long as it was asked to be.",
    "Somewhere a tool is still thinking about it.",
    "Three of these sentences make a paragraph and no point.",
    "It would read better if a model had written it.",
    "The next word follows from the seed alone.",
    "Every pause between two turns is somebody waiting.",
)


class UnknownToolError(Exception):
    """The tool choice names a function that is not offered."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A token of text. `alternatives`: itself and what else was likely; empty unless they were asked for."""

    text: str
    alternatives: Alternatives = ()


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A token of a tool call: the first of a call carries `id` and `name`, the others pieces of the arguments."""

    index: int
    id: str
    name: str
    arguments: str


Delta = TextDelta | CallDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply before its first token: one delta per token, and where it goes wrong, if it shall.

    `counted`: whether its usage is told.
    """

    deltas: tuple[Delta, ...]
    finish_reason: str
    counted: bool = True
    stalls_after: int | None = None
    dies_after: int | None = None

    def message(self) -> Message:
        """Return the reply as the message that an honest client echoes."""
        text = "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))
        return Message(role="assistant", content=text or None, tool_calls=whole_calls(self.deltas) or None)


def whole_calls(deltas: Sequence[Delta]) -> list[ToolCall]:
    """Return the calls that are in these deltas."""
    calls = tuple(delta for delta in deltas if isinstance(delta, CallDelta))
    return [
        ToolCall(
            id=head.id,
            function=CalledFunction(
                name=head.name,
                arguments="".join(call.arguments for call in calls if call.index == head.index),
            ),
        )
        for head in calls
        if head.id
    ]


def plan_reply(chat: Chat, settings: Settings, conversation: str, number: int) -> Reply:
    """Return the reply to a conversation.

    Args:
        chat: the request.
        settings: of the engine: seed, rounds of tools and length where the task does not say.
        conversation: name of the prompt's prefix.
        number: of the request at this engine; makes ids differ when a conversation comes twice.

    Raises:
        UnknownToolError: the tool choice names a function that is not offered.
    """
    orders = read_orders(chat.task)
    tools = _called_tools(chat, orders, settings)
    whole: tuple[Delta, ...]
    if tools:
        ids = _ids(settings.seed, conversation, number)
        whole, finish_reason = tuple(_call_deltas(tools, chat.task, orders, ids)), "tool_calls"
        if orders.as_text:
            said = spoken(orders.as_text, whole_calls(whole))
            whole, finish_reason = tuple(map(TextDelta, _parts(said))), "stop"
    else:
        whole, finish_reason = _text_deltas(chat, orders, settings, conversation), "stop"
    cap = chat.token_cap
    if cap is not None and cap < len(whole):
        whole, finish_reason = whole[: max(1, cap)], "length"
    half = len(whole) // 2
    return Reply(
        deltas=whole,
        finish_reason=finish_reason,
        counted=not orders.no_usage,
        stalls_after=half if orders.stall else None,
        dies_after=max(1, half) if orders.die else None,
    )


def reply_id(seed: int, conversation: str, number: int) -> str:
    """Return the id of a reply: 96 bits from seed, conversation and number."""
    return _digest(f"{seed}:{conversation}:{number}")


def _called_tools(chat: Chat, orders: Orders, settings: Settings) -> Sequence[Tool]:
    """Return the tools that the reply calls, one entry per call; empty for a text reply."""
    offered = chat.tools or []
    if isinstance(chat.tool_choice, ToolChoice):
        name = chat.tool_choice.function.name
        named = [tool for tool in offered if tool.function.name == name]
        if not named:
            raise UnknownToolError(f"tool_choice names {name!r}, which is not among the tools")
        return named
    rounds_done = sum(1 for message in chat.since_user if message.tool_calls)
    rounds = settings.tool_rounds if orders.tool_rounds is None else orders.tool_rounds
    wanted = chat.tool_choice == "required" or (chat.tool_choice != "none" and rounds_done < rounds)
    if not offered or not wanted:
        return ()
    asked_for = [tool for tool in offered if orders.tool and tool.function.name.endswith(orders.tool)] or offered
    calls = 1 if chat.parallel_tool_calls is False else min(max(1, orders.parallel or 1), CALLS_MAX)
    return [asked_for[(rounds_done + index) % len(asked_for)] for index in range(calls)]


def _call_deltas(tools: Sequence[Tool], task: str, orders: Orders, ids: Iterator[str]) -> Iterator[CallDelta]:
    words = without_markers(task).split()
    for index, tool in enumerate(tools):
        yield CallDelta(index, next(ids), tool.function.name, "")
        schema = tool.function.parameters or {}
        ordered = {name: value for name, value in orders.arguments if name in as_schema(schema.get("properties"))}
        arguments = fill_arguments(schema, words, index) | ordered
        for part in _parts(json.dumps(arguments, ensure_ascii=False)):
            yield CallDelta(index, "", "", part)


def _text_deltas(chat: Chat, orders: Orders, settings: Settings, conversation: str) -> tuple[TextDelta, ...]:
    schema = None if chat.response_format is None else chat.response_format.schema
    if schema is not None:
        value = fill_value(schema, without_markers(chat.task).split())
        return tuple(TextDelta(part) for part in _parts(json.dumps(value, ensure_ascii=False)))
    rng = random.Random(f"{settings.seed}:{conversation}")  # noqa: S311 - filler
    length = settings.reply_tokens if orders.tokens is None else orders.tokens
    words = itertools.islice(_words(chat, rng), max(1, length))
    said = [f" {word}" if index else word for index, word in enumerate(words)]
    if not chat.logprobs or orders.no_logprobs:
        return tuple(map(TextDelta, said))
    among = [beside(token) for token in said]
    if options := options_in(chat.task):
        among[0] = chosen_among(options, chat.task, settings.seed)
    return tuple(TextDelta(likely[0][0], likely[: chat.top_logprobs] or likely[:1]) for likely in among)


def _parts(text: str) -> Iterator[str]:
    for start in range(0, len(text), JSON_CHARS):
        yield text[start : start + JSON_CHARS]


def _words(chat: Chat, rng: random.Random) -> Iterator[str]:
    """Yield the words of a text reply without end: the task, what the last tool said, filler."""
    yield from f'On "{_quote(without_markers(chat.task))}":'.split()
    results = [message.text for message in chat.since_user if message.role == "tool"]
    if results:
        yield from f'the last of {len(results)} tool results says "{_quote(results[-1])}".'.split()
    while True:
        yield from rng.choice(_FILLER).split()


def _quote(text: str) -> str:
    words = text.split()
    return " ".join(words[:QUOTE_WORDS_MAX]) + (" …" if len(words) > QUOTE_WORDS_MAX else "")


def _ids(seed: int, conversation: str, number: int) -> Iterator[str]:
    for index in itertools.count():
        yield f"call_{_digest(f'{seed}:{conversation}:{number}:{index}')}"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
