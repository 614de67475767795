"""Writes the generated documents: the configuration reference and the JSON schema of luftpause.toml."""

from pathlib import Path

from luftpause.config.reference import reference_page, schema_json

ROOT = Path(__file__).parent.parent

if __name__ == "__main__":
    (ROOT / "docs/reference").mkdir(parents=True, exist_ok=True)
    (ROOT / "docs/reference/config.md").write_text(reference_page(), encoding="utf-8")
    (ROOT / "docs/config.schema.json").write_text(schema_json(), encoding="utf-8")
