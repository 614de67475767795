"""One streamed chat turn at the LLM door: send it, time its first token, put its pieces together.

Knows no runs: what a turn is part of stands in its headers.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from luftpause.adapters.turns_http.sse import EventReader, EventTooLongError
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import (
    EngineBrokeError,
    EngineRequest,
    Engines,
    EngineUnreachableError,
    Exchange,
    Header,
)
from luftpause.testkit.load.runs import RunFailedError, TurnSeen

ERROR_BYTES_MAX = 65_536
DETAIL_CHARS_MAX = 300


class _FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(msgspec.Struct):
    index: int
    id: str | None = None
    function: _FunctionDelta | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None


class _CachedDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _CachedDetails | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: object = None


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


@dataclass(frozen=True, slots=True)
class Door:
    """Where turns go, by which adapter, and the longest a turn may take, seconds."""

    engines: Engines
    endpoint: Endpoint
    turn_timeout_s: float


@dataclass(slots=True)
class Call:
    """A tool call put together from its pieces."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def wire(self) -> dict[str, object]:
        """Return the call as an assistant message carries it."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(slots=True)
class Answer:
    """What a turn brought: text, tool calls by index, usage, and when its first token came, seconds."""

    text: str = ""
    calls: dict[int, Call] = field(default_factory=dict)
    usage: _Usage = field(default_factory=_Usage)
    first_token_s: float | None = None

    def message(self) -> dict[str, object]:
        """Return the assistant message to append."""
        message: dict[str, object] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [call.wire() for call in self.calls.values()]
        return message

    def seen(self) -> TurnSeen:
        """Return the figures of the finished turn."""
        details = self.usage.prompt_tokens_details
        assert self.first_token_s is not None
        return TurnSeen(
            first_token_s=self.first_token_s,
            prompt_tokens=self.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens,
            cached_tokens=(details.cached_tokens if details else None) or 0,
        )

    def take(self, chunk: _Chunk, elapsed_s: float) -> None:
        """Add a chunk that came `elapsed_s` after the turn was sent."""
        if chunk.usage is not None:
            self.usage = chunk.usage
        for choice in chunk.choices:
            delta = choice.delta or _Delta()
            if self.first_token_s is None and (delta.content or delta.tool_calls):
                self.first_token_s = elapsed_s
            self.text += delta.content or ""
            for piece in delta.tool_calls or ():
                call = self.calls.setdefault(piece.index, Call())
                call.id = piece.id or call.id
                if piece.function is not None:
                    call.name = piece.function.name or call.name
                    call.arguments += piece.function.arguments or ""


async def first_model(door: Door) -> str:
    """Return the first model that the door names.

    Raises:
        RunFailedError: the door does not answer or has no model.
    """
    request = EngineRequest(method=b"GET", path=b"/v1/models", headers=(), body=b"")
    exchange = await _sent(door, request)
    try:
        body = await _checked_body(exchange)
        models = msgspec.json.decode(body, type=_Models).data
    except msgspec.DecodeError as invalid:
        raise RunFailedError("bad_reply", f"/v1/models: {invalid}") from invalid
    finally:
        exchange.close()
    if not models:
        raise RunFailedError("no_model", "/v1/models names no model")
    return models[0].id


async def take_turn(door: Door, headers: Sequence[Header], body: dict[str, object]) -> Answer:
    """Send one streamed turn and return its whole answer.

    Raises:
        RunFailedError: anything but a complete answer; `kind` says which.
    """
    request = EngineRequest(
        method=b"POST",
        path=b"/v1/chat/completions",
        headers=((b"content-type", b"application/json"), *headers),
        body=msgspec.json.encode(body),
    )
    try:
        async with asyncio.timeout(door.turn_timeout_s):
            return await _turn(door, request)
    except TimeoutError as late:
        raise RunFailedError("timeout", f"no complete answer within {door.turn_timeout_s:g} s") from late


async def _turn(door: Door, request: EngineRequest) -> Answer:
    loop = asyncio.get_running_loop()
    sent_at = loop.time()
    exchange = await _sent(door, request)
    answer, reader, complete = Answer(), EventReader(), False
    try:
        if exchange.status != 200:
            await _checked_body(exchange)
        while data := await _read(exchange):
            for event in reader.feed(data):
                if event == b"[DONE]":
                    complete = True
                    continue
                answer.take(_chunk(event), loop.time() - sent_at)
    except (EventTooLongError, msgspec.DecodeError) as invalid:
        raise RunFailedError("bad_reply", str(invalid)) from invalid
    finally:
        exchange.close()
    if not complete:
        raise RunFailedError("cut", "the answer ended without [DONE]")
    if answer.first_token_s is None:
        raise RunFailedError("empty_reply", "an answer without text and without tool calls")
    return answer


def _chunk(event: bytes) -> _Chunk:
    chunk = msgspec.json.decode(event, type=_Chunk)
    if chunk.error is not None:
        raise RunFailedError("error_event", _short(event))
    return chunk


async def _sent(door: Door, request: EngineRequest) -> Exchange:
    try:
        return await door.engines.send(door.endpoint, request)
    except EngineUnreachableError as unreachable:
        raise RunFailedError("unreachable", f"{door.endpoint.url}: {unreachable}") from unreachable
    except EngineBrokeError as broke:
        raise RunFailedError("broke", str(broke)) from broke


async def _read(exchange: Exchange) -> bytes:
    try:
        return await exchange.read()
    except EngineBrokeError as broke:
        raise RunFailedError("cut", str(broke)) from broke


async def _checked_body(exchange: Exchange) -> bytes:
    """Return a whole small body of status 200; any other status is a failure that quotes it."""
    body = b""
    while len(body) <= ERROR_BYTES_MAX and (data := await _read(exchange)):
        body += data
    if exchange.status != 200:
        raise RunFailedError(f"http_{exchange.status}", _short(body))
    return body


def _short(body: bytes) -> str:
    return " ".join(body[: 4 * DETAIL_CHARS_MAX].decode("utf-8", "replace").split())[:DETAIL_CHARS_MAX]
