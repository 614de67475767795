"""When a replica takes a turn."""

import pytest

from core.scheduling.builders import World, arrived, crowded, failed, finished, placed, probed, spec
from luftpause.core.model.ids import ModelName, ReplicaId, TurnId
from luftpause.core.model.replicas import Load
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.admission import has_room
from luftpause.core.scheduling.events import FirstTokenSeen, ReplicaRemoved, TurnAbandoned
from luftpause.core.scheduling.reasons import (
    AwaitingReturn,
    NoHealthyReplica,
    ReplicaClosed,
    RoomKept,
    WaitingForHome,
    WaitingForRoom,
    explain,
)
from luftpause.core.scheduling.state import Replica, Window

A = ReplicaId("a")


def replica(*, healthy: bool = True, load: Load | None = None, in_flight: int = 0, kept: int = 0) -> Replica:
    return Replica(
        replica=A,
        spec=spec("a"),
        declared=True,
        order=0,
        epoch=0,
        healthy=healthy,
        load=load,
        in_flight=in_flight,
        kept=kept,
    )


@pytest.mark.parametrize(
    ("subject", "interactive", "batch"),
    [
        pytest.param(replica(healthy=False), False, False, id="unhealthy replicas take nothing"),
        pytest.param(replica(in_flight=500), True, True, id="no reported load means no cap"),
        pytest.param(replica(in_flight=500, load=Load(running=4, waiting=0)), True, True, id="no queue means no cap"),
        pytest.param(replica(in_flight=3, load=Load(running=4, waiting=1)), True, True, id="queueing, below the cap"),
        pytest.param(replica(in_flight=4, load=Load(running=4, waiting=1)), False, False, id="queueing, at the cap"),
        pytest.param(replica(in_flight=9, load=Load(running=4, waiting=5)), False, False, id="queueing, over the cap"),
        pytest.param(replica(in_flight=0, load=Load(running=0, waiting=1)), True, True, id="idle as far as we know"),
        pytest.param(replica(in_flight=1, load=Load(running=0, waiting=1)), False, False, id="queueing, runs nothing"),
        pytest.param(replica(in_flight=0, load=Load(running=1, waiting=9), kept=5), True, True, id="idle, room kept"),
        pytest.param(
            replica(in_flight=3, load=Load(running=4, waiting=1), kept=1), True, False, id="batch leaves the last place"
        ),
        pytest.param(
            replica(in_flight=2, load=Load(running=4, waiting=1), kept=1), True, True, id="batch takes what is not kept"
        ),
        pytest.param(replica(in_flight=3, kept=9), True, True, id="kept room matters only when capped"),
    ],
)
def test_room_by_health_load_turns_in_flight_and_kept_room(subject: Replica, *, interactive: bool, batch: bool) -> None:
    assert has_room(subject, ServiceClass.INTERACTIVE) is interactive
    assert has_room(subject, ServiceClass.BATCH) is batch


def test_a_replica_takes_nothing_before_its_first_good_probe() -> None:
    world = World(spec("a"), healthy=False)
    assert world.hold(arrived("t")) == NoHealthyReplica(model=ModelName("m"))
    assert placed(world.tell(probed("a"))) == [("t", "a")]


def test_at_light_load_nothing_is_ever_held() -> None:
    """Case 16."""
    world = World(spec("a"), spec("b"))
    actions = world.tell_all([arrived(f"t{number}", batch=number % 2 == 0) for number in range(100)])
    assert all(isinstance(action, PlaceTurn) for action in actions)
    assert world.in_flight("a") == world.in_flight("b") == 50


def test_a_queueing_engine_is_capped_at_what_it_runs_and_freed_by_the_next_finish() -> None:
    world = World(spec("a"))
    for number in range(4):
        world.place(arrived(f"t{number}"))
    world.tell(probed("a", running=3, waiting=1))
    assert world.hold(arrived("held")) == WaitingForRoom(replica=A, in_flight=4, capacity=3)
    assert placed(world.tell(finished("t0"))) == []
    assert placed(world.tell(finished("t1"))) == [("held", "a")]


