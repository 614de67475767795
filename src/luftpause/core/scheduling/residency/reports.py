"""What launchers and operators report, taken in: which step each report is for its model.

What a report leads to for other models is for `review.py`, which follows.
"""

from collections.abc import Sequence
from typing import Final, assert_never

from luftpause.core.model.ids import Instant, RunId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.residency import joining, parking, steps
from luftpause.core.scheduling.residency.events import (
    AboutModel,
    LauncherJoined,
    LauncherLost,
    LoadAsked,
    LoadFailed,
    LoadProgressed,
    ModelDown,
    ModelReport,
    ModelUp,
    PinAsked,
    UnloadAsked,
)
from luftpause.core.scheduling.residency.reasons import LoadReason, UnloadReason, UnloadWhy
from luftpause.core.scheduling.residency.refusing import closed_s, left_alone
from luftpause.core.scheduling.residency.room import budget_of, shortage
from luftpause.core.scheduling.residency.state import Model, ModelPhase

MEMORY_RAISED: Final = 1.25
"""How much more a model is planned to take after its load ran out of memory."""

TAIL_LINES: Final = 5
"""So many of the last lines of an engine's output are told with a failure."""

RESTARTS_MAX: Final = 3
"""A model that failed more often in a row does not come back by itself."""


def take_in(draft: Draft, event: ModelReport, now: Instant) -> None:
    """Take in a report."""
    draft.is_review_due = True
    match event:
        case LauncherJoined():
            joining.join(draft, event, now)
        case LauncherLost():
            joining.lose(draft, event.launcher)
        case _:
            model = draft.residency.models.get(event.model)
            if model is not None:
                _take_in_about(draft, model, event, now)


def _take_in_about(draft: Draft, model: Model, event: AboutModel, now: Instant) -> None:
    match event:
        case LoadProgressed():
            draft.is_review_due = False
            _progress(draft, model, event.fraction)
        case ModelUp():
            if model.phase is not ModelPhase.STOPPING:  # else its stop was ordered meanwhile, and ends it
                _come_up(draft, model, event, now)
        case LoadFailed():
            if model.phase is ModelPhase.LOADING:
                _fail(draft, model, event, now)
        case ModelDown():
            _go_down(draft, model, event, now)
        case LoadAsked():
            _ask_for(draft, model)
        case UnloadAsked():
            _send_away(draft, model, event, now)
        case PinAsked():
            steps.put(draft, model._replace(pinned=event.on))
        case _:
            assert_never(event)


def release(draft: Draft, run: RunId) -> None:
    """Note that a run was ended: where it was the root of a tree, what that used last may go, if so configured."""
    for model in draft.residency.models.values():
        if model.tree == run and model.spec.unload_at_tree_end:
            steps.put(draft, model._replace(is_released=True))
            draft.is_review_due = True


def _progress(draft: Draft, model: Model, fraction: float) -> None:
    further = min(max(model.fraction, fraction), 1.0)  # what is no number is no progress
    if model.phase is ModelPhase.LOADING and further > model.fraction:
        steps.put(draft, model._replace(fraction=further))


def _come_up(draft: Draft, model: Model, event: ModelUp, now: Instant) -> None:
    """Take a model in as up. Where its replica's name is another's, its load has failed, and goes on to at each try."""
    steps.come_up(draft, model, event, now)
    taken_in = draft.residency.models[model.name]
    if _was_taken(taken_in):
        _give_up(draft, taken_in, f"another replica is called '{event.replica.replica}' already", (), now)


def _was_taken(model: Model) -> bool:
    """Say whether a model is stopped because its replica's name is another's."""
    return model.unload_why is not None and model.unload_why.reason is UnloadReason.NAME_TAKEN


def _fail(draft: Draft, model: Model, event: LoadFailed, now: Instant) -> None:
    """End a load that failed: its waiters are refused, once; but after the first want of memory it is tried again."""
    is_retrying, build = model.is_retrying, model.build
    budget = budget_of(draft.residency, model)
    raised = min(budget, int(model.memory * MEMORY_RAISED) if model.memory else budget)
    left = steps.gone(draft, model, now)
    if left is None:
        return
    if event.out_of_memory and not is_retrying and raised > model.memory and build == left.spec.build:
        roomier = left._replace(memory=raised, is_measured=False, is_retrying=True, failed_why=event.cause)
        if shortage(draft.residency, roomier) is None:
            steps.put(draft, roomier)
            return
    _give_up(draft, left, event.cause, event.tail[-TAIL_LINES:], now)


