"""Gemini requests for the tests of this folder, and what becomes of them and of their answers."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from luftpause.core.dialects.gemini.dialect import Gemini

EVENTS = Gemini(events=True)
ARRAY = Gemini(events=False)
WHOLE_PATH = "/v1beta/models/m:generateContent"
STREAM_PATH = "/v1beta/models/m:streamGenerateContent"
GOLDEN = Path(__file__).parent / "golden"
ENGINES = Path(__file__).parent.parent / "anthropic_messages" / "golden"
"""Has answers of a real llama-server."""

Object = dict[str, Any]


def written(*contents: object, **members: object) -> bytes:
    """Return a request's body."""
    return json.dumps({"contents": contents or [user(text("hi"))], **members}).encode()


def said(*contents: object, **members: object) -> Object:
    """Return what the request becomes in Chat Completions."""
    return cast("Object", json.loads(EVENTS.translate(WHOLE_PATH, written(*contents, **members)).request))


def messages_of(*contents: object, **members: object) -> list[Object]:
    """Return the messages that it becomes."""
    return cast("list[Object]", said(*contents, **members)["messages"])


def user(*parts: object) -> Object:
    """Return a message of the user."""
    return {"role": "user", "parts": list(parts)}


def model(*parts: object) -> Object:
    """Return a message of the model."""
    return {"role": "model", "parts": list(parts)}


def text(value: str) -> Object:
    """Return a text."""
    return {"text": value}


def call(name: str, call_id: str = "", **args: object) -> Object:
    """Return a call."""
    return {"functionCall": {"name": name, "args": args, **({"id": call_id} if call_id else {})}}


def result(name: str, response: object, call_id: str = "", **members: object) -> Object:
    """Return a result."""
    said = {"name": name, "response": response, **({"id": call_id} if call_id else {}), **members}
    return {"functionResponse": said}


def chunk(delta: Object | None = None, finish: str | None = None, **members: object) -> bytes:
    """Return an event of a Chat Completions stream."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return b"data: %b\n\n" % json.dumps({"id": "c1", "model": "e", "choices": choices, **members}).encode()


def tool_call(index: int, *, call_id: str | None = None, name: str | None = None, arguments: str = "") -> bytes:
    """Return the event of one fragment of a call."""
    fragment: Object = {"index": index, "function": {"arguments": arguments, **({"name": name} if name else {})}}
    return chunk({"tool_calls": [fragment | ({"id": call_id} if call_id else {})]})


def translated(
    pieces: Iterable[bytes], request: bytes = b"", *, dialect: Gemini = EVENTS, stream: bool = True
) -> bytes:
    """Return what a client gets when the engine's answer comes in these pieces."""
    way = dialect.translate(STREAM_PATH if stream else WHOLE_PATH, request or written())
    return b"".join([*[way.feed(piece) for piece in pieces], way.end()])
