"""The account of the scheduler: it accepts what the rules say and finds each way of breaking them."""

import pytest

from core.scheduling.builders import arrived, failed, finished, known_run, open_turn, probed, spec
from luftpause.core.model.ids import PeerId, ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import (
    Event,
    FirstTokenSeen,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    RunEnded,
    TurnsRenewed,
    WokeUp,
)
from luftpause.core.scheduling.reasons import PlacedBecause, WaitingForRoom
from luftpause.core.scheduling.state import Limits
from luftpause.testkit.sim.account import Account


def place(turn: str, replica: str, held_s: float = 0.0) -> PlaceTurn:
    return PlaceTurn(
        turn=TurnId(turn),
        run=RunId("r"),
        replica=ReplicaId(replica),
        why=PlacedBecause.LEAST_LOADED,
        held_s=held_s,
    )


def hold(turn: str) -> HoldTurn:
    return HoldTurn(turn=TurnId(turn), why=WaitingForRoom(replica=ReplicaId("a"), in_flight=1, capacity=1))


def refuse(turn: str, reason: RefusalReason) -> RefuseTurn:
    return RefuseTurn(turn=TurnId(turn), why=Refusal(reason=reason, message=""))


def forget(run: str) -> ForgetRun:
    return ForgetRun(run=RunId(run), why="")


class Told:
    """An account with two healthy replicas; `a` takes one turn, `b` any number unless told otherwise."""

    def __init__(self, *replicas: str) -> None:
        self.account = Account(Limits())
        self.now = 0.0
        for name in replicas or ("a", "b"):
            self.tell(ReplicaAdded(spec=spec(name)))
            self.tell(probed(name))

    def tell(self, event: Event, *actions: Action) -> None:
        self.account.take(event, self.now, actions)

    def breaks(self, expected: str, event: Event, *actions: Action) -> None:
        with pytest.raises(AssertionError, match=expected):
            self.tell(event, *actions)


def test_a_turn_needs_exactly_one_answer() -> None:
    Told().breaks("one offer, one answer", arrived("t"))
    Told().breaks("served twice", arrived("t"), place("t", "a"), place("t", "a"))
    Told().breaks("served twice, or never offered", arrived("t"), place("u", "a"))
    Told().breaks("cannot be served and led to", arrived("t", model="nope"), place("t", "a"))
    Told().breaks("was refused", arrived("t"), refuse("t", RefusalReason.UNKNOWN_MODEL))


def test_an_open_turn_is_answered_as_before() -> None:
    told = Told("a")
    told.tell(probed("a", 1, 1))
    told.tell(arrived("t"), place("t", "a"))
    told.tell(arrived("u"), hold("u"))
    told.tell(arrived("t"), place("t", "a"))
    told.tell(arrived("u"), hold("u"))
    told.breaks("runs on a, not on b", arrived("t"), place("t", "b"))
    told.breaks("waits and was placed", arrived("u"), place("u", "a"))
    told.breaks("runs and was told to wait", arrived("t"), hold("t"))


def test_nobody_is_held_beside_room_and_nobody_is_placed_without() -> None:
    Told().breaks("t waits although a has room", arrived("t"), hold("t"))
    told = Told("a")
    told.tell(probed("a", 1, 1))
    told.tell(arrived("t"), place("t", "a"))
    told.breaks("no room on a", arrived("u"), place("u", "a"))


def test_batch_leaves_the_room_that_interactive_runs_will_need() -> None:
    told = Told("a")
    told.tell(probed("a", 2, 1))
    told.tell(arrived("t", "r"), place("t", "a"))
    told.tell(arrived("x"), place("x", "a"))
    told.tell(finished("t", tools=1))
    told.breaks("no room on a", arrived("u", batch=True), place("u", "a"))
    told = Told("a")
    told.tell(probed("a", 1, 1))
    told.tell(arrived("t", "r"), place("t", "a"))
    told.tell(finished("t", tools=1))
    told.breaks("u waits although a has room", arrived("u", batch=True), hold("u"))


def test_a_pinned_run_stays_while_its_replica_lives() -> None:
    told = Told()
    told.tell(arrived("t", "r"), place("t", "a"))
    told.tell(finished("t", tools=1))
    told.breaks("went to b; it may go to \\['a'\\]", arrived("u", "r"), place("u", "b"))
    told = Told()
    told.tell(arrived("t", "r"), place("t", "a"))
    told.tell(finished("t", tools=1))
    told.tell(probed("a", healthy=False))
    told.tell(probed("a"))
    told.tell(arrived("u", "r"), place("u", "b"))


def test_a_replica_that_comes_back_takes_few_turns_and_more_as_it_answers_them() -> None:
    told = Told("a")
    told.tell(probed("a", healthy=False))
    for number in range(6):
        told.tell(arrived(f"t{number}"), hold(f"t{number}"))
    told.breaks("no room on a", probed("a"), *(place(f"t{number}", "a") for number in range(5)))
    told = Told("a")
    told.tell(probed("a", healthy=False))
    told.tell(probed("a"))
    for number in range(4):
        told.tell(arrived(f"t{number}"), place(f"t{number}", "a"))
    told.tell(arrived("u"), hold("u"))
    told.tell(arrived("v"), hold("v"))
    told.breaks("v waits although a has room", finished("t0"), place("u", "a"))


