"""Every way in which a turn can be asked for at the door, and an engine's answer to each: native, or in other words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adapters.engine_http.scripted_engine import answer, chunked
from adapters.raw_client import request
from services.dataplane.door import JSON, Door

Body = dict[str, Any]
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}}
WHOLE: Body = {
    "id": "c",
    "object": "chat.completion",
    "created": 7,
    "model": "e",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "grüße", "reasoning_content": "hm", "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": USAGE,
}
CHUNKS: Sequence[Body] = (
    {"choices": [{"index": 0, "delta": {"role": "assistant", "reasoning_content": "hm"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "grüße"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **CALL}]}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": USAGE},
)
MESSAGES: Sequence[Body] = (
    {"type": "message_start", "message": {"id": "msg", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "grüße"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
)
RESPONSES: Sequence[Body] = (
    {"type": "response.created", "response": {"status": "in_progress"}},
    {"type": "response.output_text.delta", "delta": "grüße"},
    {"type": "response.completed", "response": {"status": "completed", "output": []}},
)


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def chat_events() -> list[bytes]:
    head = {name: WHOLE[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    return [b"data: %b\n\n" % encoded({**head, **each}) for each in CHUNKS] + [b"data: [DONE]\n\n"]


def native_events(documents: Sequence[Body]) -> list[bytes]:
    return [b"event: %b\ndata: %b\n\n" % (str(each["type"]).encode(), encoded(each)) for each in documents]


@dataclass(frozen=True)
class Way:
    """A dialect and a form.

    Attributes:
        native: whether the engine speaks the dialect, so that its bytes pass.
    """

    dialect: str
    path: str
    stream: bool = True
    native: bool = False

    @property
    def name(self) -> str:
        return "-".join(
            (self.dialect, "streamed" if self.stream else "whole", "native" if self.native else "translated")
        )

    @property
    def cuts_failures(self) -> bool:
        """Whether an answer that failed after its 200 is cut off behind the error."""
        return self.path.endswith("?alt=sse")

    def asked(self, *headers: bytes) -> bytes:
        """Return a request's bytes."""
        asked = {"model": "m", "stream": self.stream, "max_tokens": 9, "input": "hi"}
        asked |= {"messages": [{"role": "user", "content": "hi"}], "contents": [{"parts": [{"text": "hi"}]}]}
        return request(b"POST", self.path.encode(), JSON, *headers, body=encoded(asked))

    def at(self, door: Door) -> None:
        """Let the door's engine speak the dialect or not."""
        door.scheduler.dialects = (self.dialect,) if self.native else ()

    def events(self) -> list[bytes]:
        """Return the events that the engine's stream is made of."""
        if self.native and self.dialect != "chat":
            return native_events(MESSAGES if self.dialect == "messages" else RESPONSES)
        return chat_events()

    def streamed(self, *, end: bool = True) -> bytes:
        """Return an engine's answer as a stream."""
        return chunked(*self.events(), end=end)

    def broken(self, *, begun: bool) -> bytes:
        """Return a stream that tells of an error, at once or in its middle, and does not end."""
        said: Body = {"error": {"type": "server_error", "code": 500, "message": "no room for this"}}
        if self.native and self.dialect != "chat":
            [event] = native_events([{"type": "error", **said}])
        else:
            event = b"data: %b\n\n" % encoded(said)
        return chunked(*(self.events()[:2] if begun else ()), event, end=False)

    def whole(self) -> bytes:
        """Return an engine's answer as one document, in Chat Completions."""
        return answer(encoded(WHOLE))


def told(way: Way, body: bytes) -> Body:
    """Return the error that an answer, or the end of a stream, tells of, in the shape of the way's dialect."""
    text = body.decode().strip()
    if text.startswith("["):
        text = json.dumps(json.loads(text)[-1])
    last = text.rpartition("\n\n")[2]
    document = json.loads(last[last.index("{") :])
    if way.dialect == "messages":
        assert document["type"] == "error"
    error: Body = document["response"]["error"] if "response" in document else document.get("error", document)
    assert error["message"]
    return error


CHAT = Way("chat", "/v1/chat/completions", native=True)
NATIVE = (
    CHAT,
    Way("messages", "/v1/messages", native=True),
    Way("responses", "/v1/responses", native=True),
)
TRANSLATED = (
    Way("messages", "/v1/messages"),
    Way("responses", "/v1/responses"),
    Way("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse"),
    Way("gemini", "/v1beta/models/m:streamGenerateContent"),
)
WHOLE_NATIVE = tuple(Way(way.dialect, way.path, stream=False, native=True) for way in NATIVE)
WHOLE_TRANSLATED = (
    Way("messages", "/v1/messages", stream=False),
    Way("responses", "/v1/responses", stream=False),
    Way("gemini", "/v1beta/models/m:generateContent", stream=False),
)
STREAMED = (*NATIVE, *TRANSLATED)
EVERY = (*STREAMED, *WHOLE_NATIVE, *WHOLE_TRANSLATED)
