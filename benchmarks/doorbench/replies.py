"""What the raw engine answers, byte for byte, computed once, and the requests that ask for it.

A request names its reply in its body, as `bench:REPLY:ID;`, because a body reaches the engine through every peer while
headers and paths need not. Nothing here does I/O.
"""

import json
import re
from dataclasses import dataclass

MODEL = "bench"
MARKER = re.compile(rb"bench:([a-z]+):([0-9A-Za-z-]*);")
MANY_CHUNKS = 64
CHUNKS_A_WRITE = 8
FLOOD_WRITE = 65536
LAST_CHUNK = b"0\r\n\r\n"
_ID = "chatcmpl-0123456789abcdef0123456789abcdef"
_USAGE = {"prompt_tokens": 512, "completion_tokens": 64, "total_tokens": 576}


def chunked(data: bytes) -> bytes:
    """Frame bytes as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(choices: list[object], usage: dict[str, int] | None = None) -> bytes:
    record = {
        "id": _ID,
        "object": "chat.completion.chunk",
        "created": 1760000000,
        "model": MODEL,
        "choices": choices,
        "usage": usage,
    }
    return b"data: " + json.dumps(record, separators=(",", ":")).encode() + b"\n\n"


def _delta(content: str, finish: str | None = None) -> list[object]:
    return [{"index": 0, "delta": {"content": content}, "logprobs": None, "finish_reason": finish}]


def with_length(body: bytes, content_type: str = "application/json", status: str = "200 OK") -> bytes:
    """Return a whole response with a Content-Length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
TOKEN_EVENT = _event(_delta(" token-text"))
TOKEN_CHUNK = chunked(TOKEN_EVENT)
END_EVENTS = _event(_delta(" end", "stop")) + _event([], _USAGE) + b"data: [DONE]\n\n"

ONE = STREAM_HEAD + chunked(TOKEN_EVENT + END_EVENTS) + LAST_CHUNK
"""A stream of one chunk, in one write."""

MANY = (
    STREAM_HEAD + TOKEN_CHUNK * CHUNKS_A_WRITE,
    *[TOKEN_CHUNK * CHUNKS_A_WRITE] * (MANY_CHUNKS // CHUNKS_A_WRITE - 2),
    TOKEN_CHUNK * (CHUNKS_A_WRITE - 1) + chunked(END_EVENTS) + LAST_CHUNK,
)
"""A stream of 64 chunks, eight a write."""

JSON = with_length(
    json.dumps(
        {
            "id": _ID,
            "object": "chat.completion",
            "created": 1760000000,
            "model": MODEL,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "seven ch" * 212},
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": _USAGE,
        },
        separators=(",", ":"),
    ).encode()
)
"""A complete answer of about 2 KiB."""

FLOOD_CHUNK = chunked(b"data: " + b"x" * (FLOOD_WRITE - 8) + b"\n\n")
HEALTH = with_length(b'{"status":"ok"}')
MODELS = with_length(
    json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "bench"}]}).encode()
)
METRICS = with_length(
    b"".join(
        b'# TYPE vllm:%b gauge\nvllm:%b{engine="0",model_name="bench"} 0.0\n' % (name, name)
        for name in (b"num_requests_running", b"num_requests_waiting", b"kv_cache_usage_perc")
    ),
    "text/plain; version=0.0.4; charset=utf-8",
)
NOT_FOUND = with_length(b'{"error":{"message":"no such path","type":"not_found_error"}}', status="404 Not Found")


def request_body(reply: str, *, size: int, reply_id: str = "", stream: bool = True) -> bytes:
    """Return a chat completion request that asks the raw engine for `reply`.

    Args:
        reply: one, many, json, echo, paced, idle, mute or flood.
        size: bytes of the whole body; a smaller body than the frame needs is not cut.
        reply_id: what the engine files the exchange under.
        stream: the request's own `stream` flag.
    """
    record: dict[str, object] = {
        "model": MODEL,
        "stream": stream,
        "max_tokens": 256,
        "temperature": 0.7,
        "messages": [
            {"role": "system", "content": f"bench:{reply}:{reply_id};"},
            {"role": "user", "content": ""},
        ],
    }
    if stream:
        record["stream_options"] = {"include_usage": True}
    frame = json.dumps(record, separators=(",", ":"))
    line = 'a line of a tool result with \\"quotes\\" and numbers 12345\\n'
    room = max(size - len(frame), 0)
    filler = line * (room // len(line)) + "p" * (room % len(line))
    return frame.replace('"content":""', f'"content":"{filler}"').encode()


@dataclass(frozen=True, slots=True)
class Request:
    """A request cut where its run id goes: the same bytes for every peer."""

    before_run: bytes
    after_run: bytes

    def for_run(self, run: int) -> bytes:
        """Return the bytes of the request for one run."""
        return b"%b%012d%b" % (self.before_run, run, self.after_run)


def chat_request(body: bytes) -> Request:
    """Wrap a body in the request head that an SDK sends, with luftpause's headers."""
    before = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
        b"Content-Type: application/json\r\nUser-Agent: OpenAI/Python 2.8.0\r\n"
        b"X-Stainless-Lang: python\r\nX-Stainless-Package-Version: 2.8.0\r\nX-Stainless-OS: Linux\r\n"
        b"X-Stainless-Arch: x64\r\nX-Stainless-Runtime: CPython\r\nX-Stainless-Runtime-Version: 3.13.1\r\n"
        b"X-Stainless-Async: async:asyncio\r\nX-Stainless-Retry-Count: 0\r\nX-Stainless-Read-Timeout: 600\r\n"
        b"X-Luftpause-Class: interactive\r\nX-Luftpause-Caller: bench\r\nX-Luftpause-Run-Id: bench-"
    )
    return Request(before, b"\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