def test_a_replica_that_refused_takes_half_of_what_it_had() -> None:
    told = Told("a")
    for number in range(4):
        told.tell(arrived(f"t{number}"), place(f"t{number}", "a"))
    told.tell(failed("t0", retry_after_s=1.0))
    told.now = 1.0
    told.tell(WokeUp())
    told.tell(arrived("u"), hold("u"))
    told.tell(failed("t1"))
    told.breaks("u waits although a has room", finished("t2"))


def test_a_run_that_comes_back_finds_a_place_among_batch_and_bars_it_until_its_first_token() -> None:
    def home_full_of_batch() -> Told:
        told = Told("a")
        told.tell(arrived("i1", "r"), place("i1", "a"))
        told.tell(finished("i1", tools=1))
        for number in range(2):
            told.tell(arrived(f"b{number}", batch=True), place(f"b{number}", "a"))
        told.tell(probed("a", 2, 1))
        told.tell(arrived("b3", batch=True), hold("b3"))
        return told

    home_full_of_batch().breaks("comes back to a, where batch has its place", arrived("i2", "r"), hold("i2"))
    home_full_of_batch().breaks("no room on a", arrived("x"), place("x", "a"))
    told = home_full_of_batch()
    told.tell(arrived("i2", "r"), place("i2", "a"))
    told.tell(failed("b0"))
    told.tell(failed("b1"))
    told.breaks("b3 waits although a has room", FirstTokenSeen(turn=TurnId("i2")))
    told = home_full_of_batch()
    told.tell(arrived("i2", "r"), place("i2", "a"))
    told.tell(failed("b0"))
    told.breaks("no room on a", failed("b1"), place("b3", "a"))


def test_the_fair_order_is_kept() -> None:
    told = Told("a")
    told.tell(probed("a", 1, 1))
    told.tell(arrived("t"), place("t", "a"))
    told.tell(arrived("u", batch=True), hold("u"))
    told.tell(arrived("v"), hold("v"))
    told.breaks("u went to a ahead of v", failed("t"), place("u", "a"))


def test_callers_take_turns() -> None:
    told = Told("a")
    told.tell(probed("a", 1, 1))
    told.tell(arrived("t", caller="flood"), place("t", "a"))
    told.tell(arrived("f1", caller="flood"), hold("f1"))
    told.tell(arrived("f2", caller="flood"), hold("f2"))
    told.tell(arrived("q1", caller="quiet"), hold("q1"))
    told.tell(failed("t"), place("f1", "a"))
    told.breaks("f2 went to a ahead of q1", failed("f1"), place("f2", "a"))


def test_a_wait_is_told_as_long_as_it_was() -> None:
    told = Told("a")
    told.tell(probed("a", 1, 1))
    told.tell(arrived("t"), place("t", "a"))
    told.tell(arrived("u"), hold("u"))
    told.now = 5.0
    told.breaks("u waited 5.0, not 4.0", failed("t"), place("u", "a", held_s=4.0))


def test_runs_and_turns_are_forgotten_when_it_is_time_and_not_before() -> None:
    told = Told("a")
    told.tell(arrived("t", "r"), place("t", "a"))
    told.now = 599.0
    told.tell(WokeUp())
    told.tell(TurnsRenewed(turns=(TurnId("t"),)))
    told.now = 1198.0
    told.breaks("r was forgotten too early", WokeUp(), forget("r"))
    told.now = 1199.0
    told.tell(WokeUp())
    assert not told.account.book.flying
    told.now = 2999.0
    told.breaks("never forgotten", WokeUp())


def test_what_a_held_turn_is_owed_when_its_run_ends_or_its_time_is_over() -> None:
    told = Told("a")
    told.tell(probed("a", healthy=False))
    told.tell(arrived("t", "r"), hold("t"))
    told.breaks("never refused", RunEnded(run=RunId("r")), forget("r"))
    told = Told("a")
    told.tell(probed("a", healthy=False))
    told.tell(arrived("t", "r"), hold("t"))
    told.now = 600.0
    told.tell(WokeUp(), refuse("t", RefusalReason.EXPIRED))


def test_a_lost_dataplane_frees_its_turns_and_one_that_returns_tells_them_again() -> None:
    told = Told("a")
    told.tell(probed("a", 1, 1))
    told.tell(arrived("t", peer="p"), place("t", "a"))
    told.tell(arrived("u", peer="q"), hold("u"))
    told.tell(PeerLost(peer=PeerId("p")), place("u", "a"))
    told.tell(PeerResynced(peer=PeerId("p"), turns=(open_turn("t", "r", "a"),), runs=(known_run("s", "a"),)))
    assert set(told.account.book.flying) == {"t", "u"}
    told.tell(arrived("v", "s"), hold("v"))
