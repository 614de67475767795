"""The shape of the file: its defaults and its annotated example."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from luftpause.config.load import load
from luftpause.config.schema import Config
from luftpause.config.shape import plain, root
from luftpause.config.units import seconds, size_bytes

EXAMPLE = Path(__file__).parent.parent.parent / "examples/luftpause.toml"


def sections(kind: inspect.StructType) -> Iterator[inspect.StructType]:
    yield kind
    for field in kind.fields:
        inner = plain(field.type)
        item = plain(inner.item_type) if isinstance(inner, inspect.ListType) else inner
        if isinstance(item, inspect.StructType):
            yield from sections(item)


def test_the_annotated_example_is_valid() -> None:
    found = load(EXAMPLE, dict.fromkeys(("SGLANG_KEY", "SEARCH_TOKEN", "CHAT_TOKEN", "NIGHTLY_TOKEN"), "x"), {})
    assert found.warnings == ()


def test_the_annotated_example_has_every_option() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    missing = [
        f"{kind.cls.__name__}.{field.encode_name}"
        for kind in sections(root())
        for field in kind.fields
        if f"\n{field.encode_name} = " not in text and f"{field.encode_name}]" not in text
    ]
    assert missing == []


def test_a_configuration_cannot_be_changed() -> None:
    for section, key in ((Config(), "dataplane"), (Config().dataplane, "port")):
        with pytest.raises(AttributeError):
            setattr(section, key, None)


def test_every_default_obeys_its_own_type() -> None:
    assert msgspec.convert(msgspec.to_builtins(Config()), Config) == Config()
    for kind in sections(root()):
        for field in kind.fields:
            title = (
                (field.type.extra_json_schema or {}).get("title") if isinstance(field.type, inspect.Metadata) else ""
            )
            if field.required:
                continue
            if title == "duration":
                assert seconds(str(field.default)) > 0
            if title == "size":
                assert size_bytes(str(field.default)) > 0
