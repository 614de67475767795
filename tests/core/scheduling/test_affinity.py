"""Where a run's turns go."""

import pytest

from core.scheduling.builders import (
    World,
    arrived,
    crowded,
    failed,
    finished,
    only,
    placed,
    probed,
    reasons_placed,
    refused,
    spec,
)
from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.events import ReplicaAdded, ReplicaRemoved, RunPhase
from luftpause.core.scheduling.reasons import NoHealthyReplica, PlacedBecause, WaitingForHome


def test_a_new_run_goes_where_fewest_turns_are_in_flight_then_where_fewest_were_then_to_the_first_declared() -> None:
    world = World(spec("a"), spec("b"), spec("c"))
    assert [world.place(arrived(f"t{number}")) for number in range(4)] == ["a", "b", "c", "a"]
    world.tell_all([finished("t0"), finished("t3"), finished("t1"), finished("t2")])
    assert world.place(arrived("t4")) == "b"


def test_a_paused_run_goes_home_although_another_replica_is_empty() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), arrived("x1")])
    world.tell_all([arrived("x2"), finished("x1")])
    actions = world.tell(arrived("t2", "r"))
    assert placed(actions) == [("t2", "a")]
    assert reasons_placed(actions) == [PlacedBecause.HOME]


def test_a_paused_run_is_held_for_its_full_home_although_another_replica_is_empty() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1)])
    world.tell_all(crowded("b"))
    world.tell_all([arrived("x1"), probed("a", running=1, waiting=1), probed("b")])
    assert world.in_flight("a") == 1
    assert world.hold(arrived("t2", "r")) == WaitingForHome(replica=ReplicaId("a"), in_flight=1, capacity=1)
    assert placed(world.tell(finished("x1"))) == [("t2", "a")]


def test_a_second_turn_of_a_generating_run_follows_the_first() -> None:
    world = World(spec("a"), spec("b"))
    assert world.place(arrived("t1", "r")) == "a"
    assert world.place(arrived("t2", "r")) == "a"
    world.tell(finished("t1", tools=1))
    assert world.phase("r") is RunPhase.GENERATING
    world.tell(finished("t2"))
    assert world.phase("r") is RunPhase.IDLE


def test_an_idle_run_moves_to_the_emptier_replica_but_prefers_home_in_a_tie() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1")])
    assert world.place(arrived("t2", "r")) == "a", "b was placed fewer turns, but the tie goes to home"
    world.tell_all([finished("t2"), arrived("x"), arrived("y"), finished("x")])
    assert (world.in_flight("a"), world.in_flight("b")) == (1, 0)
    actions = world.tell(arrived("t3", "r"))
    assert placed(actions) == [("t3", "b")]
    assert reasons_placed(actions) == [PlacedBecause.LEAST_LOADED]


def test_a_failed_turn_leaves_its_run_idle_so_that_it_may_move() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), failed("t1")])
    assert world.phase("r") is RunPhase.IDLE
    world.tell_all([arrived("x1"), arrived("x2"), finished("x1")])
    assert world.in_flight("b") == 0
    assert world.in_flight("a") == 1
    assert world.place(arrived("t2", "r")) == "b"


def test_a_continuation_moves_when_its_home_is_unhealthy() -> None:
    """Case 10."""
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), probed("a", healthy=False)])
    actions = world.tell(arrived("t2", "r"))
    assert placed(actions) == [("t2", "b")]
    assert reasons_placed(actions) == [PlacedBecause.HOME_LOST]


def test_a_held_continuation_moves_when_its_home_falls_ill() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), *crowded("a")])
    world.hold(arrived("t2", "r"))
    assert placed(world.tell(probed("a", healthy=False))) == [("t2", "b")]


def test_a_continuation_moves_when_its_home_was_removed() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), *crowded("a")])
    world.hold(arrived("t2", "r"))
    assert placed(world.tell(ReplicaRemoved(replica=ReplicaId("a")))) == [("t2", "b")]


def test_a_replica_that_recovered_is_cold_so_nobody_is_bound_to_it_and_no_room_is_kept() -> None:
    """Case 10."""
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), probed("a", healthy=False), probed("a")])
    assert world.state.replicas[ReplicaId("a")].kept == 0
    world.tell_all([arrived("x", "x"), arrived("y", "y"), finished("x")])
    assert (world.in_flight("a"), world.in_flight("b")) == (1, 0)
    assert world.place(arrived("t2", "r")) == "b"


def test_a_turn_that_lived_through_a_failed_probe_still_binds_its_run() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), probed("a", healthy=False), probed("a"), finished("t1", tools=1)])
    world.tell_all([arrived("x"), arrived("y"), finished("x")])
    assert world.place(arrived("t2", "r")) == "a"


def test_a_run_that_switches_models_goes_where_the_model_is() -> None:
    world = World(spec("a", "m"), spec("b", "n"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1)])
    assert world.place(arrived("t2", "r", model="n")) == "b"


