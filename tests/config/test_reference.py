"""The generated documents say all that the schema says."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from luftpause.config.reference import reference_page, schema_json, undescribed
from luftpause.config.shape import known_keys

EXAMPLE = Path(__file__).parent.parent.parent / "examples/luftpause.toml"


def test_every_key_is_described_in_the_schema() -> None:
    assert undescribed() == []


def test_the_page_has_every_section_and_key() -> None:
    page = reference_page()
    for section in ("[[replicas]]", "[launcher]", "[[launcher.models]]", "[[tools]]", "[dataplane]", "[runtime]"):
        assert f"## `{section}`" in page
    for key in known_keys():
        assert f"`{key.rpartition('.')[2]}`" in page or f"[{key}]" in page
    assert "| `port` | `8080` | a whole number from 0 to 65535 |" in page
    assert "| `url` | required | a string |" in page


def test_the_json_schema_accepts_the_example_and_refuses_mistakes() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_json()))
    validator.check_schema(validator.schema)
    tree = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    validator.validate(tree)
    mistakes: list[object] = [{"dataplne": {}}, {"dataplane": {"port": 70_000}}, {"replicas": [{}]}]
    for mistake in mistakes:
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(mistake)


def test_the_json_schema_describes_keys() -> None:
    definitions = json.loads(schema_json())["$defs"]
    assert definitions["Replica"]["properties"]["load_from"]["description"].startswith("when the URL is a router")
    assert definitions["Replica"]["description"] == "An endpoint that already runs somewhere."
