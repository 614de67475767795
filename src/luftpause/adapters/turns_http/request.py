"""A turn as a Chat Completions request: body and headers."""

from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from luftpause.core.runs.events import Origin
from luftpause.core.runs.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from luftpause.ports.engines import EngineRequest, Header
from luftpause.ports.turns import TurnRequest

APPROVE_BYTES_MAX: Final = 4096
"""Names beyond are not told: the place of a run that calls such a tool is kept as for any other."""


def build(request: TurnRequest, token: str) -> EngineRequest:
    """Return the request to send. `token` may be empty."""
    body: dict[str, object] = {
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.max_tokens > 0:
        body["max_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in request.tools
        ]
        body["parallel_tool_calls"] = request.parallel_tool_calls
    elif request.answer_schema is not None:
        shape = {"name": "answer", "schema": request.answer_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return EngineRequest(
        method=b"POST",
        path=b"/v1/chat/completions",
        headers=[
            (b"content-type", b"application/json"),
            (b"accept", b"text/event-stream"),
            (b"x-luftpause-run-id", request.run.encode()),
            (b"x-luftpause-class", request.service_class.value.encode()),
            (b"x-luftpause-caller", request.caller.encode()),
            *([] if request.parent is None else [(b"x-luftpause-parent", request.parent.encode())]),
            *_origin(request.origin),
            *_approve_tools(request.approve_tools),
            *([(b"traceparent", request.traceparent.encode())] if request.traceparent else []),
            *authorization(token),
        ],
        body=msgspec.json.encode(body),
    )


def _origin(origin: Origin | None) -> list[Header]:
    """Return the headers by which the LLM door may find the parent."""
    if origin is None:
        return []
    named = ((b"x-luftpause-parent-call", origin.tool_call or ""), (b"x-luftpause-parent-thread", origin.thread))
    return [(header, name.encode()) for header, name in named if name]


def _approve_tools(names: Sequence[str]) -> list[Header]:
    """Return the header that says whose calls a person must allow; of very many, as many as a head takes."""
    kept = ",".join(names)
    if len(kept) > APPROVE_BYTES_MAX:
        kept = kept[: APPROVE_BYTES_MAX + 1].rpartition(",")[0]
    return [(b"x-luftpause-approve-tools", kept.encode())] if kept else []


def authorization(token: str) -> list[Header]:
    """Return the header that presents a token, none for an empty one."""
    return [(b"authorization", b"Bearer " + token.encode())] if token else []


def _message(message: Message) -> dict[str, object]:
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.text}
        case UserMessage():
            return {"role": "user", "content": message.text}
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call, "content": message.text}
        case AssistantMessage():
            return _assistant(message)
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage) -> dict[str, object]:
    said: dict[str, object] = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        said["content"] = message.text or None
        said["tool_calls"] = [
            {"id": call.call, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return said
