"""What launchers and operators report, taken in: circuits, crashes, memory raised, asks, names that are taken."""

import math

import pytest

from core.scheduling.builders import World, arrived, failed, finished, placed, refused, spec
from core.scheduling.residency.words import GIB, down, joined, load_failed, model, unload_asked, up
from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.scheduling.actions import Action, RefuseTurn
from luftpause.core.scheduling.events import RunEnded, WokeUp
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherLost, LoadAsked, LoadProgressed, PinAsked
from luftpause.core.scheduling.residency.reasons import LoadReason, UnloadReason
from luftpause.core.scheduling.residency.reports import MEMORY_RAISED, RESTARTS_MAX
from luftpause.core.scheduling.residency.state import Model, ModelPhase, ResidencyLimits
from luftpause.core.scheduling.state import Limits

A = ModelName("A")


def world(*marks: str, limits: ResidencyLimits | None = None, memory: float = 6, ram: float = 10) -> World:
    made = World(limits=Limits(residency=limits or ResidencyLimits()))
    made.tell(joined(model("A", memory, *marks), model("B", 3), ram=ram))
    return made


def known(made: World, name: ModelName = A) -> Model:
    return made.state.residency.models[name]


def restart_s(made: World) -> float:
    restart_at = known(made).not_before
    assert restart_at is not None
    return restart_at - made.now


def refusals(actions: tuple[Action, ...]) -> list[tuple[RefusalReason, float | None]]:
    return [(each.why.reason, each.why.retry_after_s) for each in actions if isinstance(each, RefuseTurn)]


def loads(actions: tuple[Action, ...]) -> list[str]:
    return [each.model for each in actions if isinstance(each, LoadModel)]


def unloads(actions: tuple[Action, ...]) -> list[tuple[str, UnloadReason]]:
    return [(each.model, each.why.reason) for each in actions if isinstance(each, UnloadModel)]


def test_twenty_turns_are_one_load_and_all_are_served_in_the_decision_that_hears_of_it() -> None:
    made = world()
    ordered = [action for number in range(20) for action in made.tell(arrived(f"t{number}", model="A"))]
    assert loads(tuple(ordered)) == ["A"]
    assert placed(made.tell(up("A"))) == [(f"t{number}", "box/A") for number in range(20)]


def test_a_circuit_opens_after_the_third_failure_for_twice_as_long_each_time_and_no_longer_than_is_set() -> None:
    made = world(limits=ResidencyLimits(circuit_s=2.0, circuit_s_max=7.0))
    waits: list[float | None] = []
    for number in range(6):
        made.tell(arrived(f"t{number}", model="A"))
        failed_now = made.tell(load_failed("A"))
        waits.append(refusals(failed_now)[0][1])
        made.later(waits[-1] or 0.0)
    assert waits == [None, None, 2.0, 4.0, 7.0, 7.0]
    made.later(-1.0)
    assert refusals(made.tell(arrived("late", model="A"))) == [(RefusalReason.MODEL_FAILING, 1.0)]


def test_a_failed_load_refuses_all_its_waiters_with_one_cause_and_the_end_of_the_log() -> None:
    made = world()
    made.tell_all([arrived("t1", model="A"), arrived("t2", model="A", batch=True)])
    orders = made.tell(load_failed("A", "exit status 1", *(f"line {number}" for number in range(9))))
    assert refused(orders) == ["t1", "t2"]
    messages = {each.why.message for each in orders if isinstance(each, RefuseTurn)}
    tail = "".join(f"\nline {number}" for number in range(4, 9))
    assert messages == {f"model 'A' could not be loaded: exit status 1{tail}"}


def test_an_unload_that_was_ordered_makes_failures_forgotten() -> None:
    made = world()
    made.tell_all([LoadAsked(model=A), up("A"), down("A"), arrived("t", model="A"), up("A")])
    assert (known(made).failures, known(made).crashes) == (1, 1)
    made.tell_all([finished("t"), unload_asked("A"), down("A")])
    assert (known(made).failures, known(made).crashes) == (0, 0)


def test_a_want_of_memory_is_tried_once_more_with_more_and_what_was_measured_counts_from_then_on() -> None:
    made = world(memory=4)
    made.tell(arrived("t", model="A"))
    again = made.tell(load_failed("A", oom=True))
    assert loads(again) == ["A"]
    assert refused(again) == []
    assert known(made).memory == 4 * GIB * MEMORY_RAISED
    assert placed(made.tell(up("A", 4.5))) == [("t", "box/A")]
    assert known(made).memory == 4.5 * GIB
    made.tell_all([finished("t"), unload_asked("A"), down("A")])
    assert (known(made).memory, known(made).is_measured) == (4.5 * GIB, True)


