"""A Gemini request as a Chat Completions request."""

from typing import Final

from luftpause.core.dialects.gemini.conversation import chat_messages
from luftpause.core.dialects.gemini.paths import Called
from luftpause.core.dialects.gemini.request import GenerationConfig, Request, unspeakable
from luftpause.core.dialects.gemini.schemas import json_schema
from luftpause.core.dialects.gemini.tools import chosen, declared, functions
from luftpause.core.dialects.request import BadRequestError

_EFFORTS: Final = {"MINIMAL": "low", "LOW": "low", "MEDIUM": "medium", "HIGH": "high", "XHIGH": "high"}
_JSON: Final = "application/json"
_PLAIN: Final = (None, "", "text/plain")


def chat_request(called: Called, request: Request) -> dict[str, object]:
    """Return the members of the Chat Completions request.

    Raises:
        BadRequestError: it asks for something that cannot be said there; the message names it.
    """
    if request.cached_content:
        raise BadRequestError("`cachedContent` cannot be used here: nothing is kept, send the whole conversation")
    messages = chat_messages(request.system_instruction, request.contents)
    if not request.contents:
        raise BadRequestError("the request says nothing: `contents` is empty")
    said: dict[str, object] = {"model": called.model, "messages": messages}
    if called.stream:
        said |= {"stream": True, "stream_options": {"include_usage": True}}
    _add_tools(said, request)
    if request.generation_config is not None:
        _refuse(request.generation_config)
        _add_sampling(said, request.generation_config)
        _add_thinking(said, request.generation_config)
        _add_format(said, request.generation_config)
    return said


def _add_tools(said: dict[str, object], request: Request) -> None:
    offered = declared(request.tools or ())
    if not offered:
        return
    config = None if request.tool_config is None else request.tool_config.function_calling_config
    if config is None:
        said["tools"] = functions(offered)
        return
    choice, offered_then = chosen(config, offered)
    said |= {"tools": functions(offered_then), "tool_choice": choice}


def _refuse(config: GenerationConfig) -> None:
    if (config.candidate_count or 1) > 1:
        raise BadRequestError(f"`candidateCount` is {config.candidate_count}: one answer is given to each request")
    if config.response_logprobs or config.logprobs:
        raise unspeakable("the request wants log probabilities (`responseLogprobs`)")
    for modality in config.response_modalities or ():
        if modality.upper() not in ("TEXT", "MODALITY_UNSPECIFIED"):
            raise unspeakable(f"the request wants an answer of the modality {modality!r}")


def _add_sampling(said: dict[str, object], config: GenerationConfig) -> None:
    given = {
        "max_tokens": config.max_output_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": None if config.top_k is None else int(config.top_k),
        "seed": config.seed,
        "presence_penalty": config.presence_penalty,
        "frequency_penalty": config.frequency_penalty,
        "stop": config.stop_sequences or None,
    }
    said |= {name: value for name, value in given.items() if value is not None}


def _add_thinking(said: dict[str, object], config: GenerationConfig) -> None:
    """Say whether and how much to think. A budget in tokens has no word there; absent, the engine's own rule holds."""
    thinking = config.thinking_config
    if thinking is None:
        return
    if thinking.thinking_budget == 0:
        said["chat_template_kwargs"] = {"enable_thinking": False}
    elif thinking.thinking_level and thinking.thinking_level.upper() in _EFFORTS:
        said["reasoning_effort"] = _EFFORTS[thinking.thinking_level.upper()]


def _add_format(said: dict[str, object], config: GenerationConfig) -> None:
    schema = config.response_json_schema
    if config.response_schema is not None:
        schema = json_schema(config.response_schema)
    if config.response_mime_type not in (*_PLAIN, _JSON):
        raise unspeakable(f"the request wants an answer of the type {config.response_mime_type!r}")
    if schema is not None:
        wanted = {"name": "answer", "schema": schema, "strict": True}
        said["response_format"] = {"type": "json_schema", "json_schema": wanted}
    elif config.response_mime_type == _JSON:
        said["response_format"] = {"type": "json_object"}
