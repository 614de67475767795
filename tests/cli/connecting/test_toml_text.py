"""Exchanging and adding values in TOML as people keep it."""

import tomllib

import pytest

from luftpause.cli.connecting.toml_text import added, exchanged

TEXT = """\
# mine
model = "a # b"  # the best
"quoted" = 1

[one]  # first
x = 1

[one.two]
x = [1, 2]#tight
long = '''
x = 9
'''

[[list]]
x = 5
[last]
"""


@pytest.mark.parametrize(
    ("table", "key", "old", "new"),
    [
        ((), "model", '"a # b"  # the best', '"c"  # the best'),
        ((), "quoted", '"quoted" = 1', '"quoted" = "c"'),
        (("one",), "x", "[one]  # first\nx = 1\n", '[one]  # first\nx = "c"\n'),
        (("one", "two"), "x", "x = [1, 2]#tight", 'x = "c"#tight'),
    ],
)
def test_a_value_is_exchanged_and_nothing_else(table: tuple[str, ...], key: str, old: str, new: str) -> None:
    assert exchanged(TEXT, table, key, '"c"') == TEXT.replace(old, new)


@pytest.mark.parametrize(("table", "key"), [((), "x"), (("last",), "x"), (("list",), "x"), (("one", "two"), "long")])
def test_what_has_no_line_of_its_own_there_is_left_to_others(table: tuple[str, ...], key: str) -> None:
    assert exchanged(TEXT, table, key, "1") is None


def test_a_key_is_added_at_the_end_of_its_table() -> None:
    one = added(TEXT, ("one",), ["y = 2"])
    assert one == TEXT.replace("x = 1\n\n", "x = 1\ny = 2\n\n")
    last = added(TEXT.rstrip("\n"), ("last",), ["y = 2", "z = 3"])
    assert last is not None
    assert tomllib.loads(last)["last"] == {"y": 2, "z": 3}


def test_a_table_without_a_header_takes_nothing() -> None:
    assert added(TEXT, ("list",), ["y = 2"]) is None
    assert added("one = { x = 1 }\n", ("one",), ["y = 2"]) is None


def test_lines_end_as_the_others_do() -> None:
    assert added("[one]\r\nx = 1\r\n", ("one",), ["y = 2"]) == "[one]\r\nx = 1\r\ny = 2\r\n"
