"""Which JSON objects are tool calls.

| shape | who writes it |
| --- | --- |
| `{"name": …, "arguments": {…}}` | Hermes, Qwen, Mistral and most others |
| `{"name": …, "parameters": {…}}`, `{"type": "function", "name" or "function": …, …}` | Llama |
| `{"function": {"name": …, "arguments": …}}`, `{"tool_calls": [ … ]}` | whoever repeats an API |

Arguments may be an object or, encoded once more, a string.
"""

from typing import Final

from luftpause.core.dialects.text_calls.readings import TextCall, as_json, is_list, is_object

_NAMES: Final = ("name", "tool_name", "tool", "function")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_BESIDE: Final = frozenset({"type", "id", "call_id", "index"})


def calls_in(value: object, form: str, *, exact: bool = False) -> tuple[TextCall, ...]:
    """Return the calls that a decoded value is, none if any part of it is something else.

    `exact`: nothing may stand beside name and arguments, and both must be there, as where no marker says that it is a
    call at all.
    """
    if is_object(value) and is_list(value.get("tool_calls")):
        value = value["tool_calls"] if len(value) == 1 or not exact else None
    several = value if is_list(value) else [value]
    calls = tuple(call for each in several if (call := _call(each, form, exact=exact)) is not None)
    return calls if len(calls) == len(several) else ()


def _call(value: object, form: str, *, exact: bool) -> TextCall | None:
    if not is_object(value):
        return None
    inner = value.get("function")
    if is_object(inner):
        return None if exact and not value.keys() <= {"function", *_BESIDE} else _call(inner, form, exact=exact)
    named, name = next(((key, value[key]) for key in _NAMES if isinstance(value.get(key), str)), ("", None))
    if not isinstance(name, str):
        return None
    given = [key for key in _ARGUMENTS if key in value]
    if exact and (len(given) != 1 or not value.keys() <= {named, *given, *_BESIDE}):
        return None
    arguments: object = value[given[0]] if given else dict[str, object]()
    if exact and not (isinstance(arguments, str) or is_object(arguments)):
        return None
    written = arguments if isinstance(arguments, str) else as_json(arguments)
    return TextCall(name=name, arguments=written, form=form)