def test_a_probe_that_shows_no_queue_lets_everything_out_in_fair_order() -> None:
    world = World(spec("a"))
    world.place(arrived("t0"))
    world.tell(probed("a", running=1, waiting=3))
    world.hold(arrived("b1", batch=True))
    world.hold(arrived("i1"))
    world.hold(arrived("b2", batch=True))
    assert placed(world.tell(probed("a", running=1, waiting=0))) == [("i1", "a"), ("b1", "a"), ("b2", "a")]


def test_a_replica_whose_report_does_not_arrive_is_not_capped_by_the_old_one() -> None:
    """Case 20."""
    world = World(spec("a"))
    world.place(arrived("t0", "r0"))
    world.tell(probed("a", running=1, waiting=3))
    world.hold(arrived("t1"))
    assert placed(world.tell(probed("a"))) == [("t1", "a")]
    assert world.in_flight("a") == 2


@pytest.mark.parametrize("batch", [False, True])
def test_an_engine_that_runs_nothing_of_ours_gets_one_turn_whatever_it_reports(*, batch: bool) -> None:
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), finished("i1", tools=1), probed("a", running=0, waiting=1)])
    assert world.place(arrived("t", batch=batch)) == "a"
    assert world.hold(arrived("u")) == WaitingForRoom(replica=A, in_flight=1, capacity=1)
    assert placed(world.tell(finished("t"))) == [("u", "a")]


def test_a_held_turn_is_told_what_ails_the_first_replica_that_could_serve_it() -> None:
    world = World(spec("a"), spec("b"), healthy=False)
    world.tell(probed("b", healthy=False, cause="HTTP 503 from /health"))
    reason = world.hold(arrived("t"))
    assert explain(reason) == "no healthy replica serves m: b: HTTP 503 from /health"
    world.tell(probed("a", healthy=False, cause="connection refused"))
    assert explain(world.hold(arrived("u"))) == "no healthy replica serves m: a: connection refused"
    world.tell(probed("a"))
    assert not world.state.replicas[A].why


def test_batch_leaves_room_for_an_interactive_run_that_is_out_on_a_tool() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), finished("i1", tools=1)])
    world.tell(probed("a", running=2, waiting=1))
    reason = world.hold(arrived("b2", batch=True))
    assert reason == RoomKept(replica=A, paused_interactive=1)
    assert explain(reason) == "room on a is kept for 1 interactive run paused on a tool"


def test_a_paused_interactive_run_goes_home_at_once_through_a_batch_flood() -> None:
    """Case 1: its place was kept, no poll is needed."""
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), arrived("b2", batch=True), finished("i1", tools=1)])
    world.tell(probed("a", running=3, waiting=8))
    for number in range(3, 9):
        world.hold(arrived(f"b{number}", batch=True))
    assert world.place(arrived("i2", "r")) == "a"
    assert placed(world.tell(finished("b1"))) == [], "batch waits for the first token of the run that came back"
    assert world.hold(arrived("b9", batch=True)) == AwaitingReturn(replica=A)
    assert placed(world.tell(FirstTokenSeen(turn=TurnId("i2")))) == [("b3", "a")]
    assert placed(world.tell(finished("i2"))) == [("b4", "a")]


def test_an_interactive_run_comes_home_at_once_where_batch_took_the_room_before_the_engine_queued() -> None:
    """Case 1."""
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), finished("i1", tools=1)])
    world.tell_all([arrived(f"b{number}", batch=True) for number in range(3)])
    world.tell(probed("a", running=2, waiting=9))
    assert world.place(arrived("i2", "r")) == "a"
    assert world.hold(arrived("i3", "r")) == WaitingForHome(replica=A, in_flight=4, capacity=2), "it is back already"
    world.tell(failed("i2"))
    assert world.state.replicas[A].returning == 0


