"""What changed in a table since it was told."""

from luftpause.services.scheduler.rows import Rows


def test_only_what_changed_is_told_and_the_order_only_when_it_did() -> None:
    rows = Rows()
    assert rows.put([("a", {"n": 1}), ("b", {"n": 2})], 1)
    assert rows.since(0) == {"rows": {"a": {"n": 1}, "b": {"n": 2}}, "order": ["a", "b"]}
    assert rows.since(1) == {}
    assert not rows.put([("a", {"n": 1}), ("b", {"n": 2})], 2)
    assert rows.since(1) == {}
    assert rows.put([("a", {"n": 1}), ("b", {"n": 3})], 3)
    assert rows.since(2) == {"rows": {"b": {"n": 3}}}
    assert rows.put([("b", {"n": 3}), ("a", {"n": 1})], 4)
    assert rows.since(3) == {"order": ["b", "a"]}
    assert rows.put([("c", {"n": 1})], 5)
    assert rows.since(4) == {"rows": {"c": {"n": 1}}, "order": ["c"]}
    assert rows.since(0) == rows.since(4), "what is gone is forgotten"
    assert rows.put([], 6)
    assert rows.since(5) == {"order": []}
