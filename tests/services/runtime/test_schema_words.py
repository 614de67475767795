from luftpause.services.runtime.schema_words import is_of, kinds_of, shown, target_of


def test_the_types_of_a_schema_are_those_it_names_or_those_of_its_values() -> None:
    assert kinds_of({"type": "string"}) == ("string",)
    assert kinds_of({"type": ["string", "null"]}) == ("string", "null")
    assert kinds_of({"enum": [1, "a"]}) == ("string", "number", "integer")
    assert kinds_of({"const": None}) == ("null",)
    assert kinds_of({}) == ()


def test_a_value_is_of_a_type() -> None:
    assert is_of(True, "boolean")
    assert not is_of(True, "integer")
    assert is_of(2.0, "integer")
    assert not is_of(2.5, "integer")
    assert is_of("x", "no such type")


def test_a_reference_points_into_the_schema_or_nowhere() -> None:
    schema = {"$defs": {"a/b": {"type": "null"}}}
    assert target_of("#/$defs/a~1b", schema) == {"type": "null"}
    assert target_of("#", schema) is schema
    assert target_of("#/nowhere", schema, otherwise=None) is None
    assert target_of("http://example.org", schema) is True


def test_a_value_is_told_short() -> None:
    assert shown("a" * 1000) == "'" + "a" * 59 + "…"
    assert shown([1, 2]) == "[1, 2]"
