"""What ends by itself, and when."""

import pytest

from core.scheduling.builders import World, arrived, finished, forgotten, placed, probed, refused, spec
from luftpause.core.model.ids import Instant, RunId, TurnId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.decide import next_deadline
from luftpause.core.scheduling.events import FirstTokenSeen, RunEnded, RunPhase, TurnArrived, TurnsRenewed, WokeUp
from luftpause.core.scheduling.state import Limits


def test_an_empty_scheduler_sleeps_for_ever() -> None:
    assert next_deadline(World(spec("a")).state) is None


def test_a_turn_without_a_sign_of_life_is_dropped_after_ten_minutes_and_frees_its_slot() -> None:
    world = World(spec("a"))
    world.place(arrived("t1", "r"))
    world.tell(probed("a", running=1, waiting=1))
    assert next_deadline(world.state) == 600.0
    world.later(599)
    world.hold(arrived("t2"))
    assert world.tell(WokeUp()) == ()
    world.later(1)
    assert placed(world.tell(WokeUp())) == [("t2", "a")]
    assert world.phase("r") is RunPhase.IDLE


@pytest.mark.parametrize(
    "sign",
    [
        FirstTokenSeen(turn=TurnId("t")),
        TurnsRenewed(turns=(TurnId("unknown"), TurnId("t"))),
        arrived("t"),
    ],
    ids=lambda sign: type(sign).__name__,
)
def test_any_sign_of_life_renews_a_turn(sign: FirstTokenSeen | TurnsRenewed | TurnArrived) -> None:
    world = World(spec("a"))
    world.place(arrived("t"))
    world.later(500)
    world.tell(sign)
    world.later(100)
    assert world.tell(WokeUp()) == ()
    assert world.in_flight("a") == 1
    assert next_deadline(world.state) == 1100.0
    world.later(500)
    world.tell(WokeUp())
    assert world.in_flight("a") == 0


def test_a_held_turn_lives_as_long_as_its_dataplane_renews_it() -> None:
    world = World(spec("a"), healthy=False)
    world.hold(arrived("t", "r"))
    for _ in range(10):
        world.later(599)
        world.tell_all([TurnsRenewed(turns=(TurnId("t"),)), WokeUp()])
    assert TurnId("t") in world.state.held
    world.later(601)
    actions = world.tell(WokeUp())
    assert refused(actions) == ["t"]
    assert isinstance(actions[0], RefuseTurn)
    assert actions[0].why.reason is RefusalReason.EXPIRED


def test_a_late_completion_of_an_expired_turn_is_its_end_and_charges_nothing_twice() -> None:
    world = World(spec("a"))
    world.place(arrived("t"))
    world.later(600)
    world.tell(WokeUp())
    assert world.in_flight("a") == 0
    world.tell_all([finished("t", tools=1), finished("t")])
    assert world.in_flight("a") == 0
    assert world.phase("run-t") is RunPhase.PAUSED


@pytest.mark.parametrize("tools", [0, 1])
def test_a_run_is_forgotten_thirty_minutes_after_its_last_turn_ended(tools: int) -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t", "r"), finished("t", tools=tools)])
    world.later(1799)
    assert forgotten(world.tell(WokeUp())) == []
    world.later(1)
    assert forgotten(world.tell(WokeUp())) == ["r"]
    assert world.phase("r") is None
    assert next_deadline(world.state) is None


def test_a_forgotten_run_that_comes_back_starts_without_affinity() -> None:
    world = World(spec("a"), spec("b"))
    world.tell_all([arrived("t", "r"), finished("t", tools=1)])
    world.later(1800)
    world.tell_all([WokeUp(), arrived("x"), arrived("y"), finished("y")])
    assert (world.in_flight("b"), world.in_flight("a")) == (1, 0)
    world.place(arrived("t2", "r"))
    assert world.in_flight("a") == 1


def test_a_run_with_a_turn_in_flight_or_held_never_goes_idle() -> None:
    world = World(spec("a"))
    world.place(arrived("t", "r"))
    for _ in range(10):
        world.later(590)
        world.tell_all([TurnsRenewed(turns=(TurnId("t"),)), WokeUp()])
    assert world.phase("r") is RunPhase.GENERATING


def test_deadlines_are_rounded_up_to_whole_seconds_so_that_many_share_a_wake_up() -> None:
    world = World(spec("a"))
    for number in range(100):
        world.place(arrived(f"t{number}"))
        world.later(0.009)
    assert next_deadline(world.state) == 600.0
    world.now = Instant(601.0)
    world.tell(WokeUp())
    assert next_deadline(world.state) is not None
    assert world.in_flight("a") == 0


