"""One model's steps from phase to phase, each with its order and what it does to its replica and to turns that wait.

Decides nothing: `review.py` and `reports.py` say which step is due.
"""

from dataclasses import replace
from typing import Final

from luftpause.core.model.ids import Instant
from luftpause.core.model.refusals import Refusal
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.scheduling import replicas
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.places import all_of
from luftpause.core.scheduling.residency import parking, slots
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import ModelUp
from luftpause.core.scheduling.residency.reasons import LoadReason, UnloadReason, UnloadWhy
from luftpause.core.scheduling.residency.state import NOBODY, Model, ModelPhase
from luftpause.core.scheduling.residency.uses import without_model
from luftpause.core.scheduling.standings import Payer
from luftpause.core.scheduling.turns import dropped, leave_queue

NEWEST_LOAD_WEIGHT: Final = 0.5


def put(draft: Draft, model: Model) -> Model:
    """Put a model in place of its old self."""
    draft.residency = draft.residency._replace(models=draft.residency.models.set(model.name, model))
    return model


def in_flight(draft: Draft, model: Model) -> int:
    """Return how many turns a model has in flight."""
    return 0 if model.replica is None else draft.replicas[model.replica].in_flight


def load(draft: Draft, model: Model, why: LoadReason, payer: Payer | None, now: Instant) -> None:
    """Order a load."""
    if payer is not None:
        draft.charge_load(payer)
    put(
        draft,
        model._replace(
            phase=ModelPhase.LOADING,
            since=now,
            load_why=why,
            fraction=0.0,
            payer=payer,
            build=model.spec.build,
            not_before=None,
            blocked=None,
        ),
    )
    draft.order(LoadModel(launcher=model.launcher, model=model.name, why=why, payer=payer))


def come_up(draft: Draft, model: Model, engine: ModelUp, now: Instant) -> None:
    """Take a model in as up: its replica takes turns at once, those that wait for it first of all.

    Where the replica's name is another's, the model goes again.
    """
    replica, memory = engine.replica, engine.memory
    owner = draft.residency.of_replica.get(replica.replica)
    known = draft.replicas.get(replica.replica)
    if owner != model.name and (owner is not None or (known is not None and known.declared)):
        stop(draft, model, UnloadWhy(reason=UnloadReason.NAME_TAKEN), now)
        return
    if model.is_serving and known is not None and known.spec == spec_of(model, replica):
        knows = memory > 0
        put(draft, model._replace(memory=memory, is_measured=True) if knows else model)
        return
    model = end_charge(draft, model)
    if model.phase is ModelPhase.LOADING:
        seen_s = now - model.since
        load_s = model.load_s + NEWEST_LOAD_WEIGHT * (seen_s - model.load_s) if model.is_timed else seen_s
        model = model._replace(load_s=load_s, is_timed=True)
    if model.replica is not None and model.replica != replica.replica:
        model = undeclare(draft, model, now)
    model = put(
        draft,
        model._replace(
            phase=ModelPhase.UP,
            since=now,
            fraction=1.0,
            memory=memory if memory > 0 else model.memory,
            is_measured=model.is_measured or memory > 0,
            replica=replica.replica,
            up_since=now,
            used_at=now,
            unload_why=None,
            asked=None,
            failures=model.crashes,
            is_retrying=False,
            is_released=False,
            tree=None,
        ),
    )
    of_replica = draft.residency.of_replica.set(replica.replica, model.name)
    draft.residency = slots.opened(draft.residency._replace(of_replica=of_replica), model.name, engine.slots)
    replicas.add(draft, spec_of(model, replica), now)
    replicas.set_ready(draft, replica.replica)


def spec_of(model: Model, told: ReplicaSpec) -> ReplicaSpec:
    """Return a model's replica as it is declared: whatever else its launcher says, it serves this model."""
    return replace(told, models=(model.name,), kind=model.spec.kind)


def drain(draft: Draft, model: Model, why: UnloadWhy, now: Instant) -> None:
    """Let a model that is up take no more turns."""
    assert model.replica is not None, f"{model.name} is up"
    put(draft, model._replace(phase=ModelPhase.DRAINING, since=now, unload_why=why))
    replicas.set_draining(draft, model.replica, draining=True)


def undrain(draft: Draft, model: Model, now: Instant) -> None:
    """Let a draining model take turns again."""
    assert model.replica is not None, f"{model.name} is up"
    put(draft, model._replace(phase=ModelPhase.UP, since=now, unload_why=None))
    replicas.set_draining(draft, model.replica, draining=False)


def stop(draft: Draft, model: Model, why: UnloadWhy, now: Instant) -> None:
    """Order a model down that is loading or up; turns in flight are cut."""
    firmly = model.phase is ModelPhase.LOADING or in_flight(draft, model) > 0
    kv = () if firmly else parking.verdicts(draft, model, why, now)
    model = undeclare(draft, end_charge(draft, model), now)
    put(draft, model._replace(phase=ModelPhase.STOPPING, since=now, unload_why=why, asked=None))
    draft.order(UnloadModel(launcher=model.launcher, model=model.name, why=why, firmly=firmly, kv=kv))


def gone(draft: Draft, model: Model, now: Instant) -> Model | None:
    """Take a model in as down; None when its launcher declares it no longer, and it is known no more."""
    model = undeclare(draft, end_charge(draft, model), now)
    if model.is_dropped:
        parking.drop_all(draft, model)
        refuse_waiters(draft, model, dropped(draft, model), now)
        draft.residency = without_model(draft.residency, model.name)
        return None
    knows = model.is_measured and model.build == model.spec.build
    fresh = model._replace(phase=ModelPhase.DOWN, since=now, unload_why=None, is_measured=knows, is_released=False)
    return put(draft, fresh if knows else fresh._replace(memory=model.spec.memory))


def undeclare(draft: Draft, model: Model, now: Instant) -> Model:
    """Take a model's replica away, if it has one: the exact inverse of what `ready` declares."""
    replica = model.replica
    if replica is None:
        return model
    residency = draft.residency._replace(of_replica=draft.residency.of_replica.delete(replica))
    draft.residency = slots.closed(residency, model.name)
    model = put(draft, model._replace(replica=None))
    replicas.remove(draft, replica, now)
    return model


def end_charge(draft: Draft, model: Model) -> Model:
    """End what the load under way is charged as, if it is."""
    if model.payer is None:
        return model
    draft.discharge_load(model.payer)
    return put(draft, model._replace(payer=None))


def refuse_waiters(draft: Draft, model: Model, refusal: Refusal, now: Instant) -> None:
    """Refuse the turns that wait for a model, unless something else serves it too."""
    if (model.spec.kind, model.name) in draft.serving:
        return
    waiters = draft.residency.waiting.get(model.name, NOBODY)
    for _, _, turn in sorted((*all_of(waiters.interactive), *all_of(waiters.batch)), key=lambda place: place[1]):
        leave_queue(draft, turn, now)
        draft.order(RefuseTurn(turn=turn, why=refusal))
