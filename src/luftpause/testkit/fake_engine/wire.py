"""Replies as OpenAI-compatible engines put them on the wire: one body, or server-sent chunks. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from luftpause.testkit.fake_engine.replies import CallDelta, Delta, Reply, TextDelta

DONE: Final = b"data: [DONE]\n\n"
Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What every chunk of a reply repeats. `created` is in seconds since the Unix epoch."""

    id: str
    model: str
    created: int


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> Json:
    """Return a usage object."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


def completion(envelope: Envelope, reply: Reply, counted: Json) -> bytes:
    """Return the body of a reply that was not streamed."""
    message = reply.message()
    said: Json = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
    return encoded(
        {
            "id": envelope.id,
            "object": "chat.completion",
            "created": envelope.created,
            "model": envelope.model,
            "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reply.finish_reason}],
            "usage": counted,
        }
    )


def role_chunk(envelope: Envelope) -> bytes:
    """Return the chunk that opens a stream."""
    return _choice_chunk(envelope, {"role": "assistant", "content": ""}, None)


def delta_chunks(envelope: Envelope, deltas: Sequence[Delta]) -> bytes:
    """Return one chunk per token."""
    return b"".join(_choice_chunk(envelope, _delta(delta), None) for delta in deltas)


def finish_chunk(envelope: Envelope, reason: str) -> bytes:
    """Return the chunk that says why the reply ended."""
    return _choice_chunk(envelope, {}, reason)


def usage_chunk(envelope: Envelope, counted: Json) -> bytes:
    """Return the chunk with the usage and no choice."""
    return _chunk(envelope, [], {"usage": counted})


def error(status: int, message: str, code: str | None = None) -> bytes:
    """Return an error body."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return encoded({"error": {"message": message, "type": kind, "param": None, "code": code or status}})


def encoded(value: object) -> bytes:
    """Return compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _delta(delta: Delta) -> Json:
    match delta:
        case TextDelta(text):
            return {"content": text}
        case CallDelta(index, "", _, arguments):
            return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}
        case CallDelta(index, call_id, name, arguments):
            function = {"name": name, "arguments": arguments}
            return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def _choice_chunk(envelope: Envelope, delta: Json, reason: str | None) -> bytes:
    return _chunk(envelope, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}], {})


def _chunk(envelope: Envelope, choices: list[Json], more: Json) -> bytes:
    head: Json = {
        "id": envelope.id,
        "object": "chat.completion.chunk",
        "created": envelope.created,
        "model": envelope.model,
        "choices": choices,
    }
    return b"data: " + encoded(head | more) + b"\n\n"
