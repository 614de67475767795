"""Turns that were given up, and are heard of again."""

import pytest

from core.scheduling.builders import World, arrived, failed, finished, only, open_turn, placed, probed, spec
from luftpause.core.model.ids import PeerId, RunId, TurnId
from luftpause.core.scheduling import lapsed
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.events import (
    Event,
    FirstTokenSeen,
    PeerLost,
    PeerResynced,
    RunEnded,
    RunPhase,
    TurnAbandoned,
    TurnsRenewed,
    WokeUp,
)
from luftpause.core.scheduling.state import Limits

LIMITS = Limits(turn_timeout_s=100.0, run_idle_expiry_s=1000.0)
T = TurnId("t")


def frozen() -> World:
    """One turn of a run that was given up."""
    world = World(spec("a"), spec("b"), limits=LIMITS)
    world.place(arrived("t", "r"))
    world.later(101)
    world.tell(WokeUp())
    assert world.in_flight("a") == 0
    return world


@pytest.mark.parametrize("sign", [TurnsRenewed(turns=(T,)), FirstTokenSeen(turn=T)])
def test_any_sign_of_life_charges_it_again_once(sign: Event) -> None:
    world = frozen()
    world.tell_all([sign, sign])
    assert world.in_flight("a") == 1
    assert world.phase("r") is RunPhase.GENERATING
    world.later(101)
    world.tell(WokeUp())
    assert world.in_flight("a") == 0


def test_offered_again_it_has_the_place_that_it_had() -> None:
    world = World(spec("a"), limits=LIMITS)
    first = only(world.tell(arrived("t", "r")), PlaceTurn)
    world.later(101)
    world.tell(WokeUp())
    assert only(world.tell(arrived("t", "r")), PlaceTurn) == first
    assert world.in_flight("a") == 1


@pytest.mark.parametrize(
    ("end", "phase"),
    [(finished("t", tools=1), RunPhase.PAUSED), (failed("t"), RunPhase.IDLE), (TurnAbandoned(turn=T), RunPhase.IDLE)],
)
def test_its_end_is_an_end_like_any_other(end: Event, phase: RunPhase) -> None:
    world = frozen()
    world.tell(end)
    assert world.phase("r") is phase
    assert world.in_flight("a") == 0
    assert not world.state.lapsed


def test_a_run_that_went_on_elsewhere_keeps_its_home_beside_it() -> None:
    world = frozen()
    assert [world.place(arrived(turn)) for turn in ("o1", "o2")] == ["b", "a"]
    world.tell(finished("o1"))
    assert world.place(arrived("t2", "r")) == "b"
    world.tell(TurnsRenewed(turns=(T,)))
    assert world.place(arrived("t3", "r")) == "b"


def test_it_does_not_bring_back_a_run_that_was_ended() -> None:
    world = frozen()
    world.tell_all([RunEnded(run=RunId("r")), TurnsRenewed(turns=(T,))])
    assert world.in_flight("a") == 1
    assert world.phase("r") is None
    world.place(arrived("t2", "r"))
    world.tell(finished("t", tools=1))
    assert world.phase("r") is RunPhase.GENERATING


def test_a_dataplane_that_is_gone_or_tells_what_it_has_has_no_more_than_that() -> None:
    world = frozen()
    world.tell_all([PeerLost(peer=PeerId("p")), TurnsRenewed(turns=(T,))])
    assert world.in_flight("a") == 0
    world = frozen()
    world.tell_all([PeerResynced(peer=PeerId("p"), turns=(), runs=()), finished("t", tools=1)])
    assert world.phase("r") is RunPhase.IDLE
    world = frozen()
    world.tell(PeerResynced(peer=PeerId("q"), turns=(open_turn("t", "r", "b"),), runs=()))
    world.tell(TurnsRenewed(turns=(T,)))
    assert (world.in_flight("a"), world.in_flight("b")) == (0, 1)


def test_it_takes_room_again() -> None:
    world = World(spec("a"), limits=LIMITS)
    world.place(arrived("t", "r"))
    world.later(101)
    world.tell_all([WokeUp(), probed("a", 1, 1), TurnsRenewed(turns=(T,))])
    world.hold(arrived("t2"))
    assert placed(world.tell(finished("t"))) == [("t2", "a")]


def test_so_many_are_remembered_and_those_placed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapsed, "LAPSED_MAX", 3)
    world = World(spec("a"), limits=LIMITS)
    for number in range(5):
        world.place(arrived(f"t{number}"))
    world.later(101)
    world.tell(WokeUp())
    assert sorted(world.state.lapsed) == ["t2", "t3", "t4"]