def _give_up(draft: Draft, model: Model, cause: str, tail: Sequence[str], now: Instant) -> None:
    """Count a load that failed for good, and tell all that wait for it why."""
    if len(tail) == 1 and cause.endswith(tail[0]):
        tail = ()  # the cause says it already
    message = f"model '{model.name}' could not be loaded: {cause}" + "".join(f"\n{line}" for line in tail)
    is_restart = model.asked is LoadReason.RESTART
    failed = model._replace(is_retrying=False, asked=None, failed_why=cause)
    failed = _counted(draft, failed, failed.failures + 1, now)
    if is_restart:
        failed = _restarted(draft, failed, now)
    refusal = Refusal(reason=RefusalReason.LOAD_FAILED, message=message, retry_after_s=closed_s(failed, now))
    steps.refuse_waiters(draft, failed, refusal, now)


def _go_down(draft: Draft, model: Model, event: ModelDown, now: Instant) -> None:
    match model.phase:
        case ModelPhase.DOWN:
            pass
        case ModelPhase.STOPPING:
            left = steps.gone(draft, parking.take_in(draft, model, event, now), now)
            if left is not None and not _was_taken(model):
                steps.put(draft, left._replace(failures=0, crashes=0, failed_why=""))
        case ModelPhase.LOADING:
            _fail(draft, model, LoadFailed(model=model.name, cause=event.why or "its engine ended"), now)
        case ModelPhase.UP | ModelPhase.DRAINING:
            _crash(draft, model, event.why, now)
        case _:
            assert_never(model.phase)


def _crash(draft: Draft, model: Model, why: str, now: Instant) -> None:
    """Take in that an engine ended unasked. Turns that wait have it loaded again, until it has failed too often."""
    is_first = now - model.up_since >= draft.limits.residency.stable_s
    left = steps.gone(draft, model, now)
    if left is None:
        return
    crashes = 1 if is_first else left.crashes + 1
    crashed = left._replace(crashes=crashes, failed_why=why or "its engine ended unasked")
    left = _restarted(draft, _counted(draft, crashed, crashes, now), now)
    if left.closed_until is not None:
        steps.refuse_waiters(draft, left, left_alone(left, now), now)


def _restarted(draft: Draft, model: Model, now: Instant) -> Model:
    """Have a model that failed come back by itself, if so configured and it has not failed too often."""
    if not model.spec.auto_restart or model.failures > RESTARTS_MAX:
        return model
    back_at = Instant(now + 2.0**model.failures)
    return steps.put(draft, model._replace(asked=LoadReason.RESTART, not_before=back_at, closed_until=None))


def _counted(draft: Draft, model: Model, failures: int, now: Instant) -> Model:
    """Count failures in a row, and leave the model alone for a while when they are too many."""
    limits = draft.limits.residency
    times = failures - limits.circuit_after
    closed_until = None
    if times >= 0:
        seconds = limits.circuit_s * 2.0 ** min(times, 32)
        closed_until = Instant(now + min(seconds, limits.circuit_s_max))
    return steps.put(draft, model._replace(failures=failures, closed_until=closed_until))


def _ask_for(draft: Draft, model: Model) -> None:
    """Have a model loaded for an operator, however often it failed, or what was restored for it brought nothing."""
    if not model.is_serving and model.phase is not ModelPhase.LOADING:
        kv = model.kv._replace(misses=0)
        steps.put(draft, model._replace(asked=LoadReason.ASKED, not_before=None, closed_until=None, kv=kv))


def _send_away(draft: Draft, model: Model, event: UnloadAsked, now: Instant) -> None:
    """Have a model unloaded for an operator; turns that wait for it are refused, or wait for it to come back."""
    if not event.keep_waiting:
        message = f"model '{model.name}' was unloaded by an operator while the turn waited for it"
        refusal = Refusal(reason=RefusalReason.MODEL_UNLOADED, message=message)
        steps.refuse_waiters(draft, model, refusal, now)
    model = steps.put(draft, draft.residency.models[model.name]._replace(asked=None))
    why = UnloadWhy(reason=UnloadReason.ASKED)
    reachable = draft.residency.launchers[model.launcher].connected
    if reachable and (model.phase is ModelPhase.LOADING or (model.is_serving and event.firmly)):
        steps.stop(draft, model, why, now)
    elif model.is_serving:  # while its launcher is away it takes no more turns, and is stopped once that is back
        steps.drain(draft, model, why, now)
