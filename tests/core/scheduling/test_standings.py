"""What each party has had of the engines."""

from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.standings import Standings

ALICE, BOB = PrincipalId("alice"), PrincipalId("bob")
X, Y = CallerId("x"), CallerId("y")


def test_turns_in_flight_are_counted_for_the_principal_and_for_its_caller() -> None:
    of, resting = Standings().placed(ALICE, X, 1).placed(ALICE, Y, 2)
    assert dict(of) == {ALICE: (2, 2), (ALICE, X): (1, 1), (ALICE, Y): (1, 2)}
    assert not resting


def test_who_has_nothing_in_flight_is_remembered_only_while_somebody_waits() -> None:
    busy = Standings().placed(ALICE, X, 1)
    assert busy.ended(ALICE, X, is_remembered=False) == Standings()
    kept = busy.ended(ALICE, X, is_remembered=True)
    assert dict(kept.of) == {ALICE: (0, 1), (ALICE, X): (0, 1)}
    assert set(kept.resting) == set(kept.of)
    assert kept.settled([]) == Standings()


def test_who_begins_to_wait_counts_as_served_then_unless_it_is_remembered() -> None:
    told = Standings().placed(ALICE, X, 1).queued(ALICE, X, 2).queued(BOB, X, 3)
    assert dict(told.of) == {ALICE: (1, 1), (ALICE, X): (1, 1), BOB: (0, 3), (BOB, X): (0, 3)}
    assert told.queued(BOB, X, 4) is told
    placed = told.placed(BOB, X, 5)
    assert (placed.of[BOB], set(placed.resting)) == ((1, 5), set())


def test_settling_keeps_those_that_wait_or_have_turns_in_flight() -> None:
    told = Standings().queued(ALICE, X, 1).queued(ALICE, Y, 2).placed(BOB, X, 3)
    settled = told.settled([(ALICE, Y)])
    assert set(settled.of) == {ALICE, (ALICE, Y), BOB, (BOB, X)}
    assert set(settled.resting) == {ALICE, (ALICE, Y)}
