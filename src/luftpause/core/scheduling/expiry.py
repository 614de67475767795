"""What ends by itself: turns without a sign of life, and runs that nobody has used for long."""

from luftpause.core.model.ids import Instant
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.state import State
from luftpause.core.scheduling.turns import end, end_run, leave_queue


def next_deadline(state: State) -> Instant | None:
    """Return when to wake up next; None when nothing can expire. At times it is early, never late."""
    deadlines = [at for at in (state.turn_deadlines.next_at(), state.run_deadlines.next_at()) if at is not None]
    return min(deadlines, default=None)


def expire(draft: Draft, now: Instant) -> None:
    """End every turn whose last sign of life is too old, then forget every run at rest for too long."""
    _expire_turns(draft, now)
    _expire_runs(draft, now)


def _expire_turns(draft: Draft, now: Instant) -> None:
    timeout_s = draft.limits.turn_timeout_s
    due, draft.turn_deadlines = draft.turn_deadlines.take_due(now)
    for turn in due:
        deadline = draft.signs[turn] + timeout_s
        if not draft.turn_deadlines.is_due(deadline, now):
            draft.turn_deadlines = draft.turn_deadlines.put(turn, deadline)
        elif turn in draft.held:
            leave_queue(draft, turn, now)
            message = f"held turn gave no sign of life for {timeout_s:g} s"
            draft.order(RefuseTurn(turn=turn, why=Refusal(reason=RefusalReason.EXPIRED, message=message)))
        else:
            end(draft, turn, now)


def _expire_runs(draft: Draft, now: Instant) -> None:
    due, draft.run_deadlines = draft.run_deadlines.take_due(now)
    for run in due:
        end_run(draft, run, now, why=f"no turn for {draft.limits.run_idle_expiry_s:g} s")
