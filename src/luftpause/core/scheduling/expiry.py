"""What ends by itself: turns without a sign of life, and runs that nobody has used for long.

Signs of life and turns that come and go move deadlines all the time, and only later: nothing is moved in a wheel for
that. What a due bucket names is looked at, and put back if its time has not come.
"""

from luftpause.core.model.ids import Instant, RunId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.state import Bucket, State
from luftpause.core.scheduling.turns import end, end_run, leave_queue


def next_deadline(state: State) -> Instant | None:
    """Return when to wake up next; None when nothing can expire. At times it is early, never late."""
    turns_at, runs_at = state.peer_deadlines.next_at(), state.run_deadlines.next_at()
    if turns_at is None or runs_at is None:
        return runs_at if turns_at is None else turns_at
    return min(turns_at, runs_at)


def expire(draft: Draft, now: Instant) -> None:
    """End every turn whose last sign of life is too old, then forget every run at rest for too long."""
    _expire_turns(draft, now)
    _expire_runs(draft, now)


def _expire_turns(draft: Draft, now: Instant) -> None:
    peers, draft.peer_deadlines = draft.peer_deadlines.take_due(now)
    over: list[tuple[Bucket, TurnId]] = []
    for peer in peers:
        going_on: list[Bucket] = []
        for turn, bucket in draft.open_by_peer.get(peer, {}).items():
            if draft.peer_deadlines.is_due(bucket, now):
                over.append((bucket, turn))
            else:
                going_on.append(bucket)
        if going_on:
            draft.peer_deadlines = draft.peer_deadlines.put(peer, min(going_on))
    for _, turn in sorted(over):
        if turn in draft.held:
            leave_queue(draft, turn, now)
            message = f"held turn gave no sign of life for {draft.limits.turn_timeout_s:g} s"
            draft.order(RefuseTurn(turn=turn, why=Refusal(reason=RefusalReason.EXPIRED, message=message)))
        else:
            end(draft, turn, now)


def _expire_runs(draft: Draft, now: Instant) -> None:
    expiry_s = draft.limits.run_idle_expiry_s
    names, draft.run_deadlines = draft.run_deadlines.take_due(now)
    over: list[tuple[Bucket, RunId]] = []
    for name in names:
        run = draft.runs[name]
        if not run.at_rest:
            continue  # it is put back when it comes to rest
        bucket = draft.run_deadlines.bucket(run.ended_at + expiry_s)
        if draft.run_deadlines.is_due(bucket, now):
            over.append((bucket, name))
        else:
            draft.run_deadlines = draft.run_deadlines.put(name, bucket)
    for _, run_id in sorted(over):
        end_run(draft, run_id, now, why=f"no turn for {expiry_s:g} s")