WAY_OUT = "ask for one of these, or declare it under [[replicas]] or [[launcher.models]]"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ReplicaKind.GENERATIVE, "no Generative replica serves model 'nope': they serve 'm'; "),
        (ReplicaKind.SINGLE_PASS, "no Single-pass replica serves model 'nope': they serve 'm'; "),
    ],
)
def test_an_unknown_model_is_refused_at_once_in_the_words_that_clients_know(kind: ReplicaKind, message: str) -> None:
    world = World(spec("a"), spec("c", kind=ReplicaKind.SINGLE_PASS))
    assert only(world.tell(arrived("t", model="nope", kind=kind)), RefuseTurn).why.message == message + WAY_OUT
    assert not world.state.runs


def test_a_model_of_the_other_kind_is_unknown() -> None:
    world = World(spec("a", "m"), spec("c", "labels", kind=ReplicaKind.SINGLE_PASS))
    assert refused(world.tell(arrived("t", model="labels"))) == ["t"]
    assert refused(world.tell(arrived("u", model="m", kind=ReplicaKind.SINGLE_PASS))) == ["u"]


def test_single_pass_turns_use_their_own_replicas_and_never_touch_run_state() -> None:
    world = World(spec("a", "m"), spec("c", "m", kind=ReplicaKind.SINGLE_PASS))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1)])
    assert world.place(arrived("d1", "r", kind=ReplicaKind.SINGLE_PASS)) == "c"
    assert world.phase("r") is RunPhase.PAUSED
    world.tell(probed("c", running=1, waiting=1))
    world.hold(arrived("d2", "other", kind=ReplicaKind.SINGLE_PASS))
    assert placed(world.tell(finished("d1"))) == [("d2", "c")]
    world.tell(failed("d2"))
    assert world.phase("r") is RunPhase.PAUSED
    assert world.phase("other") is None


def test_a_turn_that_stands_alone_is_admitted_like_any_other_and_changes_no_run() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1)])
    assert world.place(arrived("d1", "r", shape=TurnShape.ALONE)) == "a"
    assert world.phase("r") is RunPhase.PAUSED
    world.tell(probed("a", running=1, waiting=1))
    world.hold(arrived("d2", "other", shape=TurnShape.ALONE))
    assert placed(world.tell(finished("d1", tools=1))) == [("d2", "a")]
    world.tell(failed("d2"))
    assert world.phase("r") is RunPhase.PAUSED
    assert world.phase("other") is None


def test_a_turn_that_stands_alone_waits_in_fair_order_and_not_for_the_home_of_the_run_that_it_names() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), *crowded("a")])
    assert world.place(arrived("d1", "r", shape=TurnShape.ALONE)) == "b"


def test_an_errand_waits_for_no_room_but_for_a_healthy_replica() -> None:
    world = World(spec("a"), spec("b"), healthy=False)
    assert isinstance(world.hold(arrived("early", shape=TurnShape.ERRAND)), NoHealthyReplica)
    assert placed(world.tell(probed("a", running=1, waiting=1))) == [("early", "a")]
    world.hold(arrived("t1", "r1"))
    assert world.place(arrived("e1", shape=TurnShape.ERRAND)) == "a", "it is full, and takes questions all the same"
    world.tell(probed("b"))
    assert world.place(arrived("e2", shape=TurnShape.ERRAND)) == "b", "fewest turns in flight"


def test_an_errand_goes_last_to_an_engine_that_wants_to_be_left_alone() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t1"), failed("t1", retry_after_s=60)])
    world.tell(arrived("t2"))
    assert world.place(arrived("e1", shape=TurnShape.ERRAND)) == "b"
    world.tell(probed("b", healthy=False))
    assert world.place(arrived("e2", shape=TurnShape.ERRAND)) == "a"


def test_held_turns_whose_only_replica_is_taken_away_are_refused() -> None:
    world = World(spec("a"), healthy=False)
    assert isinstance(world.hold(arrived("t")), NoHealthyReplica)
    assert refused(world.tell(ReplicaRemoved(replica=ReplicaId("a")))) == ["t"]


def test_a_replica_declared_anew_keeps_its_held_turns_but_must_prove_its_health() -> None:
    world = World(spec("a"))
    world.place(arrived("t0"))
    world.tell(ReplicaAdded(spec=spec("a", url="http://elsewhere.invalid")))
    assert isinstance(world.hold(arrived("t1")), NoHealthyReplica)
    assert world.in_flight("a") == 1
    assert placed(world.tell(probed("a"))) == [("t1", "a")]


def test_the_same_declaration_again_changes_nothing() -> None:
    world = World(spec("a"))
    before = world.state.replicas
    world.tell(ReplicaAdded(spec=spec("a")))
    assert world.state.replicas == before


def test_adding_and_removing_a_replica_leaves_no_trace() -> None:
    world = World(spec("a"))
    replicas, serving = world.state.replicas, world.state.serving
    world.tell_all([ReplicaAdded(spec=spec("b", "m", "n")), probed("b"), ReplicaRemoved(replica=ReplicaId("b"))])
    assert (world.state.replicas, world.state.serving) == (replicas, serving)


def test_turns_on_a_removed_replica_stay_charged_until_they_end() -> None:
    world = World(spec("a"))
    world.place(arrived("t1", "r"))
    world.tell(ReplicaRemoved(replica=ReplicaId("a")))
    assert world.in_flight("a") == 1
    world.tell(finished("t1", tools=1))
    assert ReplicaId("a") not in world.state.replicas
    assert world.phase("r") is RunPhase.PAUSED
