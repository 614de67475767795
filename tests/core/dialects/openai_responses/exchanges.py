"""Responses requests and Chat Completions answers for the tests of this folder, and what becomes of them."""

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import httpx2
from openai import OpenAI

from luftpause.core.dialects.openai_responses.dialect import OpenAiResponses

RESPONSES = OpenAiResponses()
PATH = "/v1/responses"
GOLDEN = Path(__file__).parent / "golden"
LAST = ("response.completed", "response.incomplete", "response.failed")

Object = dict[str, object]


def written(*items: object, **members: object) -> bytes:
    """Return a request's body."""
    return json.dumps({"model": "m", "input": items or "hi", **members}).encode()


def said(*items: object, **members: object) -> Object:
    """Return what the request becomes in Chat Completions."""
    return cast("Object", json.loads(RESPONSES.translate(PATH, written(*items, **members)).request))


def messages_of(*items: object, **members: object) -> list[Object]:
    """Return the messages that it becomes."""
    return cast("list[Object]", said(*items, **members)["messages"])


def message(role: str, *parts: object) -> Object:
    """Return a message of texts and of parts."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "message",
        "role": role,
        "content": [{"type": kind, "text": part} if isinstance(part, str) else part for part in parts],
    }


def call(call_id: str, name: str = "look", arguments: str = "{}", **members: object) -> Object:
    """Return a function call."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **members}


def output(call_id: str, value: object) -> Object:
    """Return a function call's output."""
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def chunk(delta: Object | None = None, finish: str | None = None, **members: object) -> bytes:
    """Return an event of a Chat Completions stream."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    document = {"id": "chatcmpl-A1", "created": 1700000000, "model": "e", "choices": choices, **members}
    return b"data: %b\n\n" % json.dumps(document).encode()


def tool_call(index: int, *, call_id: str | None = None, name: str | None = None, arguments: str = "") -> bytes:
    """Return the event of one fragment of a call."""
    said: Object = {"index": index, "function": {"arguments": arguments, **({"name": name} if name else {})}}
    return chunk({"tool_calls": [said | ({"id": call_id} if call_id else {})]})


def answered(*events: bytes, request: bytes = b"") -> list[Object]:
    """Return the events that a client gets for an engine's stream."""
    return events_of(translated(request or written(stream=True), [b"".join(events)]))


def translated(request: bytes, pieces: Iterable[bytes]) -> bytes:
    """Return what a client gets when the engine's answer comes in these pieces."""
    translation = RESPONSES.translate(PATH, request)
    return b"".join([*[translation.feed(piece) for piece in pieces], translation.end()])


def events_of(stream: bytes) -> list[Object]:
    """Return the documents of a stream. Each event must consist of a name and one line, and the names be equal."""
    assert not stream or stream.endswith(b"\n\n")
    documents: list[Object] = []
    for event in stream.split(b"\n\n")[:-1]:
        name, data = event.split(b"\n")
        documents.append(json.loads(data.removeprefix(b"data: ")))
        assert name == b"event: %b" % str(documents[-1]["type"]).encode()
    return documents


def response_of(events: Sequence[Object]) -> Object:
    """Return the response of the last event."""
    assert events[-1]["type"] in LAST
    return cast("Object", events[-1]["response"])


def output_of(events: Sequence[Object]) -> list[Object]:
    """Return the items of the last event's response."""
    return cast("list[Object]", response_of(events)["output"])


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    """Return a stream in pieces."""
    ends = sorted({0, *places, len(stream)})
    return [stream[start:end] for start, end in itertools.pairwise(ends)]


def sdk(body: bytes, content_type: str = "text/event-stream", status: int = 200) -> OpenAI:
    """Return a client of the real package that gets this answer to whatever it asks."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"content-type": content_type}, content=body, request=request)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return OpenAI(base_url="http://engine.test/v1", api_key="unused", max_retries=0, http_client=http)
