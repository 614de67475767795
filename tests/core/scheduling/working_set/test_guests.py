"""Who has little in flight beside the others, and what those leave to it."""

from dataclasses import replace

from immutables import Map

from core.scheduling.builders import BATCH, INTERACTIVE, World, failed, placed
from core.scheduling.working_set.worlds import REPLY, begun, replica, seat, sized, world
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, PrincipalId, ReplicaId, TurnId
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.lineup import Lineup
from luftpause.core.scheduling.reasons import RoomKeptFor, WaitingForTokens
from luftpause.core.scheduling.standings import Payer, Standings
from luftpause.core.scheduling.working_set.guests import BESIDE, has_little, left_to_others, with_guest
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.room import free_tokens
from luftpause.core.scheduling.working_set.sending import PASSED_S
from luftpause.core.scheduling.working_set.state import Seat
from luftpause.core.scheduling.working_set.weights import EVEN, Weights

CROWD = ANONYMOUS_PRINCIPAL, CallerId("crowd")
ONE = ANONYMOUS_PRINCIPAL, CallerId("one")
LIMITS = WorkingSetLimits(fill=0.75, fill_interactive=0.85, fill_beside=0.5, first_tokens=0)
NOTHING = Standings(clock=0)
NOBODY = Lineup()


def taken(payer: Payer, tokens: int, known: Standings = NOTHING) -> Standings:
    return known.placed(payer, 1, tokens=tokens)


def used(**tokens: int) -> Standings:
    """What is known when principals have so many tokens in flight."""
    known = NOTHING
    for name, amount in tokens.items():
        known = taken((PrincipalId(name), CallerId(name)), amount, known)
    return known


def little(known: Standings, payer: Payer, tokens: int, weights: Weights, waiting: Lineup = NOBODY) -> bool:
    return has_little(known, waiting, payer, tokens, weights)


def lined_up(*payers: Payer) -> Lineup:
    line = Lineup()
    for number, payer in enumerate(payers):
        line = line.joined(payer, ((0, number if payer[0] != ANONYMOUS_PRINCIPAL else 0), (0, number)), 1)
    return line


def crowd(turn: str, tokens: int) -> TurnArrived:
    return sized(turn, tokens - REPLY, caller="crowd")


def one(turn: str, tokens: int = 800, *, batch: bool = True) -> TurnArrived:
    return sized(turn, tokens - REPLY, caller="one", batch=batch)


def crowded() -> World:
    """A crowd has 7,000 of 10,000 tokens at `a` and `b`, and nobody waits for a first token."""
    made = world("a", "b", limits=LIMITS)
    for turn in ("c1", "c2", "c3", "c4"):
        made.place(crowd(turn, 3500))
        made.tell(begun(turn))
    assert [seat(made, name).in_flight for name in ("a", "b")] == [7000, 7000]
    return made


def test_a_twelfth_of_all_that_is_in_flight_is_little() -> None:
    known = taken(CROWD, 11_000)
    assert little(known, ONE, 1000, EVEN)
    assert not little(known, ONE, 1001, EVEN)
    assert not little(known, CROWD, 1, EVEN)
    assert not little(NOTHING, ONE, 1, EVEN), "all that there is is not little"


def test_principals_are_compared_and_callers_of_one_that_has_half_of_everything() -> None:
    known = used(big=8000, middle=3000, small=500)
    assert little(known, (PrincipalId("small"), CallerId("x")), 500, EVEN)
    assert not little(known, (PrincipalId("middle"), CallerId("new name")), 10, EVEN)
    assert little(known, (PrincipalId("big"), CallerId("x")), 600, EVEN)


def test_where_many_wait_a_guest_has_half_of_an_even_share_at_most() -> None:
    callers = [(ANONYMOUS_PRINCIPAL, CallerId(f"c{number}")) for number in range(20)]
    principals = [(PrincipalId(f"p{number}"), CallerId("x")) for number in range(20)]
    known, others = taken(CROWD, 39_000), used(big=39_000)
    assert little(known, ONE, 1000, EVEN, lined_up(*callers))
    assert not little(known, ONE, 1001, EVEN, lined_up(*callers))
    assert little(known, ONE, 1001, EVEN, lined_up(*principals)), "names of others' change nothing"
    small = PrincipalId("small"), CallerId("x")
    assert little(others, small, 1000, EVEN, lined_up(*principals))
    assert not little(others, small, 1001, EVEN, lined_up(*principals))
    assert little(others, small, 1001, EVEN, lined_up(*callers)), "a principal's many names are one principal"


