import json

from luftpause.core.dialects.anthropic_messages.models import described, listed


def test_models_are_listed_and_described_alike() -> None:
    cards = [
        {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
        for name in ("a/b", "c", "d")
    ]
    assert [json.loads(described(card["id"])) for card in cards] == cards
    assert json.loads(listed(["a/b", "c", "d"])) == {
        "data": cards,
        "has_more": False,
        "first_id": "a/b",
        "last_id": "d",
    }


def test_where_nothing_is_served_the_list_is_empty() -> None:
    assert json.loads(listed([])) == {"data": [], "has_more": False, "first_id": None, "last_id": None}
