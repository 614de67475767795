"""What holds for `decide` as a whole: pure, deterministic, total, idempotent."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from core.scheduling import histories
from core.scheduling.builders import World, arrived, crowded, failed, finished, known_run, open_turn, probed, spec
from core.scheduling.canonical import text_of
from core.scheduling.residency.words import down, joined, load_failed, model, unload_asked, up
from luftpause.core.model.ids import LauncherId, ModelName, PeerId, ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    KnownReplica,
    MemoryRestored,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaRemoved,
    RunEnded,
    TurnAbandoned,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
    WokeUp,
)
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.residency.events import (
    LauncherJoined,
    LauncherLost,
    LoadAsked,
    LoadFailed,
    LoadProgressed,
    ModelDown,
    PinAsked,
)
from luftpause.core.scheduling.state import Limits, empty_state

SEEDS = range(12)

ENDS_AN_ORDER = (LauncherJoined, LoadFailed, ModelDown)
"""What was ordered because of one of these is ended by another one."""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_events_lead_to_equal_states_and_orders_and_the_state_given_in_stays_as_it_was(seed: int) -> None:
    state = empty_state(Limits())
    for event, now in histories.history(seed, 300):
        before = text_of(state)
        decision, again = decide(state, event, now), decide(state, event, now)
        assert text_of(state) == before, event
        assert text_of(again) == text_of(decision), event
        state = decision.state
        check(state)


def test_histories_hold_every_kind_of_event() -> None:
    assert {type(event) for event, _ in histories.history(1, 1000)} == set(get_args(Event))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_event_taken_in_twice_at_once_changes_nothing_the_second_time(seed: int) -> None:
    state = empty_state(Limits())
    for event, now in histories.history(seed, 300):
        state = decide(state, event, now).state
        if not isinstance(event, ENDS_AN_ORDER):
            assert decide(state, event, now).state == state, event


def test_decisions_do_not_depend_on_the_order_of_hashes() -> None:
    script = Path(histories.__file__)
    digests = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(script.parents[2])}
        done = subprocess.run(
            [sys.executable, str(script), "5", "2500"], env=environment, capture_output=True, check=True, timeout=50
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def unknown(world: World) -> None:
    """Nothing was ever heard of the turn or its run."""


def in_flight(world: World) -> None:
    world.tell(arrived("t", "r"))


def held(world: World) -> None:
    world.tell_all([*crowded("a"), arrived("t", "r")])


def paused(world: World) -> None:
    world.tell_all([arrived("t", "r"), finished("t", tools=1)])


def idle(world: World) -> None:
    world.tell_all([arrived("t", "r"), finished("t")])


def broken(world: World) -> None:
    world.tell_all([arrived("t", "r"), failed("t")])


def paused_with_its_continuation_held(world: World) -> None:
    world.tell_all([arrived("s", "r"), finished("s", tools=1), *crowded("a"), arrived("t", "r")])


def generating_with_another_turn_held(world: World) -> None:
    world.tell_all([arrived("s", "r"), probed("a", running=1, waiting=1), arrived("t", "r")])


def ended_in_flight(world: World) -> None:
    world.tell_all([arrived("t", "r"), RunEnded(run=RunId("r"))])


def expired(world: World) -> None:
    world.tell(arrived("t", "r"))
    world.later(600)
    world.tell(WokeUp())


def replica_down(world: World) -> None:
    world.tell_all([arrived("t", "r"), probed("a", healthy=False)])


def replica_gone(world: World) -> None:
    world.tell_all([arrived("t", "r"), ReplicaRemoved(replica=ReplicaId("a"))])


def overdue(world: World) -> None:
    world.tell(arrived("t", "r"))
    world.later(10_000)


def using_a_loaded_model(world: World) -> None:
    world.tell_all([joined(model("A", ttl=5.0)), arrived("t", "r", model="A"), up("A")])
    world.tell(arrived("s", "r", model="A"))
    world.tell(finished("s", tools=["look"]))


SITUATIONS = [
    unknown,
    in_flight,
    held,
    paused,
    idle,
    broken,
    paused_with_its_continuation_held,
    generating_with_another_turn_held,
    ended_in_flight,
    expired,
    replica_down,
    replica_gone,
    overdue,
    using_a_loaded_model,
]
EVENTS: list[Event] = [
    arrived("t", "r"),
    arrived("t", "r", batch=True),
    arrived("t", "another"),
    arrived("u", "r"),
    arrived("u", "r", kind=ReplicaKind.SINGLE_PASS),
    FirstTokenSeen(turn=TurnId("t")),
    AnswerGrew(turn=TurnId("t"), reply_bytes=100_000),
    finished("t"),
    finished("t", tools=1),
    failed("t"),
    TurnAbandoned(turn=TurnId("t")),
    TurnReturned(turn=TurnId("t")),
    TurnStays(turn=TurnId("t")),
    TurnsRenewed(turns=(TurnId("t"), TurnId("t"))),
    RunEnded(run=RunId("r")),
    ReplicaAdded(spec=spec("a")),
    ReplicaAdded(spec=spec("a", "other")),
    ReplicaRemoved(replica=ReplicaId("a")),
    probed("a"),
    probed("a", running=1, waiting=1),
    probed("a", healthy=False),
    probed("nobody"),
    PeerResynced(peer=PeerId("p"), turns=(), runs=()),
    PeerResynced(peer=PeerId("p"), turns=(open_turn("t", "r", "a"),), runs=(known_run("r", "a", age_s=1),)),
    PeerResynced(peer=PeerId("q"), turns=(open_turn("t", "r", "gone"),), runs=(known_run("r", "gone"),)),
    PeerLost(peer=PeerId("p")),
    MemoryRestored(replicas=(KnownReplica(replica=ReplicaId("a"), placed=3, window=(2, None, 0)),)),
    joined(model("m")),
    LauncherLost(launcher=LauncherId("box")),
    LoadProgressed(model=ModelName("m"), fraction=0.5),
    up("m"),
    load_failed("m"),
    down("m"),
    LoadAsked(model=ModelName("m")),
    unload_asked("m"),
    PinAsked(model=ModelName("m"), on=True),
    WokeUp(),
]


def test_the_table_of_events_is_complete() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_any_event_is_legal_in_any_situation_and_once_is_as_good_as_twice(
    situation: Callable[[World], None], event: Event
) -> None:
    world = World(spec("a"))
    situation(world)
    world.tell(event)
    state = world.state
    world.tell(event)
    assert world.state == state


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_whatever_happened_everything_ends_and_leaves_no_trace(situation: Callable[[World], None]) -> None:
    world = World(spec("a"))
    empty = world.state
    situation(world)
    for _ in range(3):
        world.later(1800)
        world.tell(WokeUp())
    world.tell_all([ReplicaRemoved(replica=ReplicaId("a")), ReplicaAdded(spec=spec("a")), probed("a")])
    left = world.state
    assert left.runs == empty.runs
    assert left.turns == empty.turns
    assert left.held == empty.held
    assert left.lanes == empty.lanes
    assert left.standings == empty.standings
    assert left.run_counts == empty.run_counts
    assert left.peer_deadlines == empty.peer_deadlines
    assert left.run_deadlines == empty.run_deadlines
    assert [replica.in_flight for replica in left.replicas.values()] == [0]