def test_without_more_memory_to_give_a_want_of_it_is_a_failure() -> None:
    made = world(memory=10)
    made.tell(arrived("t", model="A"))
    assert refused(made.tell(load_failed("A", oom=True))) == ["t"]


def test_one_whose_memory_nobody_knows_is_tried_again_with_all_there_is() -> None:
    made = world(memory=0)
    made.tell(arrived("t", model="A"))
    assert loads(made.tell(load_failed("A", oom=True))) == ["A"]
    assert known(made).memory == 10 * GIB


def test_a_crash_of_a_model_that_was_long_up_is_its_first() -> None:
    made = world()
    for number in range(5):
        made.tell_all([arrived(f"t{number}", model="A"), up("A")])
        made.later(61.0)
        made.tell_all([down("A", "signal 11"), failed(f"t{number}")])
    assert (known(made).failures, known(made).failed_why) == (1, "signal 11")


def test_a_model_that_crashes_again_and_again_is_left_alone_and_its_waiters_are_told() -> None:
    made = world()
    for number in range(3):
        made.tell_all([arrived(f"t{number}", f"r{number}", model="A"), up("A")])
        last = made.tell(down("A"))
        made.tell(failed(f"t{number}"))
    assert known(made).closed_until == 2.0
    assert refusals(made.tell(arrived("t", model="A"))) == [(RefusalReason.MODEL_FAILING, 2.0)]
    assert refused(last) == []


def test_auto_restart_gives_up_after_its_attempts() -> None:
    made = world("auto_restart")
    delays: list[float] = []
    made.tell_all([LoadAsked(model=A), up("A")])
    while len(delays) < 9:
        made.tell(down("A"))
        restart_at = known(made).not_before
        if restart_at is None:
            break
        delays.append(restart_at - made.now)
        made.later(delays[-1])
        assert loads(made.tell(WokeUp())) == ["A"]
        made.tell(up("A"))
    assert delays == [2.0, 4.0, 8.0][:RESTARTS_MAX]


def test_a_restart_that_fails_is_followed_by_the_next_until_none_is_left() -> None:
    made = world("auto_restart")
    made.tell_all([LoadAsked(model=A), up("A"), down("A")])
    delays: list[float] = []
    while (restart_at := known(made).not_before) is not None and len(delays) < 9:
        delays.append(restart_at - made.now)
        made.later(delays[-1])
        assert loads(made.tell(WokeUp())) == ["A"]
        assert known(made).load_why is LoadReason.RESTART
        made.tell(load_failed("A"))
    assert delays == [2.0, 4.0, 8.0][:RESTARTS_MAX]
    assert loads(made.tell(arrived("t", model="A"))) == [], "it is left alone now"


def test_what_failed_is_forgotten_once_it_is_ready_but_not_that_it_crashed_just_then() -> None:
    made = world("auto_restart")
    made.tell_all([LoadAsked(model=A), up("A"), down("A")])
    for _ in range(2):
        made.later(restart_s(made))
        made.tell_all([WokeUp(), load_failed("A")])
    made.later(restart_s(made))
    made.tell_all([WokeUp(), up("A"), down("A")])
    assert restart_s(made) == 4.0, "its second crash in a row"
    made.later(4.0)
    made.tell_all([WokeUp(), up("A")])
    made.later(100.0)
    made.tell(down("A"))
    assert restart_s(made) == 2.0


def test_a_turn_that_begins_a_restart_sooner_is_told_of_its_failure_and_the_next_restart_follows() -> None:
    made = world("auto_restart")
    made.tell_all([LoadAsked(model=A), up("A"), down("A")])
    assert loads(made.tell(arrived("t", model="A"))) == ["A"]
    assert [reason for reason, _ in refusals(made.tell(load_failed("A")))] == [RefusalReason.LOAD_FAILED]
    assert restart_s(made) == 4.0
    assert unloads(made.tell(unload_asked("A"))) == []
    made.later(4.0)
    assert loads(made.tell(WokeUp())) == [], "a deliberate stop is never undone"


