from luftpause.core.dialects.call_ids import CallIds


def test_an_engines_ids_are_the_clients() -> None:
    ids = CallIds("call_", "t.1")
    assert [ids.give("a"), ids.give("b")] == ["a", "b"]
    assert ids.given() == ("a", "b")


def test_what_is_missing_or_was_given_before_is_made_up_and_learned() -> None:
    ids = CallIds("toolu_", "t.1")
    given = [ids.give(engines) for engines in ("a", "", "a", "", "b")]
    assert given[0] == "a"
    assert given[4] == "b"
    assert len(set(given)) == 5
    assert all(each.startswith("toolu_") for each in given[1:4])
    assert list(ids.given()) == given


def test_no_other_turn_has_the_same_made_up_ids_and_none_tells_its_turn() -> None:
    one, other, again = CallIds("call_", "dp.1"), CallIds("call_", "dp.2"), CallIds("call_", "dp.1")
    assert one.give("") == again.give("") != other.give("")
    assert "dp" not in one.given()[0]
