"""What `native/values.py` writes for the compiler behaves as the source does."""

import ast
import sys
from dataclasses import fields, replace
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import msgspec
import pytest
from native.build import modules
from native.values import UnfitSourceError, rewrite

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = dedent(
    '''
    """A module."""

    from dataclasses import dataclass, field
    from typing import Generic, NamedTuple, TypeVar

    from msgspec import Raw, Struct

    T = TypeVar("T")


    @dataclass(frozen=True, slots=True, kw_only=True)
    class Value:
        """A value."""

        one: int
        names: tuple[str, ...] = ()
        many: list[int] = field(default_factory=list)


    @dataclass(frozen=True, slots=True)
    class Boxed(Generic[T]):
        held: T
        more: dict[str, int] = field(default_factory=dict)


    class Pair(NamedTuple):
        """Two."""

        left: int
        right: str = "r"

        @property
        def both(self) -> str:
            return f"{self.left}{self.right}"


    class Seen(Struct, frozen=True, kw_only=True):
        finish: str = ""


    class Wire(Struct):
        id: str | None = None
        rest: object = None


    def fail(number: int) -> str:
        try:
            if number:
                raise ValueError("v")
            raise KeyError("k")
        except ValueError as error:
            return f"value: {error}"
        except KeyError as error:
            return f"key: {error.args[0]}"
    '''
)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The module as it was written for the compiler, run without one."""
    module = ModuleType("written")
    monkeypatch.setitem(sys.modules, "written", module)
    text = rewrite(SOURCE, acyclic=False).text.replace("frozen=True", "unsafe_hash=True")  # only C may write to frozen
    text = text.replace("@_mypyc_attr(free_list_len=1)", "")  # a word for mypyc
    exec(compile(text, "written", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def test_a_dataclass_stays_one(written: dict[str, Any]) -> None:
    value = written["Value"](one=1)
    assert value == written["Value"](one=1, names=(), many=[])
    assert value != written["Value"](one=2)
    assert [each.name for each in fields(value)] == ["one", "names", "many"]
    assert replace(value, one=3).one == 3
    assert msgspec.json.decode(b'{"one":5,"names":["x"]}', type=written["Value"]).names == ("x",)
    assert "Value(one=1" in repr(value)


def test_a_generic_dataclass_behaves_as_one(written: dict[str, Any]) -> None:
    boxed = written["Boxed"](1)
    assert boxed == written["Boxed"](1, {})
    assert hash(written["Boxed"]("x", ())) == hash(written["Boxed"]("x", ()))
    assert [each.name for each in fields(boxed)] == ["held", "more"]
    assert repr(boxed) == "Boxed(held=1, more={})"


def test_a_named_tuple_unpacks_compares_and_is_replaced(written: dict[str, Any]) -> None:
    pair = written["Pair"](1)
    left, right = pair
    assert (left, right, pair.both) == (1, "r", "1r")
    assert pair._replace(left=2) == written["Pair"](2, right="r")
    assert hash(pair) == hash(written["Pair"](1))
    assert written["Pair"]._fields == ("left", "right")
    assert repr(pair) == "Pair(left=1, right='r')"


def test_structs_that_are_values_compare_and_those_that_are_read_are_read(written: dict[str, Any]) -> None:
    assert written["Seen"](finish="stop") == written["Seen"](finish="stop")
    assert written["Seen"]().finish == ""
    assert msgspec.json.decode(b'{"id":"a","rest":[1]}', type=written["Wire"]).rest == [1]


def test_handlers_keep_their_own_errors(written: dict[str, Any]) -> None:
    assert (written["fail"](0), written["fail"](1)) == ("key: k", "value: v")
    tree = ast.parse(rewrite(SOURCE, acyclic=False).text)
    names = [each.name for each in ast.walk(tree) if isinstance(each, ast.ExceptHandler)]
    assert len(set(names)) == len(names)


def test_of_what_is_made_often_one_that_is_gone_is_kept() -> None:
    slotted = "import os\n\n\nclass Slotted(Base):\n    __slots__ = ('a',)\n"
    for source in (SOURCE, slotted):
        assert "@_mypyc_attr(free_list_len=1)" in rewrite(source, acyclic=False).text
    for plain in ("class X:\n    pass\n", "class X(dict[int, int]):\n    __slots__ = ()\n"):
        assert rewrite(plain, acyclic=False).text == plain


def test_each_line_knows_where_it_came_from() -> None:
    rewritten = rewrite(SOURCE, acyclic=True)
    lines, source = rewritten.text.splitlines(), SOURCE.splitlines()
    assert len(rewritten.origin) == len(lines) + 1
    for number, line in enumerate(lines, 1):
        if line.strip().startswith(("def fail", 'return f"{self.left}')):
            assert source[rewritten.origin[number] - 1] == line


@pytest.mark.parametrize(
    "source",
    [
        "from dataclasses import dataclass\n\n\n@dataclass(order=True)\nclass X:\n    a: int\n",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass X(dict):\n    a: int\n",
        'from msgspec import Struct\n\n\nclass X(Struct, tag="x"):\n    a: int\n',
    ],
)
def test_what_nobody_thought_of_is_refused(source: str) -> None:
    with pytest.raises(UnfitSourceError):
        rewrite(source, acyclic=False)


def test_every_module_of_the_list_is_there_and_can_be_written_out() -> None:
    listed = modules(ROOT)
    assert listed == sorted(set(listed))
    for path in listed:
        compile(rewrite((ROOT / "src" / path).read_text(encoding="utf-8"), acyclic=False).text, path, "exec")