def test_a_continuation_that_found_its_home_full_of_interactive_turns_is_the_first_to_get_a_place() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("i1", "r"), finished("i1", tools=1), *crowded("b")])
    world.tell_all([arrived(f"x{number}") for number in range(3)])
    world.tell(probed("a", running=2, waiting=9))
    world.hold(arrived("b9", batch=True))
    assert world.hold(arrived("i2", "r")) == WaitingForHome(replica=A, in_flight=3, capacity=2)
    assert placed(world.tell(finished("x0"))) == []
    assert placed(world.tell(finished("x1"))) == [("i2", "a")]
    assert placed(world.tell(finished("x2"))) == [], "it came back to a full replica, and has no first token"
    assert placed(world.tell(probed("a", running=2, waiting=0))) == [("b9", "a")], "nothing is queued before it"


def test_nobody_comes_home_past_those_who_wait_for_it_nor_to_an_engine_that_wants_to_be_left_alone() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), arrived("j1", "s"), arrived("b1", batch=True), arrived("x")])
    world.tell_all([finished("i1", tools=1), finished("j1", tools=1), probed("a", running=1, waiting=1)])
    world.hold(arrived("i2", "r"))
    world.tell(finished("x"))
    assert world.hold(arrived("j2", "s")) == WaitingForHome(replica=A, in_flight=1, capacity=1)
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), arrived("b2", batch=True), finished("i1", tools=1)])
    world.tell_all([probed("a", running=1, waiting=1), failed("b1", retry_after_s=9.0)])
    assert world.hold(arrived("i2", "r")) == ReplicaClosed(replica=A)


def test_batch_does_not_wait_for_a_first_token_where_it_has_room_or_where_only_a_window_caps() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), finished("i1", tools=1)])
    world.tell_all([probed("a", running=3, waiting=1), arrived("i2", "r")])
    assert world.place(arrived("b2", batch=True)) == "a"
    subject = replica(in_flight=2, load=Load(running=9, waiting=0))._replace(returning=1, window=Window(4))
    assert has_room(subject, ServiceClass.BATCH)
    assert not has_room(subject._replace(load=Load(running=9, waiting=1)), ServiceClass.BATCH)


def test_a_first_token_counts_once_wherever_its_replica_went() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), finished("i1", tools=1)])
    world.tell_all([probed("a", running=1, waiting=1), arrived("i2", "r")])
    assert world.state.replicas[A].returning == 1
    world.tell(ReplicaRemoved(replica=A))
    assert world.state.replicas[A].returning == 1
    world.tell_all([FirstTokenSeen(turn=TurnId("i2")), FirstTokenSeen(turn=TurnId("i2"))])
    assert world.state.replicas[A].returning == 0


def test_a_run_that_turned_to_batch_frees_the_room_kept_for_it() -> None:
    world = World(spec("a", "m", "n"), spec("b", "n"))
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), finished("i1", tools=1)])
    world.tell(probed("a", running=2, waiting=1))
    world.hold(arrived("b2", batch=True))
    actions = world.tell(arrived("again", "r", batch=True))
    assert placed(actions) == [("b2", "a")]


def test_a_side_question_to_another_model_leaves_the_room_kept_at_home() -> None:
    world = World(spec("a"), spec("b", "n"))
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), finished("i1", tools=1)])
    world.tell(probed("a", running=2, waiting=1))
    world.hold(arrived("b2", batch=True))
    assert placed(world.tell(arrived("i2", "r", model="n"))) == [("i2", "b")]
    assert placed(world.tell(finished("i2"))) == []
    world.tell(finished("b1"))
    assert world.place(arrived("i3", "r")) == "a"


def test_a_failed_turn_frees_its_slot_at_once() -> None:
    world = World(spec("a"))
    world.place(arrived("t0", "r0"))
    world.tell(probed("a", running=1, waiting=1))
    world.hold(arrived("t1"))
    assert placed(world.tell(failed("t0"))) == [("t1", "a")]


def test_a_batch_turn_is_never_kept_out_by_the_room_of_its_own_run() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("i1", "r"), arrived("x"), finished("i1", tools=1), probed("a", running=1, waiting=1)])
    world.hold(arrived("b", "r", batch=True))
    world.hold(arrived("i2", "r"))
    world.tell(TurnAbandoned(turn=TurnId("i2")))
    assert placed(world.tell(finished("x"))) == [("b", "a")]
