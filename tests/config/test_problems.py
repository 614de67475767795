"""How problems are said."""

import datetime

import pytest

from luftpause.config.problems import ConfigError, KeyPath, Problem, as_toml, dotted, shown


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("dataplane", "port"), "dataplane.port"),
        (("launcher", "models", 0, "name"), "launcher.models[0].name"),
        (("tools", 1, "env", "A B"), "tools[1].env.'A B'"),
        (("a\x1b[31m",), r"'a\x1b[31m'"),
        ((), ""),
    ],
)
def test_a_key_is_dotted_and_quoted_where_it_must_be(path: KeyPath, expected: str) -> None:
    assert dotted(path) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "true"),
        (5, "5"),
        (10**400, "a very large number"),
        (1.5, "1.5"),
        ("a\nb\x1b\u202e", r"'a\nb\x1b\u202e'"),
        ("x" * 99, repr("x" * 60) + "…"),
        ([1], "a list"),
        ({"a": 1}, "a table"),
        (None, "null"),
        (datetime.date(2026, 1, 2), "the date or time 2026-01-02"),
    ],
)
def test_a_value_is_shown_on_one_short_printable_line(value: object, expected: str) -> None:
    assert shown(value) == expected


def test_an_error_has_a_line_for_each_problem() -> None:
    error = ConfigError(Problem(where="f.toml:1", key="a.b", what="is wrong"), Problem(where="env X", what="bad"))
    assert str(error) == "f.toml:1: a.b: is wrong\nenv X: bad"


def test_values_are_written_as_toml() -> None:
    assert as_toml({"a": ["x", 1, True], "b": "ü\n"}) == r'{"a" = ["x", 1, true], "b" = "\u00fc\n"}'