def test_a_turn_renewed_long_ago_is_dropped_by_the_first_wake_up_after_its_deadline() -> None:
    world = World(spec("a"))
    world.place(arrived("t"))
    world.later(500)
    world.tell(TurnsRenewed(turns=(TurnId("t"),)))
    world.later(5000)
    world.tell(WokeUp())
    assert world.in_flight("a") == 0


def test_a_wake_up_never_leaves_a_deadline_that_has_passed() -> None:
    world = World(spec("a"), limits=Limits(turn_timeout_s=0.1, run_idle_expiry_s=0.3))
    for number in range(50):
        world.place(arrived(f"t{number}"))
        world.later(0.0137)
        world.tell(WokeUp())
        deadline = next_deadline(world.state)
        assert deadline is not None
        assert deadline > world.now


def test_a_run_that_was_used_since_is_looked_at_in_vain_and_forgotten_at_its_new_time() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), finished("t1")])
    world.later(1000)
    world.tell_all([arrived("t2", "r"), finished("t2")])
    world.later(800)
    assert world.tell(WokeUp()) == ()
    assert next_deadline(world.state) == 2800.0
    world.later(1000)
    assert forgotten(world.tell(WokeUp())) == ["r"]


def test_a_run_that_was_busy_when_it_was_looked_at_is_forgotten_after_its_rest() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r"), finished("t1")])
    world.later(1700)
    world.place(arrived("t2", "r"))
    world.later(100)
    assert world.tell(WokeUp()) == ()
    world.tell(finished("t2"))
    world.later(1799)
    assert world.tell(WokeUp()) == ()
    world.later(1)
    assert forgotten(world.tell(WokeUp())) == ["r"]


def test_runs_are_forgotten_in_the_order_in_which_they_came_to_rest() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "z"), finished("t1"), arrived("t2", "a"), finished("t2")])
    world.later(10)
    world.tell_all([arrived("t3", "a"), finished("t3")])
    world.later(5000)
    assert forgotten(world.tell(WokeUp())) == ["z", "a"]


def test_each_dataplanes_turns_are_over_at_their_own_time() -> None:
    world = World(spec("a"))
    world.place(arrived("p1", peer="p"))
    world.place(arrived("q1", peer="q"))
    world.later(300)
    world.place(arrived("p2", peer="p"))
    world.tell(TurnsRenewed(turns=(TurnId("q1"),)))
    world.later(300)
    world.tell(WokeUp())
    assert set(world.state.turns) == {"p2", "q1"}
    assert next_deadline(world.state) == 900.0
    world.later(300)
    world.tell(WokeUp())
    assert not world.state.turns
    assert next_deadline(world.state) == 2400.0, "when the idle runs are forgotten"


def test_a_second_sign_of_life_in_the_same_second_changes_nothing() -> None:
    world = World(spec("a"))
    world.later(0.2)
    world.place(arrived("t"))
    world.later(0.7)
    before = world.state
    assert world.tell(FirstTokenSeen(turn=TurnId("t"))) == ()
    assert world.state is before
    world.later(0.2)
    world.tell(FirstTokenSeen(turn=TurnId("t")))
    assert world.state is not before


def test_a_paused_run_is_not_idle_while_one_that_it_waits_for_is_at_work() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "boss"), finished("t1", tools=["spawn"]), arrived("t2", "kid", parent="boss")])
    for _ in range(10):
        world.later(590)
        assert world.tell_all([TurnsRenewed(turns=(TurnId("t2"),)), WokeUp()]) == ()
    assert world.phase("boss") is RunPhase.PAUSED
    world.tell(finished("t2"))
    world.later(1700)
    assert forgotten(world.tell(WokeUp())) == []
    world.later(200)
    assert sorted(forgotten(world.tell(WokeUp()))) == ["boss", "kid"]


def test_a_run_whose_sub_agents_were_ended_waits_for_nobody() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "boss"), finished("t1", tools=["spawn"]), arrived("t2", "kid", parent="boss")])
    world.tell_all([finished("t2"), RunEnded(run=RunId("kid"))])
    world.later(1800)
    assert forgotten(world.tell(WokeUp())) == ["boss"]


def test_a_run_that_waits_for_nobody_is_idle_whoever_works_for_it() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "boss"), finished("t1"), arrived("t2", "kid", parent="boss")])
    for _ in range(3):
        world.later(590)
        world.tell(TurnsRenewed(turns=(TurnId("t2"),)))
    world.later(30)
    assert forgotten(world.tell(WokeUp())) == ["boss"]
