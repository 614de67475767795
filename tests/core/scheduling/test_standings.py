"""What each party has had of the engines."""

from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.standings import RESTING_SPARE, Party, Standing, Standings

ALICE, BOB = PrincipalId("alice"), PrincipalId("bob")
AX, AY = (ALICE, CallerId("x")), (ALICE, CallerId("y"))
BX = (BOB, CallerId("x"))


def standing(told: Standings) -> dict[Party, Standing]:
    return {party: account.standing for party, account in told.of.items()}


def waiting(told: Standings) -> dict[Party, int]:
    return {party: account.waiting for party, account in told.of.items() if account.waiting}


def test_turns_in_flight_are_counted_for_the_principal_and_for_its_caller() -> None:
    told = Standings().placed(AX, 1).placed(AY, 2)
    assert standing(told) == {ALICE: (2, 2), AX: (1, 1), AY: (1, 2)}
    assert [told.of[party].flying for party in (ALICE, AX, AY)] == [2, 1, 1]
    assert not told.waiting
    assert not told.resting


def test_who_has_no_open_turn_is_remembered_only_while_somebody_waits() -> None:
    busy = Standings().placed(AX, 1)
    assert busy.ended(AX) == Standings()
    rested = busy.queued(BX, 2).ended(AX)
    assert dict(rested.resting) == {ALICE: (0, 1), AX: (0, 1)}
    assert set(rested.of) == {BOB, BX}
    assert rested.settled() is rested
    assert rested.unqueued(BX).settled() == Standings()


def test_who_begins_to_wait_counts_as_served_then_unless_it_is_remembered() -> None:
    told = Standings().placed(AX, 1).queued(AX, 2).queued(BX, 3)
    assert standing(told) == {ALICE: (1, 1), AX: (1, 1), BOB: (0, 3), BX: (0, 3)}
    again = told.queued(BX, 4)
    assert standing(again) == standing(told)
    assert waiting(again) == {ALICE: 1, AX: 1, BOB: 2, BX: 2}
    assert again.waiting == told.waiting == 4
    left = told.ended(AX).unqueued(AX)
    assert dict(left.resting) == {ALICE: (0, 1), AX: (0, 1)}
    assert standing(left.queued(AX, 9))[AX] == (0, 1), "remembered, so it does not go to the end of the line"
    assert standing(left.placed(AX, 9))[AX] == (1, 9)
    assert not left.placed(AX, 9).resting


def test_one_of_several_turns_that_waits_no_more_leaves_the_others() -> None:
    told = Standings().queued(AX, 1).queued(AX, 2).unqueued(AX)
    assert waiting(told) == {ALICE: 1, AX: 1}
    assert standing(told) == {ALICE: (0, 1), AX: (0, 1)}


def test_service_counts_for_a_principal_and_for_its_caller_as_each_is_weighed() -> None:
    told = Standings(clock=0).placed(AX, 1, (10, 40)).placed(BX, 2, (30, 30))
    assert standing(told) == {ALICE: (10, 1), AX: (40, 1), BOB: (30, 2), BX: (30, 2)}
    settled = standing(told.settled_service(AX, (-5, -20)))
    assert (settled[ALICE], settled[AX]) == ((5, 1), (20, 1))


def test_tokens_in_flight_are_counted_for_each_party_and_altogether() -> None:
    told = Standings(clock=0).placed(AX, 1, tokens=70).placed(AY, 2, tokens=30)
    assert [told.tokens_of(party) for party in (ALICE, AX, AY, BX)] == [100, 70, 30, 0]
    assert told.tokens == 100
    assert told.ended(AX, 70).ended(AY, 30) == Standings(clock=0)


def test_too_many_who_rest_are_forgotten_at_once() -> None:
    told = Standings().queued(BX, 0)
    for number in range(RESTING_SPARE + 1):
        payer = ALICE, CallerId(f"c{number}")
        told = told.placed(payer, number + 1).ended(payer).settled()
    assert len(told.resting) == RESTING_SPARE + 2, "as many as are spared, and one more for each of the two that wait"
    payer = ALICE, CallerId("one too many")
    told = told.placed(payer, 5000).ended(payer).settled()
    assert not told.resting
    assert set(told.of) == {BOB, BX}


def test_a_turn_that_ends_for_another_worth_is_one_that_was_settled_and_then_ended() -> None:
    busy = Standings(clock=0).placed(AX, 1, (50, 50), 9).placed(AX, 2, (10, 20), 5).placed(BX, 3, (7, 7), 1)
    for change in ((0, 0), (12, 30), (-5, -40)):
        for told in (busy, busy.ended(BX, 1), busy.ended(AX, 9), busy.ended(AX, 9).queued(BX, 4)):
            assert told.ended(AX, 5, change) == told.settled_service(AX, change).ended(AX, 5)
