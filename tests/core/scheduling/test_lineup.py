"""Who waits, in the order in which they go."""

from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.lineup import Candidate, Lineup

ALICE, BOB = PrincipalId("alice"), PrincipalId("bob")
X, Y = CallerId("x"), CallerId("y")
ONE, OTHER = 1, 2
WAITING = (
    Lineup()
    .joined((ALICE, X), ((0, 5), (0, 5)), ONE)
    .joined((ALICE, Y), ((0, 5), (1, 2)), OTHER)
    .joined((BOB, X), ((1, 3), (1, 3)), ONE | OTHER)
)


def order(lineup: Lineup, among: int = -1) -> list[tuple[str, str]]:
    return [(principal, caller) for principal, caller, _ in lineup.in_order(among)]


def test_principals_stand_by_their_standing_and_their_callers_below_them_by_theirs() -> None:
    assert order(WAITING) == [(ALICE, X), (ALICE, Y), (BOB, X)]
    assert order(WAITING, OTHER) == [(ALICE, Y), (BOB, X)]


def test_the_first_of_a_queue_is_the_first_who_stands_in_it() -> None:
    assert WAITING.first(ONE) == Candidate(ALICE, X, ONE)
    assert WAITING.first(OTHER) == Candidate(ALICE, Y, OTHER)
    assert WAITING.first(ONE | OTHER) == Candidate(ALICE, X, ONE)
    assert WAITING.first(4) is None
    assert Lineup().first(ONE) is None


def test_a_standing_that_changes_moves_a_principal_with_all_its_callers() -> None:
    assert order(WAITING.principal_moved((0, 5), (2, 9))) == [(BOB, X), (ALICE, X), (ALICE, Y)]
    moved = WAITING.moved((ALICE, X), ((0, 5), (0, 5)), ((1, 9), (1, 9)))
    assert order(moved) == [(BOB, X), (ALICE, Y), (ALICE, X)]


def test_who_stands_nowhere_any_more_is_not_in_it() -> None:
    left = WAITING.left((ALICE, X), ((0, 5), (0, 5)), ONE)
    assert left.first(ONE) == Candidate(BOB, X, ONE | OTHER)
    gone = left.left((ALICE, Y), ((0, 5), (1, 2)), OTHER).left((BOB, X), ((1, 3), (1, 3)), ONE)
    assert order(gone) == [(BOB, X)]
    assert gone.left((BOB, X), ((1, 3), (1, 3)), OTHER) == Lineup()
