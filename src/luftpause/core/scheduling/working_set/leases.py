"""When places of paused runs are looked at, and given up: when they pay no more, or when waiting for them costs more.

Whoever waits at home for longer than its prompt takes to be prefilled elsewhere, and a while, may begin anywhere, if
anywhere takes it: a safety valve, not a habit.
"""

from typing import Final

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.affinity import bound_to, candidates
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.state import HeldTurn, Replica, Run, Service
from luftpause.core.scheduling.working_set.awaiting import kept_for_children
from luftpause.core.scheduling.working_set.keeping import speed_of
from luftpause.core.scheduling.working_set.room import has_tokens, may_begin

LOOK_AGAIN_S: Final = 1.0

MOVE_S: Final = 5.0
"""By so much longer than a prefill elsewhere a run waits at home before it moves."""


def lease(draft: Draft, run: Run) -> None:
    """Look at a run when its place is kept no longer."""
    leases = draft.working_set.leases
    if run.kept_until is not None and run.part not in leases.bucket_of:
        leases = leases.put(run.part, leases.bucket(run.kept_until))
        draft.working_set = draft.working_set._replace(leases=leases)


def lapse(draft: Draft, now: Instant) -> None:
    """Let go the places of runs that are out on their tools for longer than that pays."""
    parts, leases = draft.working_set.leases.take_due(now)
    if leases is draft.working_set.leases:
        return
    over: list[Run] = []
    takers: dict[Service, list[Replica]] = {}
    for part in parts:
        run = draft.runs.get(part)
        if run is None or run.kept_until is None:
            continue
        look_at = run.kept_until
        if run.held and not _better_off_elsewhere(draft, run, takers, now):
            look_at = Instant(now + LOOK_AGAIN_S)
        elif run.held:
            look_at = now
        elif leases.is_due(leases.bucket(look_at), now):
            look_at = kept_for_children(draft, run, now)
        bucket = leases.bucket(look_at)
        if leases.is_due(bucket, now) or look_at == now:
            over.append(run)
        else:
            leases = leases.put(part, bucket)
    draft.working_set = draft.working_set._replace(leases=leases)
    for run in over:
        draft.set_run(run._replace(kept=0, kept_until=None, loose=True))


def watch_wait(draft: Draft, held: HeldTurn, run: Run, now: Instant) -> None:
    """Look at a run that begins to wait at home when it has waited for as long as moving takes."""
    leases = draft.working_set.leases
    bucket, known = leases.bucket(now + _price_s(draft, run)), leases.bucket_of.get(run.part)
    if run.kept_until is not None and isinstance(held.pool, str) and (known is None or bucket < known):
        draft.working_set = draft.working_set._replace(leases=leases.put(run.part, bucket))


def _price_s(draft: Draft, run: Run) -> float:
    home = bound_to(draft.replicas, run)
    return MOVE_S if home is None else MOVE_S + run.measure.context / speed_of(home)


def _better_off_elsewhere(draft: Draft, run: Run, takers: dict[Service, list[Replica]], now: Instant) -> bool:
    """Say whether a run has waited at home for longer than moving takes, and another replica takes it now.

    `takers`: who takes anybody of a service, as far as that was looked at for others.
    """
    limits, held = draft.limits.working_set, draft.held[run.held[0]]
    if limits is None or not limits.moves or now - held.arrived_at < _price_s(draft, run):
        return False
    service = held.arrival.kind, held.arrival.model
    if service not in takers:
        among = candidates(draft.replicas, draft.serving, service)
        takers[service] = [each for each in among if each.seat.claimed_by is None and may_begin(each, limits)]
    for replica in takers[service]:
        fits = has_tokens(replica, held.arrival.service_class, held.need, limits, little=held.little)
        if fits and replica.replica != run.home:
            return True
    return False
