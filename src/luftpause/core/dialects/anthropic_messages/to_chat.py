"""A Messages request as a Chat Completions request."""

from collections.abc import Sequence
from typing import Final

from luftpause.core.dialects.anthropic_messages.conversation import chat_messages
from luftpause.core.dialects.anthropic_messages.request import NULL, Request, unspeakable
from luftpause.core.dialects.anthropic_messages.tools import choice, functions, offered_tools
from luftpause.core.dialects.numbers import whole, whole_raw
from luftpause.core.dialects.request import BadRequestError

_EFFORTS: Final = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}


def chat_request(request: Request) -> dict[str, object]:
    """Return the members of the Chat Completions request.

    Raises:
        BadRequestError: it asks for something that cannot be said there; the message names it.
    """
    if request.mcp_servers:
        raise unspeakable("the request names MCP servers that Anthropic is to call (`mcp_servers`)")
    if request.container != NULL:
        raise unspeakable("the request asks for a container (`container`)")
    messages = chat_messages(request.system, request.messages)
    if not messages:
        raise BadRequestError("the request says nothing: `messages` is empty")
    said: dict[str, object] = {"model": request.model, "messages": messages}
    if request.stream:
        said |= {"stream": True, "stream_options": {"include_usage": True}}
    _add_tools(said, request)
    _add_sampling(said, request)
    _add_thinking(said, request)
    _add_format(said, request)
    if _is_prefilled(messages):
        said |= {"continue_final_message": True, "add_generation_prompt": False}
    return said


def _add_tools(said: dict[str, object], request: Request) -> None:
    offered = offered_tools(request.tools or (), request.messages)
    chosen = request.tool_choice
    if offered:
        said["tools"] = functions(offered)
    if chosen is None or not (offered or chosen.type == "tool"):
        return
    said["tool_choice"] = choice(chosen, offered)
    if chosen.disable_parallel_tool_use:
        said["parallel_tool_calls"] = False


def _add_sampling(said: dict[str, object], request: Request) -> None:
    if request.max_tokens == 0:
        raise unspeakable("the request only warms a cache (`max_tokens` is 0)")
    if request.max_tokens is not None:
        said["max_tokens"] = _tokens(request.max_tokens)
    if request.stop_sequences:
        said["stop"] = request.stop_sequences
    given = {"temperature": request.temperature, "top_p": request.top_p, "top_k": whole_raw(request.top_k)}
    said |= {name: value for name, value in given.items() if value != NULL}


def _tokens(limit: float) -> int:
    found = whole(limit)
    if not isinstance(found, int):
        raise BadRequestError(f"the request body does not fit: expected `int`, got {limit} - at `$.max_tokens`")
    return found


def _add_thinking(said: dict[str, object], request: Request) -> None:
    """Say whether and how much to think. A budget in tokens has no word there; absent, the engine's own rule holds."""
    if request.thinking is not None and request.thinking.type == "disabled":
        said["chat_template_kwargs"] = {"enable_thinking": False}
    elif request.output_config is not None and request.output_config.effort in _EFFORTS:
        said["reasoning_effort"] = _EFFORTS[request.output_config.effort]


def _add_format(said: dict[str, object], request: Request) -> None:
    wanted = request.output_format if request.output_config is None else request.output_config.format
    if wanted is None:
        return
    if wanted.type != "json_schema" or wanted.schema == NULL:
        raise unspeakable(f"the request wants its answer in the format {wanted.type!r}")
    schema = {"name": "answer", "schema": wanted.schema, "strict": True}
    said["response_format"] = {"type": "json_schema", "json_schema": schema}


def _is_prefilled(messages: Sequence[dict[str, object]]) -> bool:
    """Say whether the last message is the beginning of the answer: the engine is to go on from there."""
    last = messages[-1]
    return last["role"] == "assistant" and bool(last["content"]) and "tool_calls" not in last
