"""Generated documents are what they would be if they were made now."""

import pytest

from luftpause.cli.connecting.page import connect_page
from luftpause.config.reference import reference_page, schema_json
from luftpause.testkit.bench.schema import schema_json as bench_schema_json
from repo.sources import ROOT


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("docs/reference/config.md", reference_page()),
        ("docs/config.schema.json", schema_json()),
        ("docs/bench.schema.json", bench_schema_json()),
        ("docs/CONNECT.md", connect_page()),
    ],
)
def test_a_generated_document_is_fresh(name: str, expected: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == expected, "stale: run `make docs`"
