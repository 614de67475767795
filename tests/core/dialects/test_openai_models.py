import json

from luftpause.core.dialects.openai_models import described, listed


def test_models_are_listed_and_described_alike() -> None:
    card = {"id": "a/b", "object": "model", "created": 0, "owned_by": "luftpause"}
    assert json.loads(described("a/b")) == card
    assert json.loads(listed(["a/b"])) == {"object": "list", "data": [card]}
    assert json.loads(listed([]))["data"] == []
