"""What a replica may have in flight after an outage or a refusal, and how it comes to have any number again."""

import pytest

from core.scheduling.builders import World, arrived, failed, finished, only, placed, probed, spec
from luftpause.core.model.ids import ReplicaId, TurnId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.admission import capacity, has_room, takes_back
from luftpause.core.scheduling.events import PeerResynced, ReplicaAdded, ReplicaRemoved, TurnAbandoned, WokeUp
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.reasons import ReplicaClosed, RoomKept, WindowFull, explain
from luftpause.core.scheduling.state import Limits, Replica, Window
from luftpause.core.scheduling.windows import after_answer, after_outage, after_refusal

A = ReplicaId("a")


def replica(*, in_flight: int = 0, kept: int = 0, window: Window | None = None) -> Replica:
    return Replica(
        replica=A,
        spec=spec("a"),
        declared=True,
        order=0,
        epoch=0,
        healthy=True,
        seen_healthy=True,
        in_flight=in_flight,
        kept=kept,
        window=window,
    )


def window(world: World, name: str = "a") -> Window | None:
    return world.state.replicas[ReplicaId(name)].window


def size(world: World) -> int | None:
    seen = window(world)
    return None if seen is None else seen.size


def fallen_and_risen(*, slow_start: int = 4) -> World:
    world = World(spec("a"), limits=Limits(slow_start=slow_start))
    world.tell_all([probed("a", healthy=False), probed("a")])
    return world


def test_a_replica_that_comes_back_is_not_flooded_by_those_who_waited_for_it() -> None:
    """Case 10."""
    world = World(spec("a"))
    world.tell(probed("a", healthy=False))
    world.tell_all([arrived(f"t{number}") for number in range(20)])
    assert len(placed(world.tell(probed("a")))) == Limits().slow_start == 4
    reason = world.hold(arrived("t20"))
    assert reason == WindowFull(replica=A, turns=4, refused=False)
    assert explain(reason) == "a came back a moment ago and takes 4 turns until it has answered some"


def test_a_slow_start_doubles_with_every_round_trip_and_ends_when_nobody_waits_for_it() -> None:
    world = fallen_and_risen()
    world.tell_all([arrived(f"t{number:02}") for number in range(30)])
    sizes, in_flight = [], []
    while world.state.turns:
        for turn in sorted(world.state.turns):
            world.tell(finished(turn))
        sizes.append(size(world))
        in_flight.append(world.in_flight("a"))
    assert sizes == [8, 16, None, None]
    assert in_flight == [8, 16, 2, 0]


def test_a_slow_start_goes_on_while_its_window_is_full_and_waits_for_a_whole_windowful() -> None:
    limits = Limits(slow_start=3)
    assert after_answer(replica(in_flight=1), Window(3), limits) == Window(4), "not doubled yet"
    assert after_answer(replica(in_flight=4), Window(5), limits) is None
    assert after_answer(replica(in_flight=5), Window(5), limits) == Window(6), "full: somebody may wait for it"
    assert after_answer(replica(in_flight=4, kept=1), Window(5), limits) == Window(6), "full for batch"


def test_only_whole_answers_prove_anything() -> None:
    world = fallen_and_risen()
    world.tell_all([arrived("t1"), arrived("t2"), failed("t1"), TurnAbandoned(turn=TurnId("t2"))])
    world.tell_all([failed("t1"), finished("t1"), finished("unknown")])
    assert window(world) == Window(4)


@pytest.mark.parametrize("again", [probed("a"), ReplicaAdded(spec=spec("a"))])
def test_a_good_probe_after_a_good_one_starts_nothing(again: ReplicaAdded) -> None:
    world = World(spec("a"))
    world.tell_all([again, *(arrived(f"t{number}") for number in range(9))])
    assert window(world) is None
    assert world.in_flight("a") == 9


def test_nobody_starts_slowly_at_first_health_or_after_our_own_restart_or_when_declared_anew() -> None:
    world = World(spec("a"), healthy=False)
    world.tell_all([probed("a", healthy=False), probed("a")])
    assert window(world) is None
    world = World(healthy=False)
    world.tell_all([PeerResynced(peer=arrived("t").peer, turns=(), runs=()), ReplicaAdded(spec=spec("a")), probed("a")])
    assert window(world) is None
    for leave in (ReplicaRemoved(replica=A), ReplicaAdded(spec=spec("a", url="http://elsewhere.invalid"))):
        world = World(spec("a"))
        world.tell_all([arrived("t"), leave, ReplicaAdded(spec=spec("a")), probed("a")])
        assert window(world) is None


def test_an_outage_ends_a_window_and_starts_another() -> None:
    world = fallen_and_risen(slow_start=2)
    world.tell_all([arrived("t1"), finished("t1")])
    assert size(world) == 3
    world.tell(probed("a", healthy=False))
    assert window(world) is None
    world.tell(probed("a"))
    assert size(world) == 2


def test_turns_from_before_the_outage_count_and_stay() -> None:
    world = World(spec("a"), limits=Limits(slow_start=2))
    world.tell_all([arrived("t1"), arrived("t2"), arrived("t3"), probed("a", healthy=False), probed("a")])
    assert world.in_flight("a") == 3
    world.hold(arrived("t4"))
    assert placed(world.tell(failed("t1"))) == []
    assert placed(world.tell(failed("t2"))) == [("t4", "a")]


