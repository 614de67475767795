"""What if another policy had scheduled what a log recorded? An estimate, with the model's own error beside it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.arms import ARMS
from luftpause.testkit.sim.setting import Setting, SimReplica
from luftpause.testkit.sim.simulate import BrokenRuleError
from luftpause.testkit.sim.world import World
from luftpause.testkit.what_if.figures import Column, Course, column, error_of, recorded_courses, simulated_courses
from luftpause.testkit.what_if.fit import Fitted, as_given, fit
from luftpause.testkit.what_if.load import Load, NoLoadError, Planned, load_of
from luftpause.testkit.what_if.trace import Trace, TracedRun

PROBE_PERIOD_S: Final = 2.0
"""Where the log does not show how often replicas were probed."""
PROBE_PERIOD_S_MIN: Final = 0.05
OVERTIME_S_MAX: Final = 86_400.0
"""Runs that have not ended so long after the log are given up."""
SLICE_S: Final = 10.0

Progress = Callable[[str, float, float], None]
"""Told which arm is simulated, and how many of about how many seconds are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a trace.

    Attributes:
        policy: one of ARMS.
        engine: figures of all engines; None: those of `base`, and what the log shows in their place.
        base: figures where the log shows none.
        seed: what unknown replies are drawn from.
        checked: prove every state and audit every decision of the simulations.
    """

    policy: str
    engine: EngineFigures | None
    base: EngineFigures
    seed: int = 1
    checked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An estimate.

    Attributes:
        estimated_turns: turns without usage.
        recorded_policy: under which the log was recorded, and simulated first; None when there is no such arm.
        columns: `recorded`, `as recorded` if that can be simulated, `what-if`.
        error: by which share the middle run's simulated time differs from its recorded one, as recorded.
    """

    trace: Trace
    runs: tuple[TracedRun, ...]
    estimated_turns: int
    engines: tuple[Fitted, ...]
    recorded_policy: str | None
    policy: str
    columns: dict[str, Column]
    error: float | None


def ask(trace: Trace, question: Question, progress: Progress | None = None) -> Answer:
    """Simulate a trace under the policy that it was recorded under and under another.

    Raises:
        NoLoadError: there is nothing to simulate, or it does not fit into the engines.
        BrokenRuleError: a rule of the world, or with `checked` one of the scheduler, was broken.
    """
    load = load_of(trace, question.seed)
    names = {each.plan.run for each in load.beginnings}
    runs = tuple(run for run in trace.runs if run.run in names)
    engines = _engines(trace, load, question)
    setting = _setting(trace, engines)
    recorded = recorded_courses(runs)
    columns = {"recorded": column(recorded, sum(turn.held_s > 0 for run in runs for turn in run.turns), trace.until)}
    whole = frozenset(run.run for run in runs if run.whole)
    if not whole:
        raise NoLoadError("no run both began and ended in it: record for longer")
    known = [policy for policy in trace.policies if policy in ARMS]
    recorded_policy = known[0] if known else None
    error = None
    arms = {"as recorded": recorded_policy, "what-if": question.policy}
    done: dict[str, tuple[Column, Sequence[Course]]] = {}
    for name, arm in arms.items():
        if arm is None:
            continue
        if arm not in done:
            world = _simulate(setting, load, trace.until, arm, question, progress)
            courses = simulated_courses(world.ended, whole)
            done[arm] = column(courses, world.held_turns, trace.until, world.unfinished), courses
        columns[name] = done[arm][0]
        if name == "as recorded":
            error = error_of(recorded, done[arm][1])
    return Answer(
        trace=trace,
        runs=runs,
        estimated_turns=load.estimated,
        engines=engines,
        recorded_policy=recorded_policy,
        policy=question.policy,
        columns=columns,
        error=error,
    )


def _engines(trace: Trace, load: Load, question: Question) -> tuple[Fitted, ...]:
    models = {model for models in trace.replicas.values() for model in models}
    needed = {model: load.tokens_max(model) for model in models}
    if question.engine is None:
        return fit(trace, question.base, needed)
    most = max(needed.values())
    if most > question.engine.kv_tokens:
        raise NoLoadError(f"its longest turn needs {most} tokens of memory: raise engine.kv_tokens in --engine to that")
    return as_given(trace, question.engine)


def _setting(trace: Trace, engines: tuple[Fitted, ...]) -> Setting:
    figures = {replica: each.figures for each in engines for replica in each.replicas}
    period_s = PROBE_PERIOD_S if trace.probe_period_s is None else max(PROBE_PERIOD_S_MIN, trace.probe_period_s)
    return Setting(
        replicas=tuple(
            SimReplica(engine=figures[replica], models=models) for replica, models in trace.replicas.items()
        ),
        probe_period_s=period_s,
    )


def _simulate(
    setting: Setting, load: Load, until: float, arm: str, question: Question, progress: Progress | None
) -> World:
    world = World(setting, Planned(load.beginnings), arm, question.seed, checked=question.checked)
    try:
        while world.now < until or (world.unfinished and world.now < until + OVERTIME_S_MAX):
            world.run_until(min(world.now + SLICE_S, until) if world.now < until else world.now + SLICE_S)
            if progress is not None:
                progress(arm, world.now, max(world.now, until))
        if question.checked:
            world.drain()
    except AssertionError as broken:
        raise BrokenRuleError(f"arm {arm}, seed {question.seed}, at {world.now:.3f} s: {broken}") from broken
    return world
