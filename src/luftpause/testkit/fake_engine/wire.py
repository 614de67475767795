"""Replies as OpenAI-compatible engines put them on the wire: one body, or server-sent chunks. Pure."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from luftpause.testkit.fake_engine.replies import CallDelta, Delta, Reply, TextDelta

DONE: Final = b"data: [DONE]\n\n"
Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(ABC):
    """What every chunk of a reply repeats. `created` is in seconds since the Unix epoch."""

    id_prefix: ClassVar[str]
    kind: ClassVar[str]
    chunk_kind: ClassVar[str]

    id: str
    model: str
    created: int

    @abstractmethod
    def opening(self) -> bytes:
        """Return what opens a stream."""

    @abstractmethod
    def tokens(self, deltas: Sequence[Delta]) -> bytes:
        """Return one chunk per token."""

    @abstractmethod
    def finish(self, reason: str) -> bytes:
        """Return the chunk that says why the reply ended."""

    @abstractmethod
    def choice(self, reply: Reply) -> Json:
        """Return the only choice of a reply that was not streamed."""

    def whole(self, reply: Reply, counted: Json | None) -> bytes:
        """Return the body of a reply that was not streamed."""
        return encoded(self._head(self.kind, [self.choice(reply)]) | ({} if counted is None else {"usage": counted}))

    def usage(self, counted: Json) -> bytes:
        """Return the chunk with the usage and no choice."""
        return self._chunk([], {"usage": counted})

    def _chunk(self, choices: list[Json], more: Json) -> bytes:
        return b"data: " + encoded(self._head(self.chunk_kind, choices) | more) + b"\n\n"

    def _head(self, kind: str, choices: list[Json]) -> Json:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


class ChatEnvelope(Envelope):
    """A chat completion."""

    id_prefix = "chatcmpl-"
    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def opening(self) -> bytes:
        """Return the chunk with the role."""
        return self._choice_chunk({"role": "assistant", "content": ""}, None)

    def tokens(self, deltas: Sequence[Delta]) -> bytes:
        """Return one chunk per token."""
        return b"".join(self._choice_chunk(_delta(delta), None, _logprobs((delta,))) for delta in deltas)

    def finish(self, reason: str) -> bytes:
        """Return the chunk that says why the reply ended."""
        return self._choice_chunk({}, reason)

    def choice(self, reply: Reply) -> Json:
        """Return the message."""
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
        return {"index": 0, "message": said, "logprobs": _logprobs(reply.deltas), "finish_reason": reply.finish_reason}

    def _choice_chunk(self, delta: Json, reason: str | None, logprobs: Json | None = None) -> bytes:
        return self._chunk([{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}], {})


class TextEnvelope(Envelope):
    """A bare completion; its replies are text only."""

    id_prefix = "cmpl-"
    kind = chunk_kind = "text_completion"

    def opening(self) -> bytes:
        """Return nothing: such a stream has no opening."""
        return b""

    def tokens(self, deltas: Sequence[Delta]) -> bytes:
        """Return one chunk per token."""
        return b"".join(self._chunk([_text(delta.text, None)], {}) for delta in deltas if isinstance(delta, TextDelta))

    def finish(self, reason: str) -> bytes:
        """Return the chunk that says why the reply ended."""
        return self._chunk([_text("", reason)], {})

    def choice(self, reply: Reply) -> Json:
        """Return the text."""
        return _text(reply.message().text, reply.finish_reason)


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> Json:
    """Return a usage object."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


def error(status: int, message: str, code: str | None = None) -> bytes:
    """Return an error body."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return encoded({"error": {"message": message, "type": kind, "param": None, "code": code or status}})


def encoded(value: object) -> bytes:
    """Return compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _delta(delta: Delta) -> Json:
    match delta:
        case TextDelta(text=text):
            return {"content": text}
        case CallDelta(index, "", _, arguments):
            return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}
        case CallDelta(index, call_id, name, arguments):
            function = {"name": name, "arguments": arguments}
            return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def _logprobs(deltas: Sequence[Delta]) -> Json | None:
    """Return the logprobs of tokens of text; None where they were not asked for."""
    told = [delta for delta in deltas if isinstance(delta, TextDelta) and delta.alternatives]
    content = [
        {**_token(delta.alternatives[0]), "top_logprobs": [_token(each) for each in delta.alternatives]}
        for delta in told
    ]
    return {"content": content, "refusal": None} if content else None


def _token(alternative: tuple[str, float]) -> Json:
    text, logprob = alternative
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "surrogatepass"))}


def _text(text: str, reason: str | None) -> Json:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
