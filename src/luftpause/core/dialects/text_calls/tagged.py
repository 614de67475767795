"""Calls in tags: what stands behind a marker that says that a call begins.

| form | begins with | of |
| --- | --- | --- |
| hermes | `<tool_call>{…}</tool_call>` | Hermes, Qwen, and many that were trained on their data |
| qwen-coder | `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>` | Qwen3-Coder |
| glm | `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>` | GLM-4.5 and later |
| llama | `<function=NAME>{…}</function>`, and JSON behind `<|python_tag|>` | Llama 3 |
| pythonic | `<|python_tag|>NAME.call(key=VALUE)`, `[NAME(key=VALUE)]` | Llama 3.2 and 4 |
| mistral | `[TOOL_CALLS][{…}]`, `[TOOL_CALLS]NAME[ARGS]{…}` | Mistral |
| deepseek | `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>` | DeepSeek V2.5 to V3.1 |
| kimi | `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>` | Kimi K2 |
| invoke | `<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>` | MiniMax, DeepSeek V3.2 |
| harmony | `<|channel|>commentary to=functions.NAME<|message|>{…}<|call|>` | gpt-oss |
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from luftpause.core.dialects.text_calls.pythonic import literal, pythonic_calls
from luftpause.core.dialects.text_calls.readings import (
    NAME,
    Reading,
    TextCall,
    after_space,
    as_json,
    cut_call,
    is_object,
    mended,
    value_at,
)
from luftpause.core.dialects.text_calls.shapes import calls_in

_PIPE: Final = "[|｜]"
_LOW: Final = "[_▁]"
"""DeepSeek's own bars and lines, and what they become when somebody tidies them."""

MARKERS: Final[Mapping[str, str]] = {
    "hermes": r"<(?:(?:tool_call|function_call)>|\|tool_call\|>)",
    "function": rf"<function=(?:{NAME})>",
    "python": r"<\|python_tag\|>",
    "mistral": r"\[TOOL_CALLS\]",
    "special": rf"<{_PIPE}tool{_LOW}call{_LOW}begin{_PIPE}>",
    "invoke": rf'<(?:{_PIPE}DSML{_PIPE})?invoke name="(?:{NAME})">',
    "harmony": rf"<\|channel\|>commentary to=(?:{NAME})",
}
"""How the beginning of a call looks, by the reader that knows how it goes on; the first character is a fixed one."""

_TAG_END: Final = re.compile(r"</(?:tool_call|function_call)>|<\|/tool_call\|>")
_FUNCTION: Final = re.compile(rf"<function=({NAME})>")
_FUNCTION_END: Final = re.compile(r"\s*</function>")
_PARAMETER: Final = re.compile(r"\s*<parameter=([^<>\n]{1,128})>")
_PARAMETER_END: Final = re.compile(r"</parameter>|(?=<parameter=)|(?=</function>)|\Z")
_ARGUMENT_KEY: Final = re.compile(r"\s*<arg_key>([^<>\n]{1,128})</arg_key>\s*<arg_value>")
_GLM_NAME: Final = re.compile(rf"\s*({NAME})\s*(?=<arg_key>|</tool_call>)")
_MISTRAL_NAME: Final = re.compile(rf"\s*({NAME})\s*(?:\[CALL_ID\]\s*[\w-]{{1,64}})?\s*(?:\[ARGS\])?\s*(?=\{{)")
_SPECIAL_NAME: Final = re.compile(
    rf"\s*(?:function\s*<{_PIPE}tool{_LOW}sep{_PIPE}>\s*({NAME})\s*```(?:json)?"
    rf"|(?:functions\.)?({NAME}):\d{{1,6}}\s*<\|tool_call_argument_begin\|>"
    rf"|({NAME})\s*<{_PIPE}tool{_LOW}sep{_PIPE}>)"
)
_SPECIAL_END: Final = re.compile(rf"\s*(?:```)?\s*(?:<{_PIPE}tool{_LOW}call{_LOW}end{_PIPE}>)?")
_INVOKE: Final = re.compile(rf'<(?:{_PIPE}DSML{_PIPE})?invoke name="({NAME})">')
_INVOKE_PARAMETER: Final = re.compile(
    rf'\s*<(?:{_PIPE}DSML{_PIPE})?parameter name="([^"<>\n]{{1,128}})"(?: string="(true|false)")?>'
)
_INVOKE_PARAMETER_END: Final = re.compile(rf"</(?:{_PIPE}DSML{_PIPE})?parameter>")
_INVOKE_END: Final = re.compile(rf"\s*</(?:{_PIPE}DSML{_PIPE})?invoke>")
_HARMONY: Final = re.compile(rf"<\|channel\|>commentary to=(?:functions\.)?({NAME})[^<]{{0,40}}")
_HARMONY_BODY: Final = re.compile(r"\s*(?:<\|constrain\|>\s*json)?\s*<\|message\|>")
_HARMONY_END: Final = re.compile(r"\s*<\|call\|>")


