"""Which replicas may serve a run's turn, and which of them should.

A run that is generating or paused has its prefix in its home's cache and goes nowhere else, while that home lives.
Idle runs, and runs whose home was lost, go where the fewest turns are in flight. Knows nothing of fairness.
"""

from collections.abc import Iterable
from typing import Final

from immutables import Map

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.admission import has_room, takes_turns
from luftpause.core.scheduling.events import RunPhase, TurnArrived
from luftpause.core.scheduling.known import known
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.core.scheduling.services import services_of
from luftpause.core.scheduling.state import Life, Pool, Replica, Run, Service

Replicas = Map[ReplicaId, Replica]
Serving = Map[Service, tuple[ReplicaId, ...]]

_HOME: Final = PlacedBecause.HOME
_HOME_LOST: Final = PlacedBecause.HOME_LOST
_LEAST_LOADED: Final = PlacedBecause.LEAST_LOADED
"""Looking one up in its enum costs more than the rest of `why_placed`."""


def bound_to(replicas: Replicas, run: Run) -> Replica | None:
    """Return the run's home if it has been one life since, healthy or not yet probed; else None."""
    home = None if run.home is None else known(replicas, run.home)
    return home if home is not None and home.epoch == run.home_epoch else None


def may_move(run: Run) -> bool:
    """Say whether the run has no place that it would go back to: idle with none kept, or out for too long."""
    return run.loose or (run.phase is RunPhase.IDLE and run.kept_until is None)


def tied_to(replicas: Replicas, run: Run) -> Replica | None:
    """Return the home that the run's held turns stand at, or are away from."""
    return None if may_move(run) else bound_to(replicas, run)


def pinned_to(replicas: Replicas, run: Run) -> Replica | None:
    """Return the only replica that the run's turns may go to; None when it may move."""
    if may_move(run):
        return None
    home = bound_to(replicas, run)
    return home if home is not None and takes_turns(home) else None


def keeps_room(replicas: Replicas, run: Run | None) -> Replica | None:
    """Return the replica where batch leaves room for the run: its home, while it is interactive and out on a tool.

    A run whose continuation is back already and held here needs no room kept: it is ahead of all batch turns.
    """
    if run is None or run.held or run.phase is not RunPhase.PAUSED or run.service_class is not ServiceClass.INTERACTIVE:
        return None
    return bound_to(replicas, run)


def returns_to(run: Run, replica: Replica) -> bool:
    """Say whether an interactive run that is paused on a tool has its prefix on the replica."""
    return (
        run.paused
        and not run.turns
        and run.service_class is ServiceClass.INTERACTIVE
        and run.home == replica.replica
        and run.home_epoch == replica.epoch
    )


def pool_of(replicas: Replicas, run: Run | None, arrival: TurnArrived) -> Pool:
    """Return where a turn of the run may go. `run` is None for one that is in no run."""
    service = arrival.kind, arrival.model
    if run is None:
        return service
    home = pinned_to(replicas, run)
    return home.replica if home is not None and home.serves(service) else service


def away_from(replicas: Replicas, run: Run | None, pool: Pool) -> Life | None:
    """Return the home that a turn held in this pool goes to once that takes turns again; None where it has none."""
    if run is None or isinstance(pool, str) or may_move(run):
        return None
    home = bound_to(replicas, run)
    return None if home is None or takes_turns(home) else (home.replica, home.epoch)


def pools_of(replica: Replica) -> tuple[Pool, ...]:
    """Return the pools whose turns may go to the replica: those at home there, and all that it is declared to offer."""
    return (replica.replica, *services_of(replica.spec))


def candidates(replicas: Replicas, serving: Map[Service, tuple[ReplicaId, ...]], pool: Pool) -> list[Replica]:
    """Return the replicas of a pool in order of declaration."""
    if isinstance(pool, str):
        home = known(replicas, pool)
        return [] if home is None else [home]
    return [replicas[replica] for replica in known(serving, pool) or ()]


def enlisted(serving: Serving, replicas: Replicas, replica: Replica) -> Serving:
    """Return who serves what when a replica serves all that it is declared to, in order of declaration."""
    for service in services_of(replica.spec):
        names = (*serving.get(service, ()), replica.replica)
        serving = serving.set(service, tuple(sorted(names, key=lambda name: replicas[name].order)))
    return serving


def delisted(serving: Serving, replica: Replica) -> Serving:
    """The inverse of `enlisted`."""
    for service in services_of(replica.spec):
        rest = tuple(other for other in serving.get(service, ()) if other != replica.replica)
        serving = serving.set(service, rest) if rest else serving.delete(service)
    return serving


def choose(among: Iterable[Replica], service_class: ServiceClass, home: ReplicaId | None) -> Replica | None:
    """Return the replica that should take the turn, None when none has room.

    Fewest turns in flight, foreign ones too, then home, then fewest turns ever placed, then declared first.
    """
    best: Replica | None = None
    least = 0
    for replica in among:
        busy = replica.in_flight + replica.foreign
        if (best is not None and busy > least) or not has_room(replica, service_class):
            continue
        if best is None or busy < least or _goes_first(replica, best, home):
            best, least = replica, busy
    return best


def _goes_first(replica: Replica, other: Replica, home: ReplicaId | None) -> bool:
    """Say whether the first of two that are equally busy should take a turn."""
    if (replica.replica == home) is not (other.replica == home):
        return replica.replica == home
    if replica.placed != other.placed:
        return replica.placed < other.placed
    return replica.order < other.order


def nearest(among: Iterable[Replica]) -> Replica | None:
    """Return the replica for a question that needs no room, None when none is healthy.

    One whose engine asked to be left alone comes last; then fewest turns in flight, then declared first.
    """
    healthy = [replica for replica in among if takes_turns(replica)]
    return min(
        healthy,
        key=lambda each: (each.closed_until is not None, each.in_flight + each.foreign, each.order),
        default=None,
    )


def why_placed(replicas: Replicas, run: Run | None, chosen: Replica) -> PlacedBecause:
    """Explain a choice."""
    if run is None or run.home is None:
        return _LEAST_LOADED
    home = bound_to(replicas, run)
    if home is not None and home.replica == chosen.replica:
        return _HOME
    if run.phase is not RunPhase.IDLE and pinned_to(replicas, run) is None:
        return _HOME_LOST
    return _LEAST_LOADED
