"""What runs came to, recorded or simulated, in the same figures. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from luftpause.core.model.ids import RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.load.summary import percentile
from luftpause.testkit.sim.past import EndedRun
from luftpause.testkit.what_if.trace import TracedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a run went. `whole`: all of it is in the log. `reprefilled_tokens`: None where an engine did not say."""

    run: RunId
    service_class: ServiceClass
    whole: bool
    begun_at: float
    ended_at: float
    turn_s: tuple[float, ...]
    reprefilled_tokens: int | None

    @property
    def seconds(self) -> float:
        """From its first offer to its last answer, time away included."""
        return self.ended_at - self.begun_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Runs in figures; None where nothing was measured. Times in seconds.

    Attributes:
        held_turns: turns that waited for a place.
        unfinished_runs: that did not end even a day after the log.

    Runs are counted and timed if they are whole, turns whatever their run; runs per minute are those that ended before
    the last recorded answer did.
    """

    interactive_runs_per_min: float
    interactive_p50_s: float | None
    interactive_p99_s: float | None
    interactive_turn_p50_s: float | None
    interactive_turn_p99_s: float | None
    batch_runs_per_min: float
    batch_p50_s: float | None
    batch_p99_s: float | None
    batch_turn_p50_s: float | None
    batch_turn_p99_s: float | None
    held_turns: int
    reprefilled_tokens_per_run: float | None
    unfinished_runs: int = 0


def recorded_courses(runs: Iterable[TracedRun]) -> list[Course]:
    """Return how runs went as the log has it."""
    return [
        Course(
            run=run.run,
            service_class=run.service_class,
            whole=run.whole,
            begun_at=run.turns[0].arrived_at,
            ended_at=run.turns[-1].ended_at,
            turn_s=tuple(turn.ended_at - turn.arrived_at for turn in run.turns),
            reprefilled_tokens=_reprefilled(run),
        )
        for run in runs
    ]


def simulated_courses(ended: Iterable[EndedRun], whole: frozenset[RunId]) -> list[Course]:
    """Return how runs went in a simulated world. `whole` names those that are in the log from beginning to end."""
    return [
        Course(
            run=run.run,
            service_class=run.service_class,
            whole=run.run in whole,
            begun_at=run.begun_at,
            ended_at=run.ended_at,
            turn_s=run.turn_s,
            reprefilled_tokens=run.reprefilled_tokens,
        )
        for run in ended
    ]


def column(courses: Sequence[Course], held_turns: int, until: float, unfinished_runs: int = 0) -> Column:
    """Return the figures of runs over a time that began at 0."""
    whole = [course for course in courses if course.whole]
    per_min, run_s, turn_s = {}, {}, {}
    for service_class in ServiceClass:
        own = [course for course in whole if course.service_class is service_class]
        per_min[service_class] = round(sum(course.ended_at <= until for course in own) * 60 / max(until, 1e-9), 4)
        run_s[service_class] = [course.seconds for course in own]
        turn_s[service_class] = [
            seconds for course in courses if course.service_class is service_class for seconds in course.turn_s
        ]
    computed = [course.reprefilled_tokens for course in whole if course.reprefilled_tokens is not None]
    interactive, batch = ServiceClass.INTERACTIVE, ServiceClass.BATCH
    return Column(
        interactive_runs_per_min=per_min[interactive],
        interactive_p50_s=percentile(run_s[interactive], 50),
        interactive_p99_s=percentile(run_s[interactive], 99),
        interactive_turn_p50_s=percentile(turn_s[interactive], 50),
        interactive_turn_p99_s=percentile(turn_s[interactive], 99),
        batch_runs_per_min=per_min[batch],
        batch_p50_s=percentile(run_s[batch], 50),
        batch_p99_s=percentile(run_s[batch], 99),
        batch_turn_p50_s=percentile(turn_s[batch], 50),
        batch_turn_p99_s=percentile(turn_s[batch], 99),
        held_turns=held_turns,
        reprefilled_tokens_per_run=round(statistics.fmean(computed), 1) if computed else None,
        unfinished_runs=unfinished_runs,
    )


def error_of(recorded: Sequence[Course], simulated: Sequence[Course]) -> float | None:
    """Return by which share of its recorded time the middle whole run differs from it when it is simulated."""
    times: Mapping[RunId, float] = {course.run: course.seconds for course in recorded if course.whole}
    errors = [
        abs(course.seconds - times[course.run]) / times[course.run]
        for course in simulated
        if times.get(course.run, 0.0) > 0
    ]
    return round(statistics.median(errors), 4) if errors else None


def _reprefilled(run: TracedRun) -> int | None:
    """Return how much of its prompts was computed though it had been before; None when an engine did not say."""
    total = before = 0
    for turn in run.turns:
        if turn.usage is None or turn.usage.cached_tokens is None:
            return None
        prompt = turn.usage.prompt_tokens
        if prompt >= before:  # else it was rewritten, and nothing of it had been computed
            total += max(0, before - turn.usage.cached_tokens)
        before = prompt
    return total
