import json

from luftpause.core.dialects.gemini.models import described, listed


def test_models_are_listed_and_described_alike() -> None:
    card = json.loads(described("a/b:8b"))
    assert card["name"] == "models/a/b:8b"
    assert "countTokens" in card["supportedGenerationMethods"]
    assert json.loads(listed(["a/b:8b"])) == {"models": [card]}
