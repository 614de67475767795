"""What the schema says about keys, and what is wrong with trees of values."""

from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, inspect

from luftpause.config.schema import Config
from luftpause.config.shape import expectation, faults, known_keys, nearest, root, type_at, unknown_key
from luftpause.config.value_types import Duration, Name, Port, Size


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """A table in a list."""

    name: str


class Every(msgspec.Struct, forbid_unknown_fields=True):
    """One key of each type that a schema may use."""

    flag: bool = False
    ratio: float = 1.0
    whole: int = 1
    few: Annotated[int, Meta(ge=1, le=3)] = 1
    word: Annotated[str, Meta(min_length=2, max_length=3)] = "ab"
    choice: Literal["a", "b"] = "a"
    texts: list[str] = []
    variables: dict[str, str] = {}
    shares: dict[str, float] = {}
    tables: list[Inner] = []


EVERY = inspect.type_info(Every)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({}, []),
        ({"flag": True, "ratio": 1, "whole": 10**30, "word": "abc", "variables": {"X": "y"}}, []),
        ({"flag": 1}, [("flag", "expected true or false, got 1")]),
        ({"ratio": True}, [("ratio", "expected a number, got true")]),
        ({"whole": 1.0}, [("whole", "expected a whole number, got 1.0")]),
        ({"whole": True}, [("whole", "expected a whole number, got true")]),
        ({"few": 4}, [("few", "expected a whole number from 1 to 3, got 4")]),
        ({"word": "abcd"}, [("word", "expected a string, got 'abcd'")]),
        ({"word": "a"}, [("word", "expected a string, got 'a'")]),
        ({"choice": "c"}, [("choice", "expected one of 'a', 'b', got 'c'")]),
        ({"choice": ["a"]}, [("choice", "expected one of 'a', 'b', got a list")]),
        ({"texts": "x"}, [("texts", "expected a list, each a string, got 'x'")]),
        ({"texts": ["x", 1]}, [("texts[1]", "expected a string, got 1")]),
        ({"variables": []}, [("variables", "expected a table of strings, got a list")]),
        ({"shares": {"X": 1, "Y": 0.5}}, []),
        ({"shares": 1}, [("shares", "expected a table, each a number, got 1")]),
        ({"variables": {"X": 1}}, [("variables.X", "expected a string, got 1")]),
        (
            {"tables": {}},
            [("tables", "expected a list of tables, got a table; in the file each begins with [[tables]]")],
        ),
        ({"tables": [{}]}, [("tables[0].name", "is missing; expected a string")]),
        ({"tables": [5]}, [("tables[0]", "expected a table, got 5")]),
    ],
)
def test_each_fault_is_named_with_what_was_expected(tree: object, expected: list[tuple[str, str]]) -> None:
    found = [
        (".".join(map(str, path)).replace(".0", "[0]").replace(".1", "[1]"), what) for path, what in faults(tree, EVERY)
    ]
    assert found == expected


def test_all_faults_are_found_at_once() -> None:
    tree = {"dataplane": {"port": "x", "hsot": "a"}, "replicas": [{}], "nonsense": 1}
    assert len(list(faults(tree, root()))) == 6


def test_values_that_may_be_secrets_are_not_repeated() -> None:
    tree = {"replicas": [{"name": "a", "url": "u", "models": [], "api_key_env": 987654}]}
    assert [what for _, what in faults(tree, root())] == ["expected a string"]


def test_what_must_match_a_pattern_must_match_it_to_the_end() -> None:
    assert list(faults("10m\n", inspect.type_info(Duration)))
    assert list(faults("name\n", inspect.type_info(Name)))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 4) | st.floats(allow_nan=False) | st.sampled_from(["a", "ab", "abcd"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "x"]), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*Every.__struct_fields__, "other"]), PLAIN, max_size=4))
def test_a_tree_has_no_fault_exactly_when_msgspec_decodes_it(tree: dict[str, object]) -> None:
    try:
        msgspec.convert(tree, Every)
        decodes = True
    except msgspec.ValidationError:
        decodes = False
    assert decodes == (not list(faults(tree, EVERY)))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Duration, "a duration such as '10m', '500ms', '2h30m'"),
        (Size, "a size such as '20GiB', '600MB'"),
        (Port, "a whole number from 0 to 65535"),
    ],
)
def test_an_expectation_gives_examples_or_limits(kind: object, expected: str) -> None:
    assert expectation(inspect.type_info(kind)) == expected


def test_a_type_without_words_is_a_bug_in_the_schema() -> None:
    with pytest.raises(TypeError, match="no words"):
        expectation(inspect.type_info(bytes))


def test_the_schema_is_walked_by_key() -> None:
    assert isinstance(type_at(("replicas", 3, "models", 0)), inspect.Metadata)
    assert isinstance(type_at(("tools", 0, "env", "ANY")), inspect.StrType)
    assert type_at(("dataplane", 0)) is None
    assert type_at(("dataplane", "port", "x")) is None
    assert type_at(("nothing",)) is None


@pytest.mark.parametrize(
    ("path", "known", "expected"),
    [
        (("dataplne",), ["dataplane", "tools"], "unknown key 'dataplne' — did you mean 'dataplane'?"),
        (
            ("dataplane", "Max-Body"),
            ["max_body"],
            "unknown key 'dataplane.Max-Body' — did you mean 'dataplane.max_body'?",
        ),
        (("http_port",), ["tools"], "unknown key 'http_port' — did you mean 'scheduler.http_port'?"),
        (("zzz",), ["tools", "runtime"], "unknown key 'zzz' — known here: tools, runtime"),
        (("zzz",), list("abcdefghijklmn"), "unknown key 'zzz' — known here: a, b, c, d, e, f, g, h, i, j, k, l, …"),
    ],
)
def test_an_unknown_key_is_told_what_was_probably_meant(path: tuple[str, ...], known: list[str], expected: str) -> None:
    assert unknown_key(path, known) == expected


def test_nothing_is_near_what_resembles_nothing() -> None:
    assert nearest("q" * 10_000, known_keys()) is None


def test_every_key_outside_lists_is_known() -> None:
    assert set(Config.__struct_fields__) < set(known_keys())
    assert "scheduler.http_port" in known_keys()
