"""Writes the generated documents: of the configuration, of how clients are connected, of what the bench stores."""

from pathlib import Path

from luftpause.cli.connecting.page import connect_page
from luftpause.config.reference import reference_page, schema_json
from luftpause.testkit.bench.schema import schema_json as bench_schema_json

ROOT = Path(__file__).parent.parent

if __name__ == "__main__":
    (ROOT / "docs/reference").mkdir(parents=True, exist_ok=True)
    (ROOT / "docs/reference/config.md").write_text(reference_page(), encoding="utf-8")
    (ROOT / "docs/config.schema.json").write_text(schema_json(), encoding="utf-8")
    (ROOT / "docs/bench.schema.json").write_text(bench_schema_json(), encoding="utf-8")
    (ROOT / "docs/CONNECT.md").write_text(connect_page(), encoding="utf-8")
