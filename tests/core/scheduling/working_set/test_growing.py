"""A turn whose answer outgrows its charge is charged with more, everywhere, and with what it came to in the end."""

from dataclasses import replace

import pytest

from core.scheduling.builders import World, failed
from core.scheduling.working_set.worlds import answered, begun, seat, sized, world
from luftpause.core.model.charges import still_to_come
from luftpause.core.model.ids import PeerId, TurnId
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.events import AnswerGrew, OpenTurn, PeerResynced, TurnsRenewed
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Turn
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits

TOKEN = 200
"""Bytes that a token of an answer comes to."""


def taught(made: World, caller: str = "writer", reply: int = 100) -> World:
    """Let a caller's answers be known."""
    for number in range(5):
        made.place(sized(f"{caller}-{number}", 1000, caller=caller))
        ended = answered(f"{caller}-{number}", 1000, reply=reply)
        made.tell(replace(ended, reply_bytes=reply * TOKEN))
    return made


def grew(turn: str, tokens: int) -> AnswerGrew:
    return AnswerGrew(turn=TurnId(turn), reply_bytes=tokens * TOKEN)


def turn_of(made: World, turn: str) -> Turn:
    return made.state.turns[TurnId(turn)]


def had(made: World) -> tuple[int, int]:
    """What the writer was served, and what of it is in flight."""
    (account,) = [each for party, each in made.state.standings.of.items() if isinstance(party, tuple)]
    return account.standing[0], account.tokens


def test_its_replica_its_payer_and_all_together_are_charged() -> None:
    made = taught(world())
    (placed,) = [each for each in made.tell(sized("w", 1000, caller="writer")) if isinstance(each, PlaceTurn)]
    assert placed.charge is not None
    assert (placed.charge.prompt, placed.charge.reply, placed.charge.reply_bytes) == (1000, 100, 100 * TOKEN)
    made.tell(begun("w"))
    service, tokens = had(made)
    assert (seat(made).in_flight, tokens, made.state.standings.tokens) == (1100, 1100, 1100)
    assert made.tell(grew("w", 2000)) == ()
    more = 1000 + 2000 + still_to_come(2000)
    assert (seat(made).in_flight, turn_of(made, "w").tokens, made.state.standings.tokens) == (more, more, more)
    assert had(made) == (service + 20 * 1900, more), "it pays for what it had, not for what may come"
    check(made.state)


@pytest.mark.parametrize("grows", [True, False])
def test_whatever_was_thought_meanwhile_its_end_settles_what_it_was_worth(grows: bool) -> None:
    made = taught(world())
    made.place(sized("w", 1000, caller="writer"))
    made.place(sized("stays", 1000, caller="writer"))
    if grows:
        made.tell(grew("w", 700))
    made.tell(answered("w", 1000, reply=900))
    before, _ = had(made)
    again = taught(world())
    again.place(sized("w", 1000, caller="writer"))
    again.place(sized("stays", 1000, caller="writer"))
    again.tell(answered("w", 1000, reply=900))
    assert before == had(again)[0]
    assert seat(made).in_flight == turn_of(made, "stays").tokens


def test_whoever_is_to_begin_beside_it_is_held_by_what_it_has_become() -> None:
    made = taught(world(kv=10_000))
    made.place(sized("w", 1000, caller="writer"))
    made.tell(begun("w"))
    made.tell(grew("w", 6000))
    made.hold(sized("n", 2000, batch=False, caller="reader"))
    made.tell(answered("w", 1000, reply=6100))
    assert TurnId("n") in made.state.turns


def test_late_twice_and_unknown_ones_change_nothing_but_show_life() -> None:
    made = taught(world())
    made.tell(grew("writer-0", 9000))
    made.place(sized("w", 1000, caller="writer"))
    made.tell(grew("w", 500))
    once = made.state
    made.tell(grew("w", 500))
    made.tell(grew("w", 5))
    made.tell(AnswerGrew(turn=TurnId("w"), reply_bytes=-1))
    made.tell(grew("nobody", 5000))
    assert (made.state.turns, made.state.replicas) == (once.turns, once.replicas)
    made.tell(failed("w"))
    assert (seat(made).in_flight, made.state.standings.tokens) == (0, 0)
    made.later(599)
    made.place(sized("x", 1000, caller="writer"))
    made.later(599)
    made.tell(grew("x", 1))
    made.later(599)
    made.tell(TurnsRenewed(turns=()))
    assert TurnId("x") in made.state.turns


def test_what_was_kept_where_it_fills_all_over_is_not_expected_there() -> None:
    made = taught(world(kv=10_000))
    made.place(sized("w", 1000, caller="writer"))
    made.later(5)
    made.tell(grew("w", 9000))
    assert seat(made).overfilled_at == made.now


def test_a_guest_that_grows_leaves_others_four_times_as_much_more() -> None:
    made = taught(world(kv=100_000), caller="small")
    for number in range(5):
        made.place(sized(f"big-{number}", 8000, caller="crowd"))
        made.tell(begun(f"big-{number}"))
    made.place(sized("g", 1000, caller="small"))
    assert turn_of(made, "g").guest
    before = seat(made).batch_guests
    made.tell(grew("g", 1000))
    assert seat(made).batch_guests == before + turn_of(made, "g").tokens - 1100
    check(made.state)


@pytest.mark.parametrize("piece", [True, False])
def test_nobody_is_asked_to_tell_where_nothing_is_known_or_the_piece_is_off(piece: bool) -> None:
    made = world(limits=WorkingSetLimits(fill=1.0, corrections=piece))
    (first,) = made.tell(sized("w", 1000, caller="writer"))
    assert isinstance(first, PlaceTurn)
    assert first.charge is not None
    assert first.charge.reply_bytes == 0
    made.tell(answered("w", 1000))
    (second,) = taught(made).tell(sized("x", 1000, caller="writer"))
    assert isinstance(second, PlaceTurn)
    assert second.charge is not None
    assert bool(second.charge.reply_bytes) is piece


def test_a_restarted_scheduler_is_told_what_its_turns_are_charged_with_and_hears_of_them_further() -> None:
    made = taught(world())
    made.place(sized("w", 1000, caller="writer"))
    made.tell(grew("w", 1000))
    known, after = turn_of(made, "w"), world()
    told = OpenTurn(
        turn=TurnId("w"),
        run=known.arrival.run,
        replica=known.replica,
        model=known.arrival.model,
        kind=known.arrival.kind,
        service_class=known.arrival.service_class,
        caller=known.arrival.caller,
        principal=known.arrival.principal,
        charge=known.charge,
        reply_max=3000,
    )
    after.tell(PeerResynced(peer=PeerId("p"), turns=(told,), runs=()))
    assert seat(after).in_flight == known.tokens
    after.tell(grew("w", 2800))
    assert seat(after).in_flight == 1000 + 3000, "its request allows no more"
    after.tell(answered("w", 1000, reply=2900))
    assert seat(after).in_flight == 0
    check(after.state)
