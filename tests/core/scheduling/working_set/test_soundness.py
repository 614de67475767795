"""A state that is not sound is noticed."""

import pytest
from immutables import Map

from core.scheduling.builders import World
from core.scheduling.working_set.worlds import answered, replica, sized, world
from luftpause.core.model.ids import ModelName as Model
from luftpause.core.model.ids import ReplicaId, RunId, TurnId
from luftpause.core.scheduling.state import State
from luftpause.core.scheduling.working_set.soundness import check_working_set

pytestmark = pytest.mark.interpreted  # it takes named tuples apart, which compiled ones do not let it

A = ReplicaId("a")


def busy() -> World:
    made = world()
    made.place(sized("t0", 1000, "out"))
    made.tell(answered("t0", 1000, tool="look"))
    made.place(sized("t1", 6000))
    made.hold(sized("t2", 5000))
    return made


def seat_with(state: State, **changes: object) -> State:
    known = state.replicas[A]
    seat = type(known.seat)(**{**known.seat._asdict(), **changes})
    return state._replace(replicas=state.replicas.set(A, known._replace(seat=seat)))


def test_a_sound_state_passes() -> None:
    check_working_set(busy().state)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_flight": 1}, "is charged 1"),
        ({"kept": 7}, "keeps 7"),
        ({"claimed_by": None}, "closed for"),
    ],
)
def test_books_that_differ_from_the_facts_are_noticed(changes: dict[str, object], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_working_set(seat_with(busy().state, **changes))


def test_what_is_in_use_is_counted_by_who_uses_it() -> None:
    state = busy().state
    free = Map({party: account._replace(tokens=0) for party, account in state.standings.of.items()})
    for changes, message in (({"of": free}, "in use are"), ({"tokens": 1}, "in flight are 1 tokens")):
        known = state.standings._replace(**changes)
        with pytest.raises(AssertionError, match=message):
            check_working_set(state._replace(standings=known))


def test_guests_that_are_not_there_are_noticed() -> None:
    for guests in ({"guests": 5}, {"batch_guests": 5}):
        with pytest.raises(AssertionError, match="a has guests of"):
            check_working_set(seat_with(busy().state, **guests))


def test_a_turn_that_is_held_beside_room_is_noticed() -> None:
    made = busy()
    small = made.state.held[TurnId("t2")]._replace(need=1)
    with pytest.raises(AssertionError, match="held beside a"):
        check_working_set(made.state._replace(held=made.state.held.set(TurnId("t2"), small)))


def test_a_place_that_nobody_ever_takes_is_noticed() -> None:
    made = busy()
    part = RunId("out"), Model("m")
    forgotten = made.state.working_set._replace(leases=made.state.working_set.leases.drop(part))
    with pytest.raises(AssertionError, match="still needs its place"):
        check_working_set(made.state._replace(working_set=forgotten))


def test_another_policy_keeps_no_memory() -> None:
    made = World()
    check_working_set(made.state)
    known = busy()
    with pytest.raises(AssertionError, match="another policy"):
        check_working_set(made.state._replace(replicas=made.state.replicas.set(A, replica(known))))