def test_among_many_who_are_alike_nobody_passes_those_who_wait() -> None:
    made = world("a", kv=30_000, limits=LIMITS)
    for number in range(12):
        made.place(sized(f"c{number}", 1800, caller=f"caller-{number}"))
        made.tell(begun(f"c{number}"))
    for number in range(12, 24):
        made.hold(sized(f"c{number}", 1800, caller=f"caller-{number}"))
    made.tell(failed("c0"))
    again = sized("again", 1800, caller="caller-0")
    assert made.hold(again).__class__ in (RoomKeptFor, WaitingForTokens)
    assert not made.state.held[TurnId("again")].little


def test_who_is_to_have_less_has_little_only_below_that() -> None:
    known = taken(CROWD, 7000)
    low = Weights(callers=Map({ONE[1]: 0.5}))
    assert little(known, ONE, 300, low)
    assert not little(known, ONE, 400, low)
    assert not little(used(other=7000), ONE, 600, Weights(principals=Map({ANONYMOUS_PRINCIPAL: 0.5})))


def test_all_together_are_left_four_times_what_guests_of_their_class_have() -> None:
    busy = with_guest(with_guest(Seat(in_flight=500), BATCH, 100), INTERACTIVE, 10)
    assert left_to_others(busy, BATCH) == BESIDE * 100
    assert left_to_others(busy, INTERACTIVE) == BESIDE * 10
    assert left_to_others(Seat(in_flight=500), BATCH) is None
    assert left_to_others(with_guest(Seat(in_flight=100), BATCH, 100), BATCH) is None, "nobody else is there"
    assert with_guest(with_guest(busy, BATCH, -100), INTERACTIVE, -10) == Seat(in_flight=500)


def test_a_guest_begins_beside_a_claim_and_others_make_way_until_it_is_done() -> None:
    made = crowded()
    assert made.hold(crowd("c5", 800)) == WaitingForTokens(replica=ReplicaId("a"), need=800, free=500)
    assert seat(made, "a").claimed_by == "c5"
    assert made.place(one("g")) == "a"
    assert (seat(made, "a").guests, seat(made, "a").batch_guests) == (0, 800)
    assert [turn for turn, each in made.state.turns.items() if each.guest] == ["g"]
    made.tell(begun("g"))
    assert free_tokens(replica(made, "a"), BATCH, LIMITS) == 5000 - 7800
    assert placed(made.tell(failed("c2"))) == [("c5", "b")], "it is not bound to what it claims"
    made.tell(begun("c5"))
    made.hold(crowd("c6", 3500))
    assert placed(made.tell(failed("c1"))) == [], "3,500 and the guest's 800 are in flight, and 5,000 may be"
    assert placed(made.tell(failed("g"))) == [("c6", "a")]
    assert not seat(made, "a").batch_guests


def test_guests_wait_behind_who_has_waited_for_long_so_that_the_largest_goes_some_time() -> None:
    made = world("a", limits=LIMITS)
    made.place(crowd("c1", 6000))
    made.tell(begun("c1"))
    made.hold(crowd("larger than all", 20_000))
    assert made.place(one("g1", 300)) == "a"
    made.later(PASSED_S)
    assert made.hold(sized("g2", 300 - REPLY, caller="third")) == RoomKeptFor(replica=ReplicaId("a"), caller=CROWD[1])
    assert placed(made.tell_all([failed("c1"), failed("g1")])) == [("larger than all", "a")]


def test_a_guest_waits_behind_what_is_closed_for_a_guest() -> None:
    made = world("a", limits=LIMITS)
    for turn in (crowd("c1", 7500), one("g", 500)):
        made.place(turn)
        made.tell(begun(str(turn.turn)))
    made.hold(sized("big", 700 - REPLY, caller="another"))
    assert made.state.held[TurnId("big")].little
    third = sized("small", 300 - REPLY, caller="third")
    assert made.hold(third) == RoomKeptFor(replica=ReplicaId("a"), caller=CallerId("another"))


def test_without_that_piece_nobody_is_a_guest() -> None:
    made = world("a", limits=replace(LIMITS, guests=False))
    made.place(crowd("c1", 7000))
    made.tell(begun("c1"))
    made.hold(one("g"))
    assert not made.state.held[TurnId("g")].little


def test_a_guest_of_another_class_changes_nothing() -> None:
    made = crowded()
    assert made.place(one("g", batch=False)) == "a"
    assert (seat(made).guests, seat(made).batch_guests) == (800, 0)
    assert free_tokens(replica(made), BATCH, LIMITS) == 7500 - 7800


def test_eight_names_leave_others_three_times_what_they_have() -> None:
    made = world("a", kv=100_000, limits=LIMITS)
    made.place(sized("honest", 22_000 - REPLY, caller="honest"))
    for number in range(8):
        made.place(sized(f"n{number}", 2000 - REPLY, caller=f"name-{number}"))
    assert seat(made).batch_guests == 8 * 2000
    free = free_tokens(replica(made), BATCH, LIMITS)
    assert free is not None
    assert 22_000 + free == 3 * 16_000
