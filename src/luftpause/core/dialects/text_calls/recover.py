r"""Find the tool calls in a reply that has none of its own, or leave the reply alone.

A call counts only if it is meant as one. These are the rules:

- Nothing is looked for in what the model thinks (`<think>` and its kin), in code between backticks, in quoted lines
  (`> …`), nor right behind a quotation mark.
- A call in tags may stand anywhere else. What stands behind the first one was written without knowing what the tool
  would say, and is dropped.
- Without tags a call must be the whole reply (JSON or Python), or fenced blocks (of no language or one of a few) that
  hold nothing but calls and end the reply; then name and arguments must both be there, with nothing beside them.
- At least one of the calls must name a tool that is offered. Then the others count too, so that the model hears of its
  mistake.

Work is bounded: a text is gone through once, few calls are read, and each in time that grows with its length at most.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from luftpause.core.dialects.text_calls.pythonic import literal, pythonic_calls
from luftpause.core.dialects.text_calls.readings import (
    NAME,
    Reading,
    TextCall,
    after_space,
    cut_call,
    mended,
    value_at,
)
from luftpause.core.dialects.text_calls.shapes import calls_in
from luftpause.core.dialects.text_calls.tagged import MARKERS, reading_at

TEXT_MAX: Final = 1_000_000
"""Characters of a longer text are not looked at."""

CALLS_MAX: Final = 64
"""Calls of one reply; what comes behind them is dropped."""

_TOKENS_MAX: Final = 10_000
_MISREADINGS_MAX: Final = 8
"""Where so much that looked like a call was none, the rest is not looked at."""

_THOUGHTS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis": "<|end|>",
}
_THOUGHT: Final = re.compile("|".join(map(re.escape, _THOUGHTS)))
_THOUGHT_ENDS: Final = re.compile("|".join(re.escape(end) for end in _THOUGHTS.values() if "/" in end))
_KINDS: Final = {
    **{f"think{place}": re.escape(opening) for place, opening in enumerate(_THOUGHTS)},
    "code0": r"``{0,31}",
    "code1": r"~~{2,31}",
    "quote": r">(?<![^\n]>)",
    **MARKERS,
}


def _by_first(kinds: Mapping[str, str]) -> str:
    """Return one pattern of these that begins with each first character once: then it is searched for fast."""
    rests: dict[str, list[str]] = {}
    for name, pattern in kinds.items():
        first = pattern[: 2 if pattern.startswith("\\") else 1]
        rest = pattern[len(first) :]
        rests.setdefault(first, []).append(f"(?P<{name}>{rest})")
    return "|".join(f"{first}(?:{'|'.join(each)})" for first, each in rests.items())


_TOKEN: Final = re.compile(_by_first(_KINDS))
_WRAPPER: Final = re.compile(
    r"(?:<[|｜]tool[_▁]calls[_▁]begin[|｜]>|<\|tool_calls_section_begin\|>|<\|start\|>assistant"
    r"|<(?:minimax:tool_call|function_calls|[|｜]DSML[|｜]function_calls)>)\s*\Z"
)
_CODE: Final = re.compile(r"`[^`\n]*`")
_ENDED: Final = re.compile(r"(?:\s|<\|(?:eot_id|eom_id|im_end|end|call)\|>|</s>)*\Z")
_FENCED: Final = frozenset({"", "json", "tool_call", "tool_calls", "tool_code", "python"})
_FENCE_END: Final = re.compile(r"^[ \t]{0,16}(?:`{3}|~{3})[`~]*[ \t]*$", re.MULTILINE)
_NAMES_KEY: Final = re.compile(r"""["'](?:name|tool|tool_name|function)["']\s*:""")
_PYTHON_HEAD: Final = re.compile(rf"\[?\s*({NAME})\s*\(")
_QUOTES: Final = frozenset("\"'“‘«„`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """`text`: what stands before the first call. `calls`: at least one."""

    text: str
    calls: tuple[TextCall, ...]


def recover(text: str, known: Callable[[str], bool], *, cut: bool = False) -> Recovered | None:
    """Return the calls in a reply, None if there are none.

    Args:
        text: the whole reply.
        known: whether a tool of this name is offered.
        cut: the reply ended at its longest, so its end may be the beginning of a call.
    """
    if len(text) > TEXT_MAX:
        return None
    scan = _Scan(text, cut)
    scan.go()
    for start, calls in (scan.tagged(), scan.fenced(), scan.whole()):
        named = tuple(_named(call, known) for call in calls[:CALLS_MAX])
        if any(known(call.name) for call in named):
            return Recovered(text=text[:start].rstrip(), calls=named)
    return None


def _named(call: TextCall, known: Callable[[str], bool]) -> TextCall:
    """Some models name the tool's namespace too."""
    bare = call.name.removeprefix("functions.")
    return replace(call, name=bare) if bare != call.name and known(bare) else call


class _Scan:
    """One way through a text, from left to right, past everything that is not the model's own word."""

    def __init__(self, text: str, cut: bool) -> None:
        self._text = text
        self._cut = cut
        self._misread = 0
        self._first = 0
        self._calls: list[TextCall] = []
        self._blocks: list[TextCall] = []
        self._blocks_start = self._blocks_end = 0
        self._spoken = 0
        """Where the reply proper begins, behind what the model thought first."""

    def go(self) -> None:
        """Go through the text once."""
        text = self._text
        end = _THOUGHT_ENDS.search(text)
        if end is not None and not _THOUGHT.search(text, 0, end.start()):
            # Some templates write the opening themselves, so the reply begins in the middle of a thought.
            self._spoken = end.end()
        at = self._spoken
        for _ in range(_TOKENS_MAX):
            token = _TOKEN.search(text, at)
            if token is None or self._misread > _MISREADINGS_MAX or len(self._calls) >= CALLS_MAX:
                break
            at = self._past(token)

    def tagged(self) -> tuple[int, list[TextCall]]:
        """Return the calls in tags, and where the first begins."""
        return self._first, self._calls

    def fenced(self) -> tuple[int, list[TextCall]]:
        """Return the calls in the fenced blocks that end the reply, and where the first begins."""
        ended = _ENDED.match(self._text, self._blocks_end)
        return self._blocks_start, self._blocks if ended else []

    def whole(self) -> tuple[int, list[TextCall]]:
        """Return the calls that are the whole reply, and where they begin."""
        start = after_space(self._text, self._spoken)
        calls = _only_calls(self._text[start:], python=True)
        broken = cut_call(self._text, start, "json") if self._cut and self._text.startswith("{", start) else None
        return start, list(calls) or ([] if broken is None else [broken])

    def _past(self, token: "re.Match[str]") -> int:
        """Return where to go on behind a token."""
        text, start, kind = self._text, token.start(), (token.lastgroup or "").rstrip("0123456789")
        match kind:
            case "think":
                return self._past_thought(token)
            case "quote":
                return self._line_end(start)
            case "code":
                fence = len(token[0]) >= 3 and _begins_line(text, start)
                return self._past_fence(token) if fence else self._past_code(token)
            case _:
                return self._past_marker(token, kind)

    def _past_thought(self, token: "re.Match[str]") -> int:
        closing = _THOUGHTS[token[0]]
        end = self._text.find(closing, token.end())
        after = len(self._text) if end < 0 else end + len(closing)
        if not self._text[self._spoken : token.start()].strip():
            self._spoken = after
        return after

    def _past_code(self, token: "re.Match[str]") -> int:
        span = _CODE.match(self._text, token.end() - 1)
        return token.end() if span is None else span.end()

    def _past_fence(self, token: "re.Match[str]") -> int:
        text = self._text
        body = min(self._line_end(token.end()) + 1, len(text))
        closed = _FENCE_END.search(text, body)
        inner, after = (len(text), len(text)) if closed is None else (closed.start(), closed.end())
        language = text[token.end() : body].strip().lower()
        calls = _only_calls(text[body:inner].strip(), python=language in ("python", "tool_code"))
        if text[self._blocks_end : token.start()].strip():
            self._blocks = []
        if language in _FENCED and calls:
            self._blocks_start = self._blocks_start if self._blocks else token.start()
            self._blocks += calls
        else:
            self._blocks = []
        self._blocks_end = after
        return after

    def _past_marker(self, token: "re.Match[str]", kind: str) -> int:
        start = token.start()
        if self._text[max(0, start - 1) : start] in _QUOTES:
            return token.end()
        found: Reading | None = reading_at(self._text, start, kind, cut=self._cut)
        if found is None:
            self._misread += 1
            return token.end()
        calls, end = found
        if not self._calls:
            wrapper = _WRAPPER.search(self._text, max(0, start - 64), start)
            self._first = start if wrapper is None else wrapper.start()
        self._calls += calls
        return max(end, token.end())

    def _line_end(self, start: int) -> int:
        end = self._text.find("\n", start)
        return len(self._text) if end < 0 else end


def _only_calls(text: str, *, python: bool) -> tuple[TextCall, ...]:
    """Return the calls that a text consists of, none if it holds anything else."""
    if text.startswith(("{", "[")) and _NAMES_KEY.search(text):
        calls = _json_calls(text)
        if calls:
            return calls
    if python and _PYTHON_HEAD.match(text):
        found = pythonic_calls(text, 0)
        return found[0] if found is not None and _ENDED.match(text, found[1]) else ()
    return ()


def _json_calls(text: str) -> tuple[TextCall, ...]:
    calls: list[TextCall] = []
    at = 0
    while (found := value_at(text, at)) is not None and len(calls) < CALLS_MAX:
        more = calls_in(found[0], "json", exact=True)
        if not more:
            return ()
        calls += more
        if _ENDED.match(text, found[1]):
            return tuple(calls)
        at = after_space(text, found[1])
        at += 1 if text[at : at + 1] in (";", ",") else 0
    value = None if calls else mended(text)
    value = literal(text) if value is None and not calls else value
    return () if value is None else calls_in(value, "json", exact=True)


def _begins_line(text: str, start: int) -> bool:
    before = text[max(0, start - 16) : start]
    return not before.rpartition("\n")[2].strip() and ("\n" in before or start <= 16)
