"""Writes the generated documents: the configuration reference, its JSON schema, and how clients are connected."""

from pathlib import Path

from luftpause.cli.connecting.page import connect_page
from luftpause.config.reference import reference_page, schema_json

ROOT = Path(__file__).parent.parent

if __name__ == "__main__":
    (ROOT / "docs/reference").mkdir(parents=True, exist_ok=True)
    (ROOT / "docs/reference/config.md").write_text(reference_page(), encoding="utf-8")
    (ROOT / "docs/config.schema.json").write_text(schema_json(), encoding="utf-8")
    (ROOT / "docs/CONNECT.md").write_text(connect_page(), encoding="utf-8")