def test_progress_only_goes_forward_and_what_is_no_number_is_none() -> None:
    made = world()
    made.tell(arrived("t", model="A"))
    for fraction, then in [(0.5, 0.5), (0.2, 0.5), (math.nan, 0.5), (-1.0, 0.5), (7.0, 1.0)]:
        made.tell(LoadProgressed(model=A, fraction=fraction))
        assert known(made).fraction == then


def test_an_operator_loads_a_model_and_nobody_who_is_used_goes_for_it() -> None:
    made = world(ram=7)
    made.tell_all([arrived("t", model="B"), up("B")])
    made.later(100.0)
    assert made.tell(LoadAsked(model=A)) == ()
    made.tell(finished("t", tools=["look"]))
    assert known(made).phase is ModelPhase.DOWN
    made.tell(RunEnded(run=arrived("t").run))
    assert known(made, ModelName("B")).phase is ModelPhase.STOPPING
    assert loads(made.tell(down("B"))) == ["A"]
    made.tell(up("A"))
    assert known(made).load_why is LoadReason.ASKED
    assert known(made).asked is None


def test_a_pinned_model_stays_though_it_is_idle_and_somebody_needs_its_room() -> None:
    made = world("pinned")
    made.tell_all([arrived("t", model="A"), up("A"), finished("t")])
    made.later(1000.0)
    assert made.tell(WokeUp()) == ()
    made.tell(PinAsked(model=A, on=False))
    assert not known(made).pinned


@pytest.mark.parametrize("keep", [False, True])
def test_an_unload_refuses_those_that_wait_or_keeps_them_as_asked(keep: bool) -> None:
    made = world()
    made.tell(arrived("t", model="A"))
    orders = made.tell(unload_asked("A", keep=keep))
    assert unloads(orders) == [("A", UnloadReason.ASKED)]
    assert refusals(orders) == ([] if keep else [(RefusalReason.MODEL_UNLOADED, None)])
    assert loads(made.tell(down("A"))) == (["A"] if keep else [])


def test_an_unload_while_the_launcher_is_away_waits_for_it() -> None:
    made = world()
    made.tell_all([arrived("t", model="A"), up("A"), finished("t"), LauncherLost(launcher=LauncherId("box"))])
    assert made.tell(unload_asked("A", firmly=True)) == ()
    assert known(made).phase is ModelPhase.DRAINING


def test_a_replica_whose_name_is_taken_is_stopped_and_the_other_stays() -> None:
    made = World(spec("mine", "m"))
    made.tell(joined(model("A")))
    made.tell(arrived("t", model="A"))
    assert unloads(made.tell(up("A", replica="mine"))) == [("A", UnloadReason.NAME_TAKEN)]
    assert made.place(arrived("t2", model="m")) == "mine"


def test_a_name_that_is_taken_is_a_failure_like_any_other() -> None:
    made = World(spec("mine", "m"))
    made.tell(joined(model("A")))
    for failures in (1, 2, 3):
        assert loads(made.tell(arrived(f"t{failures}", model="A"))) == ["A"]
        (told,) = [each.why for each in made.tell(up("A", replica="mine")) if isinstance(each, RefuseTurn)]
        assert told.reason is RefusalReason.LOAD_FAILED
        assert told.message == "model 'A' could not be loaded: another replica is called 'mine' already"
        assert loads(made.tell(down("A"))) == []
        assert (known(made).failures, known(made).failed_why) == (failures, "another replica is called 'mine' already")
    assert refusals(made.tell(arrived("t4", model="A"))) == [(RefusalReason.MODEL_FAILING, 2.0)]


def test_reports_that_fit_nothing_change_nothing() -> None:
    made = world()
    before = made.state
    for event in (down("A"), load_failed("A"), up("nobody"), unload_asked("A"), LoadProgressed(model=A, fraction=0.5)):
        assert made.tell(event) == ()
    assert known(made) == before.residency.models[A]


def test_an_engine_that_ends_while_it_loads_has_failed() -> None:
    made = world()
    made.tell(arrived("t", model="A"))
    assert refusals(made.tell(down("A", "killed"))) == [(RefusalReason.LOAD_FAILED, None)]
    assert known(made).failed_why == "killed"


def test_an_only_last_word_that_the_cause_quotes_is_told_once() -> None:
    world = World()
    world.tell(joined(model("A")))
    world.tell(arrived("t", model="A"))
    (refusal,) = [
        each.why
        for each in world.tell(load_failed("A", "it ended: no such file", "no such file"))
        if isinstance(each, RefuseTurn)
    ]
    assert refusal.message == "model 'A' could not be loaded: it ended: no such file"
