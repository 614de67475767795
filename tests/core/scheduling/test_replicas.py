"""Replicas that ask to be left alone, and how one that is declared again begins."""

import math

import pytest

from core.scheduling.builders import World, arrived, failed, finished, placed, probed, spec
from luftpause.core.model.ids import ReplicaId
from luftpause.core.scheduling.decide import next_deadline
from luftpause.core.scheduling.events import ReplicaAdded, ReplicaRemoved, WokeUp
from luftpause.core.scheduling.reasons import ReplicaClosed, explain
from luftpause.core.scheduling.state import Limits
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
