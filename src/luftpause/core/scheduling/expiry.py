"""What ends by itself: turns without a sign of life, runs that nobody has used for long, and closures of replicas.

A run that is paused is not idle while one that it waits for is at work, however deep below it.

A run is given up model by model: where one is asked no more, what it had cached is of no use to the others.

Signs of life and turns that come and go move deadlines all the time, and only later: nothing is moved in a wheel for
that. What a due bucket names is looked at, and put back if its time has not come.
"""

from luftpause.core.model.ids import Instant, PeerId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.scheduling import lapsed
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.families import last_at_work
from luftpause.core.scheduling.lanes import open_turns
from luftpause.core.scheduling.state import Bucket, Part, State, Turn
from luftpause.core.scheduling.turns import end, end_part, leave_queue
from luftpause.core.scheduling.working_set.books import break_silences
from luftpause.core.scheduling.working_set.leases import lapse


def next_deadline(state: State) -> Instant | None:
    """Return when to wake up next; None when nothing can expire. At times it is early, never late."""
    turns_at, runs_at = state.peer_deadlines.next_at(), state.run_deadlines.next_at()
    opens_at = state.replica_deadlines.next_at()
    if turns_at is None or (runs_at is not None and runs_at < turns_at):
        turns_at = runs_at
    models_at, leases_at = state.residency.look_at, state.working_set.next_at()
    if leases_at is not None and (models_at is None or leases_at < models_at):
        models_at = leases_at
    if models_at is not None and (opens_at is None or models_at < opens_at):
        opens_at = models_at
    return opens_at if turns_at is None or (opens_at is not None and opens_at < turns_at) else turns_at


def expire(draft: Draft, now: Instant) -> None:
    """Give up turns whose last sign of life is too old, forget runs at rest for too long, open what is due."""
    _expire_turns(draft, now)
    _expire_runs(draft, now)
    _open_replicas(draft, now)
    lapse(draft, now)
    break_silences(draft, now)


def _expire_turns(draft: Draft, now: Instant) -> None:
    peers, draft.peer_deadlines = draft.peer_deadlines.take_due(now)
    if not peers:
        return
    over: list[tuple[Bucket, TurnId]] = []
    going_on: dict[PeerId, Bucket] = {}
    for turn, peer, bucket in open_turns(draft.turns, draft.held):
        if draft.peer_deadlines.is_due(bucket, now):
            over.append((bucket, turn))
        elif bucket < going_on.get(peer, bucket + 1):
            going_on[peer] = bucket
    for peer in peers:
        if peer in going_on:
            draft.peer_deadlines = draft.peer_deadlines.put(peer, going_on[peer])
    given_up: list[Turn] = []
    for _, turn in sorted(over):
        if turn in draft.held:
            leave_queue(draft, turn, now)
            message = f"held turn gave no sign of life for {draft.limits.turn_timeout_s:g} s"
            draft.order(RefuseTurn(turn=turn, why=Refusal(reason=RefusalReason.EXPIRED, message=message)))
        else:
            given_up.append(draft.turns[turn])
            end(draft, turn, now)
    lapsed.remember(draft, given_up)


def _expire_runs(draft: Draft, now: Instant) -> None:
    expiry_s = draft.limits.run_idle_expiry_s
    parts, draft.run_deadlines = draft.run_deadlines.take_due(now)
    over: list[tuple[Bucket, Part]] = []
    for part in parts:
        run = draft.runs[part]
        if not run.at_rest:
            continue  # it is put back when it comes to rest
        if run.paused:
            worked_at = last_at_work(draft.children, draft.runs, run.run, now)
            if worked_at is not None and worked_at > run.rests_since:
                run = run._replace(waited_at=worked_at)
                draft.set_run(run)
                continue
        bucket = draft.run_deadlines.bucket(run.rests_since + expiry_s)
        if draft.run_deadlines.is_due(bucket, now):
            over.append((bucket, part))
        else:
            draft.run_deadlines = draft.run_deadlines.put(part, bucket)
    for _, part in sorted(over):
        end_part(draft, draft.runs[part], now, why=f"no turn for {expiry_s:g} s")


def _open_replicas(draft: Draft, now: Instant) -> None:
    names, draft.replica_deadlines = draft.replica_deadlines.take_due(now)
    for name in names:
        replica = draft.replicas.get(name)
        if replica is None or replica.closed_until is None:
            continue
        bucket = draft.replica_deadlines.bucket(replica.closed_until)
        if draft.replica_deadlines.is_due(bucket, now):
            draft.set_replica(replica._replace(closed_until=None))
        else:
            draft.replica_deadlines = draft.replica_deadlines.put(name, bucket)
