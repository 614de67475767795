"""Held turns in their order, in chunks."""

from bisect import insort

from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.places import CHUNK_MAX, NOWHERE, Place, all_of, first_of, inserted, number_of, taken_out


def place(number: int, at: float = 0.0) -> Place:
    return at, number, TurnId(f"t{number}")


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60))
def test_whoever_comes_and_goes_they_stand_in_order(changes: list[tuple[int, bool]]) -> None:
    places, model = NOWHERE, list[Place]()
    for number, (at, leaves) in enumerate(changes):
        if leaves and model:
            gone = model.pop(len(model) * at // 6)
            places = taken_out(places, gone)
        else:
            insort(model, place(number, float(at)))
            places = inserted(places, place(number, float(at)))
        assert [*all_of(places)] == model
        assert number_of(places) == len(model)
        assert not model or first_of(places) == model[0]


def test_of_many_few_are_copied_and_no_chunk_is_left_empty() -> None:
    places = NOWHERE
    for number in range(10 * CHUNK_MAX):
        places = inserted(places, place(number))
    assert max(map(len, places)) <= CHUNK_MAX
    assert len(places) <= 20
    between = inserted(places, place(7, at=-1.0))
    assert [one is other for one, other in zip(between[-5:], places[-5:], strict=True)] == [True] * 5
    for number in range(10 * CHUNK_MAX):
        places = taken_out(places, place(number))
        assert all(places)
    assert places == NOWHERE
