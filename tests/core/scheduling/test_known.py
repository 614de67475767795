from immutables import Map

from luftpause.core.scheduling.known import found, known


def test_what_is_there_is_found_and_what_is_not_is_none() -> None:
    there = Map({"a": 1, "b": None})

    assert (known(there, "a"), known(there, "b"), known(there, "c")) == (1, None, None)
    assert (found(there, "a"), found(there, "b"), found(there, "c")) == (1, None, None)


def test_a_key_of_two_parts_is_found_by_what_it_says() -> None:
    there: Map[tuple[str, str], str] = Map({("run", "model"): "found"})

    assert known(there, ("run", "model")) == found(there, ("run", "model")) == "found"
