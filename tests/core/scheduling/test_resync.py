"""Rebuilding from what a dataplane remembers."""

from core.scheduling.builders import (
    World,
    arrived,
    crowded,
    finished,
    forgotten,
    known_run,
    open_turn,
    placed,
    probed,
    spec,
)
from luftpause.core.model.ids import PeerId, ReplicaId
from luftpause.core.scheduling.events import PeerLost, PeerResynced, ReplicaAdded, RunPhase, WokeUp

P = PeerId("p")


def test_a_fresh_scheduler_learns_turns_runs_homes_and_kept_room() -> None:
    world = World(spec("a"), spec("b"))
    world.tell(
        PeerResynced(peer=P, turns=(open_turn("t1", "r1", "b"),), runs=(known_run("r2", "b"), known_run("r3", "a")))
    )
    assert world.in_flight("b") == 1
    assert world.phase("r1") is RunPhase.GENERATING
    assert world.phase("r2") is RunPhase.PAUSED
    assert world.state.replicas[ReplicaId("b")].kept == 1
    assert world.place(arrived("t2", "r2")) == "b"


def test_time_spent_paused_before_the_restart_counts() -> None:
    """Case 17."""
    world = World(spec("a"))
    world.later(10_000)
    world.tell(PeerResynced(peer=P, turns=(), runs=(known_run("r", "a", age_s=1700),)))
    world.later(100)
    assert forgotten(world.tell(WokeUp())) == ["r"]


def test_runs_told_before_their_replica_is_declared_find_it_as_their_home() -> None:
    world = World(spec("b"))
    world.tell(PeerResynced(peer=P, turns=(open_turn("t1", "r1", "a"),), runs=(known_run("r2", "a"),)))
    assert world.in_flight("a") == 1
    world.tell_all([ReplicaAdded(spec=spec("a")), probed("a")])
    assert world.place(arrived("t2", "r2")) == "a"
    world.tell(finished("t1"))
    assert world.in_flight("a") == 1


def test_held_turns_of_a_resynced_run_wait_for_its_home_once_that_is_healthy() -> None:
    world = World(spec("a"), healthy=False)
    world.tell(PeerResynced(peer=P, turns=(), runs=(known_run("r", "a"),)))
    world.hold(arrived("t", "r"))
    assert placed(world.tell_all(crowded("a"))) == []
    assert placed(world.tell(probed("a"))) == [("t", "a")]


def test_turns_that_a_reconnecting_peer_does_not_name_are_over_but_others_stay() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("p1", "r1"), arrived("p2", "r2"), arrived("q1", "r3", peer="q")])
    world.tell(probed("a", running=3, waiting=1))
    world.hold(arrived("p3"))
    actions = world.tell(PeerResynced(peer=P, turns=(open_turn("p2", "r2", "a"),), runs=()))
    assert placed(actions) == []
    assert world.phase("r1") is RunPhase.IDLE
    assert sorted(world.state.turns) == ["p2", "q1"]
    assert not world.state.held


def test_telling_the_same_twice_charges_once() -> None:
    world = World(spec("a"))
    report = PeerResynced(
        peer=P, turns=(open_turn("t", "r", "a"), open_turn("t", "r", "a")), runs=(known_run("s", "a"),)
    )
    world.tell(report)
    before = world.state
    world.tell(report)
    assert world.state == before
    assert world.in_flight("a") == 1


def test_a_turn_that_we_hold_and_its_peer_has_in_flight_is_in_flight() -> None:
    world = World(spec("a"), healthy=False)
    world.hold(arrived("t", "r"))
    world.tell(PeerResynced(peer=P, turns=(open_turn("t", "r", "a"),), runs=()))
    assert world.in_flight("a") == 1
    assert not world.state.held


def test_what_we_know_of_a_run_stays_when_it_is_newer_than_what_the_peer_knows() -> None:
    world = World(spec("a"), spec("b"))
    world.later(100)
    world.tell_all([arrived("t", "r"), finished("t", tools=1)])
    world.tell(PeerResynced(peer=P, turns=(), runs=(known_run("r", "b", phase=RunPhase.IDLE, age_s=50),)))
    assert world.phase("r") is RunPhase.PAUSED
    known = world.run("r")
    assert known is not None
    assert known.home == "a"


def test_the_peer_is_believed_when_it_saw_a_run_later() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t", "r"), finished("t")])
    world.later(100)
    world.tell(PeerResynced(peer=P, turns=(), runs=(known_run("r", "b", age_s=50),)))
    assert world.phase("r") is RunPhase.PAUSED
    known = world.run("r")
    assert known is not None
    assert known.home == "b"


def test_a_lost_peer_frees_all_that_it_had_and_nothing_else() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("p1", "r1"), arrived("q1", "r2", peer="q"), probed("a", running=2, waiting=1)])
    world.hold(arrived("p2"))
    world.hold(arrived("q2", peer="q"))
    assert placed(world.tell(PeerLost(peer=P))) == [("q2", "a")]
    assert sorted(world.state.turns) == ["q1", "q2"]
    assert world.tell(PeerLost(peer=P)) == ()
