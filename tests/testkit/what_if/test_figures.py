"""Recorded and simulated runs in the same figures."""

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.sim.past import EndedRun
from luftpause.testkit.what_if.extract import extract
from luftpause.testkit.what_if.figures import column, error_of, recorded_courses, simulated_courses
from testkit.what_if.recorded import declared, log_of, turn


def ended(run: str, begun_at: float, ended_at: float) -> EndedRun:
    return EndedRun(
        run=RunId(run),
        service_class=ServiceClass.INTERACTIVE,
        stream=0,
        parent=None,
        principal=ANONYMOUS_PRINCIPAL,
        caller=CallerId("c"),
        alone_s=1.0,
        service=1.0,
        begun_at=begun_at,
        ended_at=ended_at,
        turns=1,
        turn_s=(ended_at - begun_at,),
        reprefilled_tokens=7,
        moves=0,
        failed=False,
    )


def test_recorded_runs_have_their_times_and_what_was_computed_again() -> None:
    told = [*turn("1", "r", 0.0, 1.0, (100, 10, 0)), *turn("2", "r", 5.0, 2.0, (150, 10, 60))]
    told += turn("3", "r", 9.0, 1.0, (20, 10, 0))
    (course,) = recorded_courses(extract(log_of(*declared(), *told)).runs)
    assert (course.seconds, course.turn_s, course.reprefilled_tokens) == (10.0, (1.0, 2.0, 1.0), 40)
    unknown = extract(log_of(*declared(), *turn("1", "r", 0.0, 1.0, None))).runs
    assert recorded_courses(unknown)[0].reprefilled_tokens is None


def test_runs_count_when_they_are_whole_and_turns_always() -> None:
    runs = [ended("a", 0.0, 10.0), ended("b", 0.0, 90.0), ended("cut", 0.0, 1.0)]
    found = column(simulated_courses(runs, frozenset({RunId("a"), RunId("b")})), 5, 60.0, 2)
    assert (found.interactive_runs_per_min, found.interactive_p50_s, found.interactive_p99_s) == (1.0, 10.0, 90.0)
    assert (found.interactive_turn_p50_s, found.batch_p50_s, found.held_turns, found.unfinished_runs) == (
        10.0,
        None,
        5,
        2,
    )
    assert found.reprefilled_tokens_per_run == 7


def test_the_error_is_that_of_the_middle_run() -> None:
    whole = frozenset({RunId("a"), RunId("b"), RunId("c")})
    recorded = simulated_courses([ended(name, 0.0, 10.0) for name in "abcd"], whole)
    simulated = simulated_courses([ended("a", 0.0, 11.0), ended("b", 5.0, 10.0), ended("c", 0.0, 12.0)], whole)
    assert error_of(recorded, simulated) == 0.2
    assert error_of(recorded, []) is None