def test_a_refusal_halves_what_the_replica_may_have_once_it_opens() -> None:
    """Case 15."""
    world = World(spec("a"))
    world.tell_all([arrived(f"t{number}") for number in range(10)])
    world.tell(failed("t0", retry_after_s=2.0))
    world.tell_all([failed(f"t{number}", retry_after_s=2.5) for number in (1, 2, 3)])
    assert window(world) == Window(5, refused_at=10), "one closure, one halving"
    world.tell(finished("t4"))
    assert window(world) == Window(5, refused_at=10), "what it answers while closed proves nothing"
    assert world.hold(arrived("u1")) == ReplicaClosed(replica=A)
    world.later(3)
    assert world.in_flight("a") == 5
    assert placed(world.tell(WokeUp())) == []
    reason = world.hold(arrived("u2"))
    assert explain(reason) == "a refused a turn a moment ago and takes 5 turns until it has answered some"
    assert placed(world.tell(failed("t5"))) == [("u1", "a")]


def test_a_window_after_a_refusal_grows_by_one_for_each_windowful_until_it_is_past_what_was_refused() -> None:
    world = World(spec("a"))
    world.tell_all([arrived(f"t{number}") for number in range(6)])
    world.tell(failed("t0", retry_after_s=1.0))
    world.later(1)
    world.tell(WokeUp())
    seen = []
    for number in range(1, 3 + 4 + 5 + 6 + 1):
        world.tell_all([arrived(f"u{number}"), finished(f"u{number}" if number > 5 else f"t{number}")])
        seen.append(size(world))
        world.tell(TurnAbandoned(turn=TurnId(f"u{number}")))
    assert seen == [3] * 2 + [4] * 4 + [5] * 5 + [6] * 6 + [None]


def test_a_refusal_never_widens_and_never_leaves_nothing() -> None:
    assert after_refusal(replica(in_flight=1)) == Window(1, refused_at=1)
    assert after_refusal(replica(in_flight=7)) == Window(3, refused_at=7)
    assert after_refusal(replica(in_flight=20, window=Window(6))) == Window(6, refused_at=20)
    assert after_outage(Limits(slow_start=0)) == Window(1)
    world = World(spec("a"))
    world.tell_all([arrived("t"), failed("t", retry_after_s=1.0)])
    world.later(1)
    assert placed(world.tell_all([WokeUp(), arrived("u"), finished("u")])) == [("u", "a")]
    assert window(world) is None, "it bears one again, and only one was refused"


def test_a_replica_that_is_not_well_has_no_window_when_it_refuses() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1"), arrived("t2"), probed("a", healthy=False), failed("t1", retry_after_s=9.0)])
    assert window(world) is None
    world.tell_all([probed("a"), finished("t2")])
    assert window(world) == Window(4), "closed, so that answer does not count"


def test_a_window_and_a_queue_cap_both_hold() -> None:
    world = fallen_and_risen()
    world.tell_all([arrived(f"t{number}") for number in range(3)])
    subject = world.state.replicas[A]
    assert capacity(subject) == 4
    world.tell(probed("a", running=2, waiting=1))
    assert capacity(world.state.replicas[A]) == 2
    world.tell(probed("a", running=9, waiting=1))
    assert capacity(world.state.replicas[A]) == 4


def test_a_replica_with_none_of_our_turns_takes_one_and_batch_leaves_kept_room_in_a_window() -> None:
    assert has_room(replica(kept=9, window=Window(1)), ServiceClass.BATCH)
    world = fallen_and_risen(slow_start=2)
    world.tell_all([arrived("i1", "r"), arrived("b1", batch=True), finished("i1", tools=1), failed("b1")])
    world.tell_all([arrived("b2", batch=True), arrived("b3", batch=True)])
    assert world.hold(arrived("b4", batch=True)) == RoomKept(replica=A, paused_interactive=1)
    assert world.place(arrived("i2", "r")) == "a"
    assert not takes_back(replica(in_flight=1, window=Window(1)))


def test_a_turn_that_may_go_elsewhere_does_not_wait_for_a_window() -> None:
    world = World(spec("a"), spec("b"), limits=Limits(slow_start=1))
    world.tell_all([probed("a", healthy=False), probed("a")])
    assert [world.place(arrived(f"t{number}")) for number in range(4)] == ["a", "b", "b", "b"]


def test_without_a_failure_there_is_no_window() -> None:
    """Case 16."""
    world = World(spec("a"), spec("b"))
    for number in range(50):
        only(world.tell(arrived(f"t{number}", f"r{number % 7}", batch=number % 2 == 0)), PlaceTurn)
        world.tell(finished(f"t{number}", tools=number % 3) if number % 5 else failed(f"t{number}"))
        world.tell(probed("ab"[number % 2], running=number % 3, waiting=0))
    assert all(known.window is None for known in world.state.replicas.values())


@pytest.mark.parametrize(
    "broken",
    [
        Window(0),
        Window(4, answered=1),
        Window(3, refused_at=2),
        Window(3, refused_at=9, answered=3),
    ],
)
def test_an_impossible_window_is_noticed(broken: Window) -> None:
    state = fallen_and_risen().state
    check(state)
    wrong = state._replace(replicas=state.replicas.set(A, state.replicas[A]._replace(window=broken)))
    with pytest.raises(AssertionError):
        check(wrong)
