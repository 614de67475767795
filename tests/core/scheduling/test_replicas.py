"""Replicas that ask to be left alone, and how one that is declared again begins."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.scheduling.builders import (
    World,
    arrived,
    crowded,
    failed,
    finished,
    known_run,
    placed,
    probed,
    reasons_placed,
    spec,
)
from luftpause.core.model.ids import PeerId, ReplicaId, TurnId
from luftpause.core.model.replicas import Load
from luftpause.core.scheduling.decide import next_deadline
from luftpause.core.scheduling.events import (
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    ReplicaRemoved,
    TurnAbandoned,
    WokeUp,
)
from luftpause.core.scheduling.reasons import PlacedBecause, ReplicaClosed, explain
from luftpause.core.scheduling.state import Limits, Window
from luftpause.core.scheduling.view import ReplicaPhase, view

A = ReplicaId("a")


def test_an_engine_that_asked_to_be_left_alone_gets_no_new_turns_until_then() -> None:
    """Case 15."""
    world = World(spec("a"))
    world.tell_all([arrived("t1"), arrived("t2"), arrived("t3")])
    world.tell(failed("t1", retry_after_s=10.0))
    assert world.hold(arrived("h")) == ReplicaClosed(replica=A)
    assert explain(ReplicaClosed(replica=A)) == "a refused a turn and asked for no new ones for a while"
    world.later(4)
    world.tell_all([failed("t2", retry_after_s=3.0), probed("a"), WokeUp()])
    assert world.in_flight("a") == 1, "those in flight stay; a shorter wish does not shorten the longer one"
    assert next_deadline(world.state) == 10.0
    world.later(6)
    assert placed(world.tell(WokeUp())) == []
    assert placed(world.tell(finished("t3"))) == [("h", "a")]
    assert world.state.replicas[A].closed_until is None


@pytest.mark.parametrize("wish", [None, 0.0, -1.0, math.nan])
def test_a_wish_to_be_left_alone_for_no_time_is_none(wish: float | None) -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1"), failed("t1", retry_after_s=wish), failed("unknown", retry_after_s=9.0)])
    assert world.place(arrived("t2")) == "a"


def test_no_engine_is_left_alone_for_longer_than_we_bear_nor_after_it_fell_ill() -> None:
    world = World(spec("a"), limits=Limits(retry_after_s_max=50.0))
    world.tell_all([arrived("t1"), arrived("t2"), failed("t1", retry_after_s=math.inf)])
    assert world.state.replicas[A].closed_until == 50.0
    world.tell_all([probed("a", healthy=False), probed("a")])
    assert world.place(arrived("t3")) == "a"


@pytest.mark.parametrize("with_a_turn_in_flight", [False, True])
def test_a_replica_that_was_taken_away_begins_anew_when_it_is_declared_again(*, with_a_turn_in_flight: bool) -> None:
    world = World(spec("a"))
    if with_a_turn_in_flight:
        world.place(arrived("t"))
    world.tell_all([ReplicaRemoved(replica=A), ReplicaAdded(spec=spec("a"))])
    assert view(world.state, world.now).replicas[0].phase is ReplicaPhase.STARTING


def test_a_home_that_is_well_again_takes_back_those_that_are_away_from_it_and_no_other() -> None:
    world = World(spec("a"), spec("b"), healthy=False)
    world.tell(PeerResynced(peer=PeerId("p"), turns=(), runs=(known_run("r", "a"), known_run("s", "b"))))
    for turn, run in (("t1", "r"), ("t2", "s"), ("t3", "new")):
        world.hold(arrived(turn, run))
    homes = {home: sorted(turns) for (home, _), turns in world.state.away.items()}
    assert homes == {"a": ["t1"], "b": ["t2"]}
    world.tell_all(crowded("a"))
    pools: dict[str, object] = {name: held.pool for name, held in world.state.held.items()}
    assert pools["t1"] == "a"
    assert pools["t2"] == pools["t3"] != "a"
    assert {home for home, _ in world.state.away} == {"b"}


def test_a_home_that_began_another_life_calls_nobody_back() -> None:
    world = World(spec("a"), spec("b"), healthy=False)
    world.tell(PeerResynced(peer=PeerId("p"), turns=(), runs=(known_run("r", "a"),)))
    world.hold(arrived("t", "r"))
    world.tell(ReplicaAdded(spec=spec("a", url="http://moved.invalid")))
    world.tell_all(crowded("a"))
    assert world.state.held[TurnId("t")].pool != "a"
    world.tell(TurnAbandoned(turn=TurnId("t")))
    assert not world.state.away


def read_so_far(tokens: int | None) -> ReplicaProbed:
    """A probe of an engine that tells what it has read since it was started."""
    return replace(probed("a", 0, 0), load=Load(running=0, waiting=0, prompt_tokens=tokens))


def test_an_engine_that_was_started_anew_between_two_probes_had_an_outage() -> None:
    world = World(spec("a"))
    world.tell_all([read_so_far(9000), arrived("t1", "r"), finished("t1", tools=1), arrived("t2")])
    home = world.state.replicas[A]
    assert home.kept == 1
    world.tell(read_so_far(200))
    anew = world.state.replicas[A]
    assert anew.epoch > home.epoch
    assert (anew.healthy, anew.kept, anew.in_flight) == (True, 0, 1)
    assert anew.window == Window(world.state.limits.slow_start)
    assert reasons_placed(world.tell(arrived("t3", "r"))) == [PlacedBecause.HOME_LOST]


@pytest.mark.parametrize("reads", [(9000, 9000), (9000, 5000), (9000, None, 9500), (None, 200), (0, 0)])
def test_an_engine_that_read_more_about_as_much_or_does_not_say_is_still_the_same(reads: Sequence[int | None]) -> None:
    world = World(spec("a"))
    life = world.state.replicas[A].epoch
    for tokens in reads:
        world.tell(read_so_far(tokens))
    assert world.state.replicas[A].epoch == life


def test_a_start_is_noticed_although_reports_in_between_did_not_come() -> None:
    world = World(spec("a"))
    life = world.state.replicas[A].epoch
    world.tell_all([read_so_far(9000), probed("a"), read_so_far(None), read_so_far(200)])
    assert world.state.replicas[A].epoch > life
