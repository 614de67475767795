"""Orders to the fake engine that stand in the last user message, such as `[tools:3]` or `[fail:429]`.

| marker | what it does |
| --- | --- |
| `[tools:N]` | N rounds of tool calls for this message |
| `[parallel:N]` | N calls per round |
| `[tool:NAME]` | calls go to the tool of that name, or whose name ends with it |
| `[arg:NAME=TEXT]` | where a called tool takes an argument of that name, it is TEXT; `{x}` in it stands for `[x]` |
| `[as-text:FORM]` | calls are written as text, as some models do: json, fenced, hermes, llama, mistral, … |
| `[tokens:N]` | the text reply has N tokens |
| `[fail:S]` | answer with status S; `[fail:S:N]` only the first N times that this very conversation comes |
| `[die]` | cut the connection in the middle of the reply |
| `[stall]` | stop in the middle of the reply and say nothing more |
| `[no-usage]` | leave the usage out |
| `[no-logprobs]` | leave the logprobs out, as an engine does that knows none |
"""

import re
from dataclasses import dataclass

_KINDS = "tools|parallel|tool|as-text|tokens|fail|die|stall|no-usage|no-logprobs"
_MARKER = re.compile(rf"\[({_KINDS})(?::([A-Za-z0-9_.-]{{1,128}}))?(?::(\d{{1,6}}))?\]")
_ARGUMENT = re.compile(r"\[arg:([A-Za-z_][A-Za-z0-9_]{0,63})=([^\[\]\n]{0,512})\]")
_BRACKETS = str.maketrans("{}", "[]")
COUNT_MAX = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the markers of a message ask for; None where it does not say."""

    tool_rounds: int | None = None
    parallel: int | None = None
    tool: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    as_text: str = ""
    tokens: int | None = None
    fail: int | None = None
    fail_times: int | None = None
    die: bool = False
    stall: bool = False
    no_usage: bool = False
    no_logprobs: bool = False


def read_orders(text: str) -> Orders:
    """Return what the markers ask for; the last of a kind wins, a marker that makes no sense is text."""
    found = {kind: (value, times) for kind, value, times in _MARKER.findall(text)}
    fail_status, fail_times = found.get("fail", ("", ""))
    fail = _count(fail_status)
    return Orders(
        tool_rounds=_count(found.get("tools", ("",))[0]),
        parallel=_count(found.get("parallel", ("",))[0]),
        tool=found.get("tool", ("",))[0],
        arguments=tuple((name, value.translate(_BRACKETS)) for name, value in _ARGUMENT.findall(text)),
        as_text=found.get("as-text", ("",))[0],
        tokens=_count(found.get("tokens", ("",))[0]),
        fail=fail if fail is not None and 400 <= fail <= 599 else None,
        fail_times=_count(fail_times),
        die="die" in found,
        stall="stall" in found,
        no_usage="no-usage" in found,
        no_logprobs="no-logprobs" in found,
    )


def without_markers(text: str) -> str:
    """Return the text as a person meant it."""
    return " ".join(_MARKER.sub(" ", _ARGUMENT.sub(" ", text)).split())


def _count(value: str) -> int | None:
    return min(int(value), COUNT_MAX) if value.isascii() and value.isdigit() else None
