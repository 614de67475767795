"""Who uses which model: turns that wait for it, and runs that are out on a tool and will come back to it.

Each function returns the residency after one change; `draft.py` calls them where it changes the fact. What a turn in
flight uses is counted by its replica.
"""

from collections.abc import Iterable
from math import ceil

from immutables import Map

from luftpause.core.model.ids import Instant, ModelName, ReplicaId, RunId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.places import Place, first_of, inserted, taken_out
from luftpause.core.scheduling.residency.state import (
    NO_TOOL,
    NOBODY,
    PAUSE_STEP_S,
    Absence,
    Model,
    ModelPhase,
    Residency,
    Waiters,
)
from luftpause.core.scheduling.state import HeldTurn, Run


def model_of(residency: Residency, kind: ReplicaKind, name: ModelName) -> Model | None:
    """Return the model that a turn of a kind asks a launcher for by its own name; None where no launcher has it."""
    model = residency.models.get(name)
    return model if model is not None and model.spec.kind is kind else None


def waiting_place(held: HeldTurn) -> Place:
    """Return where a turn stands among those that wait for its model: by its arrival, whatever a policy ranks it by."""
    return held.arrived_at, held.seq, held.arrival.turn


def in_line(residency: Residency, held: HeldTurn) -> tuple[Residency, bool]:
    """Note that a turn begins to wait. The flag: whether that may change what should be up."""
    model = model_of(residency, held.arrival.kind, held.arrival.model)
    if model is None:
        return residency, False
    place = waiting_place(held)
    interactive, batch = residency.waiting.get(model.name, NOBODY)
    if held.arrival.service_class is ServiceClass.INTERACTIVE:
        interactive = inserted(interactive, place)
        is_first = first_of(interactive) == place
    else:
        batch = inserted(batch, place)
        is_first = first_of(batch) == place
    waiting = residency.waiting.set(model.name, Waiters(interactive, batch))
    matters = is_first and (residency.is_pressed or model.phase is ModelPhase.DOWN)
    return residency._replace(waiting=waiting), matters


def out_of_line(residency: Residency, held: HeldTurn) -> tuple[Residency, bool]:
    """Note that a turn waits no more; the flag as with `in_line`."""
    model = model_of(residency, held.arrival.kind, held.arrival.model)
    if model is None:
        return residency, False
    place = waiting_place(held)
    interactive, batch = residency.waiting[model.name]
    if held.arrival.service_class is ServiceClass.INTERACTIVE:
        was_first = first_of(interactive) == place
        interactive = taken_out(interactive, place)
    else:
        was_first = first_of(batch) == place
        batch = taken_out(batch, place)
    left = Waiters(interactive, batch)
    waiting = residency.waiting.set(model.name, left) if left.number else residency.waiting.delete(model.name)
    return residency._replace(waiting=waiting), was_first and residency.is_pressed


def absence_of(run: Run | None) -> Absence | None:
    """Return as what a run is counted that is out on a tool; None while it is not."""
    if run is None or not run.paused or not run.at_rest:
        return None
    return run.out_on or NO_TOOL, ceil(run.ended_at / PAUSE_STEP_S)


def gone_out(residency: Residency, model: ModelName, old: Absence | None, new: Absence | None) -> Residency:
    """Note that a run with a model went out on a tool, came back, or both."""
    if old == new or model not in residency.models:
        return residency
    out: Map[Absence, int] = residency.paused.get(model) or Map()
    for absence, change in ((old, -1), (new, 1)):
        if absence is not None:
            count = out.get(absence, 0) + change
            out = out.set(absence, count) if count else out.delete(absence)
    paused = residency.paused.set(model, out) if out else residency.paused.delete(model)
    return residency._replace(paused=paused)


def used(residency: Residency, replica: ReplicaId, root: RunId | None) -> Residency:
    """Note that a turn is placed, of a run of the tree with that root; None for one that is in no run."""
    model = user_of(residency, replica)
    if model is None or (model.tree == root and not model.is_released):
        return residency
    return residency._replace(models=residency.models.set(model.name, model._replace(tree=root, is_released=False)))


def left(residency: Residency, replica: ReplicaId, now: Instant) -> Residency:
    """Note that a turn on a replica has ended: from now on its model's idle time counts."""
    model = user_of(residency, replica)
    if model is None:
        return residency
    look_at = residency.look_at
    ttl_s = model.spec.ttl_s
    if ttl_s is not None and (look_at is None or now + ttl_s < look_at):
        look_at = Instant(now + ttl_s)
    return residency._replace(models=residency.models.set(model.name, model._replace(used_at=now)), look_at=look_at)


def counted(
    residency: Residency, models: Iterable[ModelName], held: Iterable[HeldTurn], runs: Iterable[Run]
) -> Residency:
    """Return the residency with the indices of new models, by a scan over all held turns and runs: the only one."""
    fresh = frozenset(models)
    for turn in held:
        if turn.arrival.model in fresh:
            residency, _ = in_line(residency, turn)
    for run in runs:
        if run.model in fresh:
            residency = gone_out(residency, run.model, None, absence_of(run))
    return residency


def without_model(residency: Residency, model: ModelName) -> Residency:
    """Return the residency without a model and all that is noted of it; nobody waits for it any more."""
    paused = residency.paused.delete(model) if model in residency.paused else residency.paused
    waiting = residency.waiting.delete(model) if model in residency.waiting else residency.waiting
    return residency._replace(models=residency.models.delete(model), paused=paused, waiting=waiting)


def user_of(residency: Residency, replica: ReplicaId) -> Model | None:
    """Return the model that a replica serves, None for a replica that no launcher started."""
    name = residency.of_replica.get(replica)
    return None if name is None else residency.models[name]