def reading_at(text: str, start: int, reader: str, *, cut: bool) -> Reading | None:
    """Return the calls behind a marker that begins at `start`, None if what stands there is none.

    `reader` is the marker's name in MARKERS. `cut`: the reply ended at its longest, perhaps within a call.
    """
    return _READERS[reader](text, start, cut)


def _hermes(text: str, start: int, cut: bool) -> Reading | None:
    body = text.index(">", start) + 1
    calls, end = _listed(text, body, "hermes")
    if not calls:
        opened = after_space(text, body)
        inner = _function(text, opened, cut) if _FUNCTION.match(text, opened) else _glm(text, body)
        if inner is not None:
            calls, end = inner
    if not calls:
        tail = _TAG_END.search(text, body)
        end = len(text) if tail is None else tail.start()
        within = text[body:end].strip()
        value = mended(within) if tail is not None or not cut else None
        value = literal(within) if value is None else value
        calls = () if value is None else calls_in(value, "hermes")
        broken = cut_call(text, body, "hermes") if cut and not calls and tail is None else None
        calls = calls if broken is None else (broken,)
    return (calls, _past(_TAG_END, text, after_space(text, end))) if calls else None


def _listed(text: str, start: int, form: str) -> Reading:
    """Return calls in JSON that follow each other with nothing but white space, commas and semicolons between."""
    calls: list[TextCall] = []
    end = at = start
    while (found := value_at(text, at)) is not None:
        more = calls_in(found[0], form)
        if not more:
            break
        calls += more
        end = found[1]
        at = after_space(text, end)
        at += 1 if text[at : at + 1] in (";", ",") else 0
    return tuple(calls), end


def _function(text: str, start: int, cut: bool) -> Reading | None:
    head = _FUNCTION.match(text, start)
    if head is None:
        return None
    found = value_at(text, head.end())
    if found is not None and is_object(found[0]):
        return (_call(head[1], found[0], "llama"),), _past(_FUNCTION_END, text, found[1])
    arguments: dict[str, object] = {}
    at = head.end()
    while (parameter := _PARAMETER.match(text, at)) is not None:
        end = _PARAMETER_END.search(text, parameter.end())
        if end is None:
            return None
        if cut and not end[0] and end.end() == len(text):
            return (_cut(head[1], text[head.end() :], "qwen-coder"),), len(text)
        arguments[parameter[1].strip()] = _trimmed(text[parameter.end() : end.start()])
        at = end.end()
    closed = _FUNCTION_END.match(text, at)
    if closed is not None or arguments:
        return (_call(head[1], arguments, "qwen-coder"),), at if closed is None else closed.end()
    return ((_cut(head[1], text[at:], "llama"),), len(text)) if cut else None


def _glm(text: str, start: int) -> Reading | None:
    head = _GLM_NAME.match(text, start)
    if head is None:
        return None
    arguments: dict[str, object] = {}
    at = head.end()
    while (key := _ARGUMENT_KEY.match(text, at)) is not None:
        end = text.find("</arg_value>", key.end())
        if end < 0:
            return None
        arguments[key[1].strip()] = text[key.end() : end]
        at = end + len("</arg_value>")
    return (_call(head[1], arguments, "glm"),), at


