"""Runs: how they start, what their turns make of them, how they end."""

from core.scheduling.builders import (
    World,
    arrived,
    crowded,
    failed,
    finished,
    forgotten,
    only,
    placed,
    probed,
    refused,
    spec,
)
from luftpause.core.model.ids import ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.scheduling.actions import HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import RunEnded, RunPhase, TurnAbandoned


def test_tool_calls_pause_a_run_and_a_plain_answer_leaves_it_idle() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=2)])
    assert world.phase("r") is RunPhase.PAUSED
    world.place(arrived("t2", "r"))
    assert world.phase("r") is RunPhase.GENERATING
    world.tell(finished("t2"))
    assert world.phase("r") is RunPhase.IDLE


def test_of_several_turns_the_one_that_ended_last_decides_the_phase() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), arrived("t2", "r"), finished("t2"), finished("t1", tools=1)])
    assert world.phase("r") is RunPhase.PAUSED
    world.tell_all([arrived("t3", "r"), arrived("t4", "r"), finished("t3", tools=1), failed("t4")])
    assert world.phase("r") is RunPhase.IDLE


def test_a_lost_reply_leaves_the_run_idle_not_paused_and_frees_once() -> None:
    """Case 9."""
    world = World(spec("a"))
    world.place(arrived("t1", "r"))
    world.tell_all([failed("t1"), failed("t1"), TurnAbandoned(turn=TurnId("t1")), finished("t1", tools=1)])
    assert world.in_flight("a") == 0
    assert world.phase("r") is RunPhase.IDLE


def test_an_abandoned_held_turn_leaves_the_queue_and_its_run_as_it_was() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), *crowded("a")])
    world.hold(arrived("t2", "r"))
    assert world.tell(TurnAbandoned(turn=TurnId("t2"))) == ()
    assert world.phase("r") is RunPhase.PAUSED
    assert not world.state.held
    assert placed(world.tell(probed("a"))) == []


def test_an_abandoned_turn_in_flight_frees_its_slot_and_leaves_its_run_idle() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), probed("a", running=1, waiting=1)])
    world.hold(arrived("t2"))
    assert placed(world.tell(TurnAbandoned(turn=TurnId("t1")))) == [("t2", "a")]
    assert world.phase("r") is RunPhase.IDLE


def test_a_turn_offered_again_gets_the_same_answer_and_is_charged_once() -> None:
    world = World(spec("a"))
    first = only(world.tell(arrived("t1", "r")), PlaceTurn)
    world.tell(probed("a", running=1, waiting=1))
    assert only(world.tell(arrived("t1", "r")), PlaceTurn) == first
    assert world.in_flight("a") == 1
    held = only(world.tell(arrived("t2", "s")), HoldTurn)
    assert only(world.tell(arrived("t2", "s")), HoldTurn) == held
    assert len(world.state.held) == 1


def test_an_ended_run_is_forgotten_and_its_held_turns_are_refused() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), probed("a", running=1, waiting=1)])
    world.hold(arrived("t2", "r"))
    actions = world.tell(RunEnded(run=RunId("r")))
    assert refused(actions) == ["t2"]
    assert isinstance(actions[0], RefuseTurn)
    assert actions[0].why.reason is RefusalReason.RUN_ENDED
    assert forgotten(actions) == ["r"]


def test_a_turn_in_flight_of_an_ended_run_stays_charged_and_does_not_disturb_a_new_run_of_that_name() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), RunEnded(run=RunId("r"))])
    assert world.in_flight("a") == 1
    world.place(arrived("t2", "r"))
    world.tell(finished("t1", tools=1))
    assert world.in_flight("a") == 1
    assert world.phase("r") is RunPhase.GENERATING


def test_ending_a_paused_interactive_run_lets_batch_into_the_room_kept_for_it() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("i", "r"), arrived("b1", batch=True), finished("i", tools=1)])
    world.tell(probed("a", running=2, waiting=1))
    world.hold(arrived("b2", batch=True))
    assert placed(world.tell(RunEnded(run=RunId("r")))) == [("b2", "a")]


def test_ending_an_unknown_run_changes_nothing() -> None:
    world = World(spec("a"))
    assert world.tell(RunEnded(run=RunId("nobody"))) == ()


def test_a_run_stands_with_each_of_its_models_by_itself() -> None:
    world = World(spec("a"), spec("b", "m", "n"))
    assert world.place(arrived("t1", "r")) == "a"
    world.tell(finished("t1", tools=1))
    assert world.place(arrived("t2", "r", model="n")) == "b"
    assert (world.phase("r"), world.phase("r", "n")) == (RunPhase.PAUSED, RunPhase.GENERATING)
    world.tell(finished("t2"))
    assert (world.phase("r"), world.phase("r", "n")) == (RunPhase.PAUSED, RunPhase.IDLE)
    assert world.place(arrived("t3", "r")) == "a"


def test_the_class_of_a_side_question_is_its_own() -> None:
    world = World(spec("a"), spec("b", "n"))
    world.tell_all([arrived("i", "r"), finished("i", tools=1), arrived("side", "r", model="n", batch=True)])
    assert world.state.replicas[ReplicaId("a")].kept == 1


def test_ending_a_run_ends_it_with_all_of_its_models() -> None:
    world = World(spec("a"), spec("b", "n"))
    world.tell_all([*crowded("a"), *crowded("b")])
    for turn, model in (("t1", "n"), ("t2", "m"), ("t3", "n")):
        world.hold(arrived(turn, "r", model=model))
    actions = world.tell(RunEnded(run=RunId("r")))
    assert refused(actions) == ["t1", "t2", "t3"]
    assert forgotten(actions) == ["r"]
    assert "r" not in world.state.models_of
