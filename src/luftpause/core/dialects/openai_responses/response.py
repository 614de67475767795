"""The response object, and how an event of a stream is written."""

from collections.abc import Mapping
from typing import Final

import msgspec

from luftpause.core.dialects.chat_documents import Used

ECHOED: Final = (
    "max_output_tokens",
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "temperature",
    "text",
    "tool_choice",
    "top_p",
    "truncation",
    "user",
)
"""What a response repeats of its request. Instructions and tools are left out: they are long, the client has them."""

_UNASKED: Final[Mapping[str, object]] = {
    "id": "",
    "object": "response",
    "created_at": 0,
    "model": "",
    "error": None,
    "incomplete_details": None,
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "output": [],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "usage": None,
}


def response_object(asked: Mapping[str, object], **fields: object) -> dict[str, object]:
    """Return a response: what stands in every one, then what was asked for, then the fields of this one."""
    return {**_UNASKED, **asked, **fields}


def usage_object(used: Used) -> dict[str, object]:
    """Return the tokens of a turn as Responses counts them: there, what the engine does not tell of is 0."""
    usage = used.usage
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens or 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def written_event(kind: str, number: int, fields: Mapping[str, object]) -> bytes:
    """Return an event of a stream; `number` counts the events of the response from 0."""
    document = _ENCODER.encode({"type": kind, "sequence_number": number, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), document)


_ENCODER: Final = msgspec.json.Encoder()
