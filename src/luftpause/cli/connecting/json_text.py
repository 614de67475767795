"""JSON as people keep it, with comments and commas at the end: read with the places of its members, and edited there.

What is not edited stays as it is, to the byte. Knows no clients.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

DEPTH_MAX: Final = 100

_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?s:.*?)\*/)*")
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)
_DECODER: Final = json.JSONDecoder()
_INDENT: Final = re.compile(r"[ \t]*")


class NotJsonError(ValueError):
    """The text is none. Says why, for people."""


@dataclass(slots=True)
class Node:
    """A value and where it stands: `text[start:end]`. Of an object also its members; of others None."""

    value: object
    start: int
    end: int
    members: "dict[str, Node] | None" = None
    last_end: int = 0
    """Where its last member ends, without a comma."""
    ends_in_comma: bool = False


@dataclass(slots=True)
class _Edits:
    """Replacements of pieces of a text that do not overlap."""

    text: str
    unit: str
    made: list[tuple[int, int, str]] = field(default_factory=list)

    def lay_over(self, node: Node, fragment: Mapping[str, object]) -> None:
        """Put a fragment into an object, which keeps what else it has."""
        assert node.members is not None, "only objects have members"
        new: dict[str, object] = {}
        for key, value in fragment.items():
            there = node.members.get(key)
            if there is None:
                new[key] = value
            elif isinstance(value, Mapping) and there.members is not None:
                self.lay_over(there, value)
            elif there.value != value or type(there.value) is not type(value):
                self.made.append((there.start, there.end, self._written(value, self._indent_at(there.start))))
        if new:
            self._add(node, new)

    def _add(self, node: Node, new: Mapping[str, object]) -> None:
        outer = self._indent_at(node.start)
        indent = self._indent_of_members(node) or outer + self.unit
        members = [f"{json.dumps(key, ensure_ascii=False)}: {self._written(new[key], indent)}" for key in new]
        close = node.end - 1
        at = self._after_comments(node.last_end or node.start + 1, close)
        tail = "," if node.ends_in_comma else ""
        line_end = "" if "\n" in self.text[at:close] else f"\n{outer}"
        added = "".join(f"\n{indent}{member}," for member in members).removesuffix(",") + tail + line_end
        if node.members and not node.ends_in_comma:
            if at == node.last_end:
                added = "," + added
            else:
                self.made.append((node.last_end, node.last_end, ","))
        self.made.append((at, at, added))

    def _after_comments(self, start: int, close: int) -> int:
        """Return where, before an object's end, nothing but white space follows."""
        return start + len(self.text[start:close].rstrip(" \t\r\n"))

    def _indent_of_members(self, node: Node) -> str:
        """Return what stands before its members, where they have lines of their own."""
        for member in (node.members or {}).values():
            indent = self._indent_at(member.start)
            if "\n" in self.text[node.start : member.start] and indent:
                return indent
        return ""

    def _indent_at(self, place: int) -> str:
        found = _INDENT.match(self.text, self.text.rfind("\n", 0, place) + 1)
        return found[0] if found else ""

    def _written(self, value: object, indent: str) -> str:
        return json.dumps(value, ensure_ascii=False, indent=self.unit).replace("\n", f"\n{indent}")

    def applied(self) -> str:
        """Return the text with all of them."""
        newline = "\r\n" if "\r\n" in self.text else "\n"
        text = self.text
        for start, end, new in sorted(self.made, reverse=True):
            text = text[:start] + new.replace("\n", newline) + text[end:]
        return text


def read(text: str) -> Node:
    """Return what a text holds.

    Raises:
        NotJsonError: no JSON, also with comments.
    """
    node, place = _value(text, _skip(text, 0), 0)
    if _skip(text, place) != len(text):
        raise NotJsonError(f"something follows its end, {_place(text, place)}")
    return node


def laid_over(text: str, fragment: Mapping[str, object]) -> str:
    """Return an object's text with a fragment in it; objects are joined, other values replaced.

    Raises:
        NotJsonError: no JSON, also with comments, or no object.
    """
    root = read(text)
    if root.members is None:
        raise NotJsonError("it holds no JSON object")
    edits = _Edits(text, _unit(text, root))
    edits.lay_over(root, fragment)
    return edits.applied()


def _unit(text: str, root: Node) -> str:
    """Return by what the file indents."""
    for member in (root.members or {}).values():
        found = re.search(r"\n([ \t]+)[^\n]*$", text[root.start : member.start])
        if found:
            return found[1]
    return "  "


def _value(text: str, place: int, depth: int) -> tuple[Node, int]:
    if depth > DEPTH_MAX:
        raise NotJsonError(f"it is nested more than {DEPTH_MAX} deep")
    letter = text[place : place + 1]
    if letter == "{":
        return _object(text, place, depth)
    if letter == "[":
        return _array(text, place, depth)
    if letter == '"':
        string, end = _string(text, place)
        return Node(string, place, end), end
    found = _SCALAR.match(text, place)
    if found is None:
        raise NotJsonError(f"no value, {_place(text, place)}")
    return Node(json.loads(found[0]), place, found.end()), found.end()


def _object(text: str, start: int, depth: int) -> tuple[Node, int]:
    node = Node({}, start, start, members={})
    members: dict[str, Node] = {}
    place = _skip(text, start + 1)
    while text[place : place + 1] == '"':
        key, place = _string(text, place)
        place = _skip(text, place)
        if text[place : place + 1] != ":":
            raise NotJsonError(f"no colon after {key!r}, {_place(text, place)}")
        members[key], node.last_end = _value(text, _skip(text, place + 1), depth + 1)
        place, node.ends_in_comma = _past_comma(text, node.last_end, "}")
    node.end = _closed(text, place, "}")
    node.members = members
    node.value = {key: member.value for key, member in members.items()}
    return node, node.end


def _array(text: str, start: int, depth: int) -> tuple[Node, int]:
    values: list[object] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] not in ("]", ""):
        node, end = _value(text, place, depth + 1)
        values.append(node.value)
        place, _ = _past_comma(text, end, "]")
    end = _closed(text, place, "]")
    return Node(values, start, end), end


def _past_comma(text: str, place: int, close: str) -> tuple[int, bool]:
    """Return where the next member or the end is, and whether a comma stood before it."""
    place = _skip(text, place)
    if text[place : place + 1] == ",":
        return _skip(text, place + 1), True
    _closed(text, place, close)
    return place, False


def _closed(text: str, place: int, close: str) -> int:
    if text[place : place + 1] != close:
        raise NotJsonError(f"no {close!r}, {_place(text, place)}")
    return place + 1


def _string(text: str, place: int) -> tuple[str, int]:
    try:
        string, end = _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise NotJsonError(str(error)) from error
    return str(string), end


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _place(text: str, place: int) -> str:
    return f"line {text.count(chr(10), 0, place) + 1}"
