"""Tool calls written as text, as models do whose engine does not read their calls. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from luftpause.testkit.fake_engine.conversations import ToolCall


def spoken(form: str, calls: Sequence[ToolCall]) -> str:
    """Return these calls in the way that a family of models writes them; one that is not known writes bare JSON."""
    frame, between, write = _FORMS.get(form, _FORMS["json"])
    return frame.format(between.join(write(call.function.name, call.function.arguments) for call in calls))


def _json(name: str, arguments: str) -> str:
    return f'{{"name": {json.dumps(name)}, "parameters": {arguments}}}'


def _fenced(name: str, arguments: str) -> str:
    return f"```json\n{_json(name, arguments)}\n```"


def _hermes(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n</tool_call>'


def _llama(name: str, arguments: str) -> str:
    return f"<function={name}>{arguments}</function>"


def _pythonic(name: str, arguments: str) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in json.loads(arguments).items())})"


def _mistral(name: str, arguments: str) -> str:
    return f"[TOOL_CALLS]{name}[ARGS]{arguments}"


def _deepseek(name: str, arguments: str) -> str:
    return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>"


def _qwen_coder(name: str, arguments: str) -> str:
    values = json.loads(arguments).items()
    parameters = "".join(f"<parameter={key}>\n{_plain(value)}\n</parameter>\n" for key, value in values)
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def _glm(name: str, arguments: str) -> str:
    values = json.loads(arguments).items()
    told = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{_plain(value)}</arg_value>\n" for key, value in values)
    return f"<tool_call>{name}\n{told}</tool_call>"


def _kimi(name: str, arguments: str) -> str:
    return f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_FORMS: Final[Mapping[str, tuple[str, str, Callable[[str, str], str]]]] = {
    "json": ("{}", "; ", _json),
    "fenced": ("I will look:\n\n{}", "\n", _fenced),
    "hermes": ("{}", "\n", _hermes),
    "llama": ("{}", "\n", _llama),
    "pythonic": ("[{}]", ", ", _pythonic),
    "mistral": ("{}", "", _mistral),
    "deepseek": ("<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>", "\n", _deepseek),
    "qwen-coder": ("{}", "\n", _qwen_coder),
    "glm": ("{}", "\n", _glm),
    "kimi": ("{}", "", _kimi),
}
FORMS: Final = tuple(_FORMS)
