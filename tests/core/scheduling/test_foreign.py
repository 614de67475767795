"""What an engine has to do that is none of ours."""

from core.scheduling.builders import World, arrived, finished, only, open_turn, placed, probed, spec
from luftpause.core.model.ids import PeerId, ReplicaId
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.actions import HoldTurn
from luftpause.core.scheduling.events import PeerResynced, ReplicaProbed
from luftpause.core.scheduling.reasons import WaitingForRoom


def foreign(world: World, name: str = "a") -> int:
    return world.state.replicas[ReplicaId(name)].foreign


def told(world: World, running: int, waiting: int, name: str = "a") -> None:
    world.later(2)
    world.tell(probed(name, running, waiting))


def busy_engine() -> World:
    """Two turns of ours, and four of somebody else, on an engine that queues."""
    world = World(spec("a"), healthy=False)
    told(world, 0, 0)
    world.tell_all([arrived("t1"), arrived("t2")])
    told(world, 5, 1)
    told(world, 5, 1)
    return world


def test_what_two_reports_have_beyond_our_turns_takes_room_and_is_told() -> None:
    world = busy_engine()
    assert foreign(world) == 4
    why = only(world.tell(arrived("t3")), HoldTurn).why
    assert why == WaitingForRoom(replica=ReplicaId("a"), in_flight=2, capacity=1, foreign=4)


def test_others_never_take_the_room_of_the_last_turn() -> None:
    world = busy_engine()
    world.hold(arrived("t3"))
    assert placed(world.tell(finished("t1"))) == []
    assert placed(world.tell(finished("t2"))) == [("t3", "a")]


def test_a_turn_that_ended_while_the_report_was_under_way_is_not_foreign() -> None:
    world = World(spec("a"), healthy=False)
    told(world, 0, 0)
    world.tell_all([arrived("t1"), arrived("t2"), finished("t1"), finished("t2")])
    told(world, 2, 0)
    assert foreign(world) == 0


def test_what_was_there_for_a_moment_only_is_not_foreign() -> None:
    world = World(spec("a"), healthy=False)
    for running in (0, 9, 0, 9, 0, 2):
        told(world, running, 0)
        assert foreign(world) == 0
    told(world, 3, 0)
    assert foreign(world) == 2


def test_the_first_report_of_a_life_counts_at_once() -> None:
    world = World(spec("a"), healthy=False)
    told(world, 6, 1)
    assert foreign(world) == 7
    world.tell(probed("a", healthy=False))
    assert foreign(world) == 0
    told(world, 3, 1)
    assert foreign(world) == 4


def test_turns_that_are_told_of_after_the_report_were_foreign_until_then() -> None:
    world = World(spec("a"), healthy=False)
    told(world, 2, 1)
    turns = (open_turn("t1", "r1", "a"), open_turn("t2", "r2", "a"))
    world.tell(PeerResynced(peer=PeerId("p"), turns=turns, runs=()))
    assert foreign(world) == 1


def test_a_report_that_is_missing_is_no_report_of_anything() -> None:
    world = busy_engine()
    world.later(2)
    world.tell(ReplicaProbed(replica=ReplicaId("a"), healthy=True))
    assert foreign(world) == 0
    told(world, 9, 1)
    assert foreign(world) == 0


def test_turns_go_where_the_engine_has_least_to_do_for_anybody() -> None:
    world = World(spec("a"), spec("b"), healthy=False)
    told(world, 3, 0)
    told(world, 0, 0, "b")
    assert [world.place(arrived(f"t{number}")) for number in range(3)] == ["b", "b", "b"]
    assert world.place(arrived("errand", shape=TurnShape.ERRAND)) == "a"
