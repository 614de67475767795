"""Calls in the manner of Python, `[look(at="x", times=3), ask()]`, and its literals. Nothing is evaluated."""

import re
from typing import Final, NoReturn

from luftpause.core.dialects.text_calls.readings import NAME, Reading, TextCall, as_json

PYTHONIC: Final = "pythonic"
TEXT_MAX: Final = 20_000
"""Characters of a longer text are not looked at: this reads one token after another."""

_DEPTH_MAX: Final = 50
_SPACE: Final = re.compile(r"[\s;]*")
_HEAD: Final = re.compile(rf"({NAME})\s*\(")
_KEYWORD: Final = re.compile(r"([A-Za-z_]\w{0,127})\s*=")
_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,4})?(?![\w.])")
_STRING: Final = re.compile(
    r"'''(?P<a>[^\\]*?(?:\\.[^\\]*?)*)'''|\"\"\"(?P<b>[^\\]*?(?:\\.[^\\]*?)*)\"\"\""
    r"|'(?P<c>[^'\\]*(?:\\.[^'\\]*)*)'|\"(?P<d>[^\"\\]*(?:\\.[^\"\\]*)*)\"",
    re.DOTALL,
)
_WORD: Final = re.compile(r"(?:True|False|None|true|false|null)\b")
_WORDS: Final = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "\n": ""}


class _NotPythonicError(Exception):
    """It is something else."""


def pythonic_calls(text: str, start: int) -> Reading | None:
    """Return the calls that begin here, in a list or one after another, and where they end. None: there are none."""
    if len(text) - start > TEXT_MAX:
        return None
    try:
        return _Reader(text, start).calls()
    except (_NotPythonicError, ValueError, OverflowError):
        return None


def literal(text: str) -> object | None:
    """Return the value of a text that is one literal, such as a dict in single quotes; None for any other."""
    if len(text) > TEXT_MAX:
        return None
    reader = _Reader(text, 0)
    try:
        value = reader.value(0)
    except (_NotPythonicError, ValueError, OverflowError):
        return None
    return value if reader.at_end() else None


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start

    def calls(self) -> Reading:
        listed = self._took("[")
        calls = [self._call()]
        end = self._at
        while (self._took(",") if listed else True) and _HEAD.match(self._text, self._skip()):
            calls.append(self._call())
            end = self._at
        if listed:
            if not self._took("]"):
                self._fail()
            end = self._at
        return tuple(calls), end

    def at_end(self) -> bool:
        return self._skip() == len(self._text)

    def value(self, depth: int) -> object:
        if depth > _DEPTH_MAX:
            self._fail()
        at = self._skip()
        if found := _STRING.match(self._text, at):
            self._at = found.end()
            return _plain(found[found.lastgroup or 0])
        if found := _WORD.match(self._text, at):
            self._at = found.end()
            return _WORDS[found[0]]
        if found := _NUMBER.match(self._text, at):
            self._at = found.end()
            return float(found[0]) if set(found[0]) & set(".eE") else int(found[0])
        for opening, closing in ("[]", "()"):
            if self._took(opening):
                return self._items(closing, depth)
        if self._took("{"):
            return self._members(depth)
        self._fail()

    def _call(self) -> TextCall:
        head = _HEAD.match(self._text, self._skip())
        if head is None:
            self._fail()
        self._at = head.end()
        arguments: dict[str, object] = {}
        while not self._took(")"):
            keyword = _KEYWORD.match(self._text, self._skip())
            if keyword is None or keyword[1] in arguments:
                self._fail()
            self._at = keyword.end()
            arguments[keyword[1]] = self.value(0)
            self._took_comma_before(")")
        # Llama's built-in tools are called as methods.
        return TextCall(name=head[1].removesuffix(".call"), arguments=as_json(arguments), form=PYTHONIC)

    def _items(self, closing: str, depth: int) -> list[object]:
        items: list[object] = []
        while not self._took(closing):
            items.append(self.value(depth + 1))
            self._took_comma_before(closing)
        return items

    def _members(self, depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        while not self._took("}"):
            name = self.value(depth + 1)
            if not isinstance(name, str) or not self._took(":"):
                self._fail()
            members[name] = self.value(depth + 1)
            self._took_comma_before("}")
        return members

    def _took_comma_before(self, closing: str) -> None:
        if not self._took(",") and not self._text.startswith(closing, self._skip()):
            self._fail()

    def _took(self, mark: str) -> bool:
        taken = self._text.startswith(mark, self._skip())
        self._at += len(mark) if taken else 0
        return taken

    def _skip(self) -> int:
        found = _SPACE.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return self._at

    @staticmethod
    def _fail() -> NoReturn:
        raise _NotPythonicError


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(found: "re.Match[str]") -> str:
    code = found[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code if code in "\\'\"" else found[0])
