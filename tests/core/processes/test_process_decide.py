"""One engine process, event by event."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from luftpause.core.model.ids import Instant
from luftpause.core.processes.actions import (
    Action,
    Deregister,
    ProbeProcess,
    Register,
    ReportFailure,
    ReportStopped,
    SignalProcess,
    StartProcess,
    StopSignal,
)
from luftpause.core.processes.decide import decide, next_deadline
from luftpause.core.processes.events import (
    Event,
    ProbeFailed,
    ProbeSucceeded,
    ProcessExited,
    ProcessStarted,
    ProgressSeen,
    StartRequested,
    StopRequested,
    WokeUp,
)
from luftpause.core.processes.invariants import check
from luftpause.core.processes.reasons import EndReason, Failure, FailureKind, StartReason, StopReason, explain
from luftpause.core.processes.state import (
    BackingOff,
    EngineProcess,
    Exited,
    Limits,
    Ready,
    Starting,
    Stopping,
    never_started,
    running_already,
)
from luftpause.core.processes.view import view

LIMITS = Limits(readiness_timeout_s=60.0, stop_grace_s=5.0, probe_period_s=0.5)
TERM = SignalProcess(attempt=1, signal=StopSignal.TERM, why=StopReason.REQUESTED)
KILL = replace(TERM, signal=StopSignal.KILL)
GONE = ReportStopped(attempt=1)


@dataclass
class Machine:
    """Drives the machine; `at` answers with the actions of one event."""

    state: EngineProcess

    def at(self, now: float, event: Event) -> tuple[Action, ...]:
        decision = decide(self.state, event, Instant(now))
        self.state = decision.state
        check(self.state)
        return decision.actions

    def wake(self, now: float) -> tuple[Action, ...]:
        assert next_deadline(self.state) == now
        return self.at(now, WokeUp())


def never() -> Machine:
    return Machine(never_started(LIMITS, Instant(0.0)))


def starting() -> Machine:
    machine = never()
    machine.at(0.0, StartRequested())
    return machine


def loading() -> Machine:
    machine = starting()
    machine.at(0.0, ProcessStarted(attempt=1))
    return machine


def ready() -> Machine:
    machine = loading()
    machine.at(1.0, ProbeSucceeded(attempt=1))
    return machine


def backing_off() -> Machine:
    machine = ready()
    machine.at(2.0, exited(1))
    return machine


def stopping() -> Machine:
    machine = ready()
    machine.at(2.0, StopRequested())
    return machine


def given_up() -> Machine:
    machine = starting()
    for attempt in (1, 2, 3, 4):
        machine.at(0.0, exited(attempt))
        machine.at(1000.0, WokeUp())
    return machine


def exited(attempt: int, code: int | None = 1) -> ProcessExited:
    return ProcessExited(attempt=attempt, code=code, tail=("bad model",))


def test_an_engine_is_started_probed_and_declared_when_it_is_ready() -> None:
    machine = never()
    assert machine.at(0.0, StartRequested()) == (StartProcess(attempt=1, why=StartReason.REQUESTED),)
    assert machine.at(0.1, ProcessStarted(attempt=1)) == (ProbeProcess(attempt=1),)
    assert machine.at(0.2, ProbeFailed(attempt=1)) == ()
    assert machine.wake(0.7) == (ProbeProcess(attempt=1),)
    assert machine.at(0.8, ProbeSucceeded(attempt=1)) == (Register(attempt=1),)
    assert machine.state.phase == Ready(since=Instant(0.8))
    assert next_deadline(machine.state) is None


def watched(silent_s: float = 30.0) -> Machine:
    """An engine that is ready and was then asked how it is, at 6 seconds."""
    machine = Machine(never_started(replace(LIMITS, silent_s=silent_s), Instant(0.0)))
    machine.at(0.0, StartRequested())
    machine.at(0.0, ProcessStarted(attempt=1))
    machine.at(1.0, ProbeSucceeded(attempt=1))
    assert machine.wake(6.0) == (ProbeProcess(attempt=1),)
    assert next_deadline(machine.state) is None
    return machine


def stays_silent(machine: Machine, worked_s: list[float | None]) -> list[Action]:
    """It answers no probe, one after another, while its processes have worked for so long."""
    done: list[Action] = []
    now = 6.0
    for each in worked_s:
        done += machine.at(now, ProbeFailed(attempt=1, worked_s=each))
        due = next_deadline(machine.state)
        if not isinstance(machine.state.phase, Ready):
            break
        assert due is not None
        now = due
        assert machine.wake(now) == (ProbeProcess(attempt=1),)
    return done


HUNG = SignalProcess(attempt=1, signal=StopSignal.TERM, why=StopReason.HUNG)


def test_an_engine_that_answers_nothing_and_does_nothing_is_ended_and_fails_like_one_that_crashed() -> None:
    machine = watched()
    assert stays_silent(machine, [9.0] * 7) == [HUNG]
    assert machine.wake(41.0) == (replace(HUNG, signal=StopSignal.KILL),)
    (told,) = machine.at(41.1, exited(1, -9))
    assert isinstance(told, ReportFailure)
    assert (told.failure.kind, told.retry_in_s) == (FailureKind.HUNG, 2.0)
    assert explain(told.failure).startswith("hung: it answered no probe any more, did nothing, and was ended")
    assert view(machine.state, Instant(41.1)).state == "backing-off"


@pytest.mark.parametrize(
    "worked_s",
    [
        [9.0 + 0.1 * each for each in range(30)],
        [None] * 30,
        [9.0, 9.0, None] * 10,
        [9.0 + each // 4 for each in range(30)],
    ],
    ids=["it works all the while", "nobody can tell", "nobody can tell at times", "it works at times"],
)
def test_an_engine_that_is_silent_and_may_be_busy_is_left_alone(worked_s: list[float | None]) -> None:
    assert stays_silent(watched(), worked_s) == []


def test_one_answer_ends_a_silence_and_an_engine_that_is_not_watched_has_none() -> None:
    machine = watched()
    assert stays_silent(machine, [9.0] * 6) == []
    assert machine.at(36.0, ProbeSucceeded(attempt=1)) == ()
    assert machine.state.phase == Ready(since=Instant(1.0), probe_at=Instant(41.0))
    unwatched = ready()
    assert unwatched.at(2.0, ProbeFailed(attempt=1, worked_s=1.0)) == ()
    assert unwatched.state.phase == Ready(since=Instant(1.0))


def test_a_watch_without_patience_never_spins() -> None:
    machine = Machine(running_already(replace(LIMITS, silent_s=0.0), Instant(0.0)))
    assert next_deadline(machine.state) == LIMITS.probe_period_s_max


def test_only_one_probe_is_out_at_a_time() -> None:
    machine = loading()
    assert machine.at(30.0, WokeUp()) == ()
    assert next_deadline(machine.state) == 60.0


def test_an_engine_that_is_not_ready_in_time_is_stopped_killed_and_tried_again() -> None:
    machine = loading()
    term = SignalProcess(attempt=1, signal=StopSignal.TERM, why=StopReason.NOT_READY)
    assert machine.wake(60.0) == (term,)
    assert machine.wake(65.0) == (replace(term, signal=StopSignal.KILL),)
    assert next_deadline(machine.state) is None
    failure = Failure(kind=FailureKind.NOT_READY_IN_TIME, code=-9, tail=("bad model",))
    assert machine.at(65.1, exited(1, -9)) == (ReportFailure(attempt=1, failure=failure, retry_in_s=2.0),)
    assert not machine.state.registered, "what was never ready was never declared"


def test_a_probe_that_succeeds_after_the_deadline_comes_too_late() -> None:
    machine = loading()
    machine.wake(60.0)
    assert machine.at(60.1, ProbeSucceeded(attempt=1)) == ()
    assert isinstance(machine.state.phase, Stopping)


def test_restarts_pause_2_4_and_8_seconds_and_then_the_engine_is_given_up() -> None:
    machine = loading()
    pauses = []
    for attempt in (1, 2, 3):
        (report,) = machine.at(100.0 * attempt, exited(attempt))
        assert isinstance(report, ReportFailure)
        pauses.append(report.retry_in_s)
        assert report.retry_in_s is not None
        restart = StartProcess(attempt=attempt + 1, why=StartReason.RESTART)
        assert machine.wake(100.0 * attempt + report.retry_in_s) == (restart,)
    assert pauses == [2.0, 4.0, 8.0]
    (report,) = machine.at(400.0, exited(4))
    assert isinstance(report, ReportFailure)
    assert report.retry_in_s is None
    assert machine.at(1e6, WokeUp()) == ()


def test_readiness_clears_the_failures() -> None:
    machine = loading()
    for attempt in (1, 2, 3):
        machine.at(100.0 * attempt, exited(attempt))
        machine.at(100.0 * attempt + 50.0, WokeUp())
    machine.at(360.0, ProcessStarted(attempt=4))
    machine.at(361.0, ProbeSucceeded(attempt=4))
    (report,) = machine.at(400.0, exited(4))
    assert isinstance(report, ReportFailure)
    assert report.retry_in_s == 2.0


def test_every_start_is_declared_anew_because_its_port_may_be_another() -> None:
    machine = backing_off()
    assert machine.state.registered, "its turns are held, not refused"
    machine.wake(4.0)
    machine.at(4.0, ProcessStarted(attempt=2))
    assert machine.at(4.1, ProbeSucceeded(attempt=2)) == (Register(attempt=2),)


def test_an_engine_without_restarts_is_given_up_at_its_first_failure_and_taken_away() -> None:
    machine = Machine(never_started(replace(LIMITS, backoff_s=()), Instant(0.0)))
    for event in (StartRequested(), ProcessStarted(attempt=1), ProbeSucceeded(attempt=1)):
        machine.at(0.0, event)
    report, deregister = machine.at(1.0, exited(1))
    assert isinstance(report, ReportFailure)
    assert report.retry_in_s is None
    assert deregister == Deregister(why=EndReason.GAVE_UP)


def test_progress_of_a_load_extends_its_limit_and_changes_nothing_else() -> None:
    machine = loading()
    assert machine.at(40.0, ProgressSeen(attempt=1)) == ()
    assert next_deadline(machine.state) == 100.0
    machine.at(41.0, ProbeFailed(attempt=1))
    assert next_deadline(machine.state) == 41.5
    assert machine.at(42.0, ProgressSeen(attempt=0)) == ()
    assert next_deadline(machine.state) == 41.5


def test_an_engine_that_could_not_be_started_was_never_declared() -> None:
    machine = starting()
    (report,) = machine.at(0.1, exited(1, None))
    assert isinstance(report, ReportFailure)
    assert report.failure.kind is FailureKind.COULD_NOT_START
    assert machine.at(0.2, StopRequested()) == (GONE,)


def test_a_clean_end_that_nobody_asked_for_is_a_failure_too() -> None:
    (report,) = ready().at(5.0, exited(1, 0))
    assert isinstance(report, ReportFailure)
    assert report.failure.kind is FailureKind.EXITED_WHILE_READY


def test_a_stop_takes_the_replica_away_first_then_asks_then_kills() -> None:
    machine = ready()
    assert machine.at(10.0, StopRequested()) == (Deregister(why=EndReason.STOPPED), TERM)
    assert machine.wake(15.0) == (KILL,)
    assert machine.at(15.1, exited(1, -9)) == (GONE,)
    assert machine.state.phase == Exited(since=Instant(15.1), why=EndReason.STOPPED)


def test_a_stop_while_the_process_is_being_started_signals_it_as_soon_as_it_exists() -> None:
    machine = starting()
    assert machine.at(0.1, StopRequested()) == ()
    assert next_deadline(machine.state) is None
    assert machine.at(3.0, ProcessStarted(attempt=1)) == (TERM,)
    assert next_deadline(machine.state) == 8.0


def test_a_stop_during_the_pause_wins_over_the_restart() -> None:
    machine = backing_off()
    assert machine.at(3.0, StopRequested()) == (Deregister(why=EndReason.STOPPED), GONE)
    assert machine.at(4.0, WokeUp()) == ()
    assert isinstance(machine.state.phase, Exited)


def test_a_stop_during_the_stop_of_an_engine_that_was_late_forbids_its_restart() -> None:
    machine = loading()
    machine.wake(60.0)
    assert machine.at(61.0, StopRequested()) == ()
    assert next_deadline(machine.state) == 65.0, "the grace is not extended"
    assert machine.at(62.0, exited(1, 0)) == (GONE,)
    assert isinstance(machine.state.phase, Exited)


def test_a_start_during_the_pause_does_not_wait_for_its_end() -> None:
    assert backing_off().at(2.5, StartRequested()) == (StartProcess(attempt=2, why=StartReason.REQUESTED),)


def test_an_engine_that_was_given_up_starts_again_when_asked_with_all_its_restarts() -> None:
    machine = given_up()
    assert machine.at(2000.0, StartRequested()) == (StartProcess(attempt=5, why=StartReason.REQUESTED),)
    (report,) = machine.at(2001.0, exited(5))
    assert isinstance(report, ReportFailure)
    assert report.retry_in_s == 2.0


@pytest.mark.parametrize("build", [starting, loading, ready, stopping])
def test_a_start_of_what_runs_changes_nothing(build: Callable[[], Machine]) -> None:
    machine = build()
    before = machine.state
    assert machine.at(2.0, StartRequested()) == ()
    assert machine.state == before


@pytest.mark.parametrize("build", [never, starting, loading, ready, stopping, backing_off, given_up])
@pytest.mark.parametrize(
    "event", [ProcessStarted(attempt=0), exited(0), ProbeSucceeded(attempt=0), ProbeFailed(attempt=0)]
)
def test_news_of_an_earlier_attempt_changes_nothing(build: Callable[[], Machine], event: Event) -> None:
    machine = build()
    if machine.state.attempt == 0:
        machine = starting()
    before = machine.state
    assert machine.at(2.0, event) == ()
    assert machine.state == before


@pytest.mark.parametrize("build", [never, starting, ready, stopping, backing_off, given_up])
@pytest.mark.parametrize("event_type", [ProcessStarted, ProbeSucceeded, ProbeFailed])
def test_news_that_does_not_fit_the_phase_changes_nothing(
    build: Callable[[], Machine], event_type: type[ProcessStarted] | type[ProbeSucceeded] | type[ProbeFailed]
) -> None:
    machine = build()
    if isinstance(machine.state.phase, Starting) and event_type is ProcessStarted:
        machine.at(0.0, ProcessStarted(attempt=1))
    before = machine.state
    assert machine.at(2.0, event_type(attempt=machine.state.attempt)) == ()
    assert machine.state == before


@pytest.mark.parametrize("build", [backing_off, given_up])
def test_a_second_end_of_the_same_process_changes_nothing(build: Callable[[], Machine]) -> None:
    machine = build()
    before = machine.state
    assert machine.at(2.0, exited(machine.state.attempt)) == ()
    assert machine.state == before


def test_a_wake_up_before_its_time_changes_nothing() -> None:
    machine = backing_off()
    assert machine.at(3.9, WokeUp()) == ()
    assert isinstance(machine.state.phase, BackingOff)


@pytest.mark.parametrize(
    ("kind", "code", "tail", "sentence"),
    [
        (FailureKind.COULD_NOT_START, None, ("no such file",), "could not be started: no such file"),
        (FailureKind.EXITED_WHILE_STARTING, 1, ("a", "b"), "ended before it was ready (exit status 1): b"),
        (FailureKind.EXITED_WHILE_READY, -11, (), "ended while it served (signal 11)"),
        (FailureKind.EXITED_WHILE_READY, None, (), "ended while it served (exit status unknown)"),
        (FailureKind.NOT_READY_IN_TIME, -9, ("loading",), "was not ready in time: loading"),
    ],
)
def test_a_failure_is_said_in_a_sentence(
    kind: FailureKind, code: int | None, tail: tuple[str, ...], sentence: str
) -> None:
    assert explain(Failure(kind=kind, code=code, tail=tail)) == sentence


@pytest.mark.parametrize(
    ("build", "state", "since_s", "why"),
    [
        (never, "exited", 10.0, "never started"),
        (loading, "starting", 10.0, ""),
        (ready, "ready", 9.0, ""),
        (stopping, "stopping", 8.0, "asked to stop"),
        (backing_off, "backing-off", 8.0, "ended while it served (exit status 1): bad model"),
    ],
)
def test_the_view_says_what_it_does_since_when_and_why(
    build: Callable[[], Machine], state: str, since_s: float, why: str
) -> None:
    seen = view(build().state, Instant(10.0))
    assert (seen.state, seen.since_s, seen.why) == (state, since_s, why)


def test_the_view_tells_a_restart_from_a_first_start_and_why_an_engine_was_given_up() -> None:
    machine = backing_off()
    machine.wake(4.0)
    assert view(machine.state, Instant(4.0)).why == "restart 1"
    assert "failed, and no restart is left; it ended before" in view(given_up().state, Instant(0.0)).why


def test_an_engine_that_runs_already_is_kept_as_one_that_we_started() -> None:
    machine = Machine(running_already(LIMITS, Instant(0.0)))
    check(machine.state)
    assert machine.at(0.0, StartRequested()) == ()
    assert machine.at(1.0, StopRequested()) == (Deregister(why=EndReason.STOPPED), TERM)
    assert machine.at(2.0, exited(1, None)) == (GONE,)
    machine = Machine(running_already(LIMITS, Instant(0.0)))
    (report,) = machine.at(1.0, exited(1, None))
    assert isinstance(report, ReportFailure)
    assert report.failure.kind is FailureKind.EXITED_WHILE_READY


def test_readiness_is_asked_densely_at_first_and_ever_more_seldom() -> None:
    machine = Machine(never_started(Limits(readiness_timeout_s=60.0, stop_grace_s=5.0), Instant(0.0)))
    machine.at(0.0, StartRequested())
    machine.at(0.0, ProcessStarted(attempt=1))
    pauses = []
    for now in (0.0, 0.2, 1.0, 5.0, 50.0):
        machine.at(now, ProbeFailed(attempt=1))
        pauses.append((next_deadline(machine.state) or 0.0) - now)
        machine.at(next_deadline(machine.state) or 0.0, WokeUp())
    assert pauses == pytest.approx([0.005, 0.005, 0.02, 0.05, 0.05])
