"""Merging fragments into files."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.cli.connecting.merging import CannotMergeError, merged, shown
from luftpause.cli.connecting.steps import Format

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
_SCALARS = st.one_of(_TEXTS, st.integers(-(2**53), 2**53), st.booleans(), st.lists(_TEXTS, max_size=2))
_TABLES = st.recursive(
    st.dictionaries(_TEXTS, _SCALARS, max_size=3),
    lambda inner: st.dictionaries(_TEXTS, st.one_of(_SCALARS, inner), max_size=3),
    max_leaves=8,
)


@given(_TABLES)
def test_what_is_shown_as_toml_reads_back(table: dict[str, object]) -> None:
    text = merged("", table, Format.TOML)
    assert tomllib.loads(text) == tomllib.loads(merged(text, table, Format.TOML))
    assert text == merged(text, table, Format.TOML)


@given(_TABLES, _TABLES)
def test_merging_json_twice_changes_nothing_more(before: dict[str, object], fragment: dict[str, object]) -> None:
    once = merged(json.dumps(before), fragment, Format.JSON)
    assert merged(once, fragment, Format.JSON) == once


@given(_TABLES, _TABLES)
def test_a_toml_file_is_changed_truly_or_not_at_all(before: dict[str, object], fragment: dict[str, object]) -> None:
    old = merged("", before, Format.TOML)
    try:
        new = merged(old, fragment, Format.TOML)
    except CannotMergeError:
        return
    assert tomllib.loads(old).keys() <= tomllib.loads(new).keys()
    told = json.loads(merged(json.dumps(tomllib.loads(old)), fragment, Format.JSON) or "{}")
    assert tomllib.loads(new) == told


def test_yaml_is_left_to_people() -> None:
    with pytest.raises(CannotMergeError, match="YAML"):
        merged("", {"a": 1}, Format.YAML)
    assert "a" in shown({"a": 1}, Format.YAML)