def _python(text: str, start: int, cut: bool) -> Reading | None:
    body = text.index(">", start) + 1
    calls, end = _listed(text, body, "llama")
    if calls:
        return calls, end
    found = pythonic_calls(text, body)
    broken = cut_call(text, body, "llama") if cut and found is None else None
    return found if broken is None else ((broken,), len(text))


def _mistral(text: str, start: int, cut: bool) -> Reading | None:
    body = start + len("[TOOL_CALLS]")
    named = _MISTRAL_NAME.match(text, body)
    if named is not None:
        return _with_arguments(text, named[1], named.end(), "mistral", cut)
    calls, end = _listed(text, body, "mistral")
    broken = cut_call(text, body, "mistral") if cut and not calls else None
    if broken is not None:
        return (broken,), len(text)
    return (calls, end) if calls else None


def _special(text: str, start: int, cut: bool) -> Reading | None:
    head = _SPECIAL_NAME.match(text, text.index(">", start) + 1)
    if head is None:
        return None
    name = head[1] or head[2] or head[3]
    reading = _with_arguments(text, name, head.end(), "kimi" if head[2] else "deepseek", cut)
    return None if reading is None else (reading[0], _past(_SPECIAL_END, text, reading[1]))


def _invoke(text: str, start: int, cut: bool) -> Reading | None:
    head = _INVOKE.match(text, start)
    if head is None:
        return None
    arguments: dict[str, object] = {}
    at = head.end()
    while (parameter := _INVOKE_PARAMETER.match(text, at)) is not None:
        end = _INVOKE_PARAMETER_END.search(text, parameter.end())
        if end is None:
            return ((_cut(head[1], text[head.end() :], "invoke"),), len(text)) if cut else None
        told = _trimmed(text[parameter.end() : end.start()])
        value = value_at(told, 0) if parameter[2] == "false" else None
        arguments[parameter[1]] = told if value is None else value[0]
        at = end.end()
    closed = _INVOKE_END.match(text, at)
    if closed is None:
        return ((_cut(head[1], text[head.end() :], "invoke"),), len(text)) if cut else None
    return (_call(head[1], arguments, "invoke"),), closed.end()


def _harmony(text: str, start: int, cut: bool) -> Reading | None:
    head = _HARMONY.match(text, start)
    body = None if head is None else _HARMONY_BODY.match(text, head.end())
    if head is None or body is None:
        return None
    reading = _with_arguments(text, head[1], body.end(), "harmony", cut)
    return None if reading is None else (reading[0], _past(_HARMONY_END, text, reading[1]))


def _with_arguments(text: str, name: str, start: int, form: str, cut: bool) -> Reading | None:
    """Return the call whose arguments begin here, as JSON."""
    found = value_at(text, start)
    if found is None:
        return ((_cut(name, text[start:], form),), len(text)) if cut else None
    return ((_call(name, found[0], form),), found[1]) if is_object(found[0]) else None


def _call(name: str, arguments: Mapping[str, object], form: str) -> TextCall:
    return TextCall(name=name, arguments=as_json(arguments), form=form)


def _cut(name: str, rest: str, form: str) -> TextCall:
    return TextCall(name=name, arguments=rest.strip(), form=form, cut=True)


def _trimmed(value: str) -> str:
    """Return a value without the line breaks that stand before and behind it for looks."""
    return value.removeprefix("\n").removesuffix("\n")


def _past(end: "re.Pattern[str]", text: str, start: int) -> int:
    found = end.match(text, start)
    return start if found is None else found.end()


_READERS: Final[Mapping[str, Callable[[str, int, bool], Reading | None]]] = {
    "hermes": _hermes,
    "function": _function,
    "python": _python,
    "mistral": _mistral,
    "special": _special,
    "invoke": _invoke,
    "harmony": _harmony,
}
