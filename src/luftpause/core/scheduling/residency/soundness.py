"""What must hold of models in every state, proved by a scan. Called by `invariants.check`."""

from collections import Counter

from luftpause.core.model.ids import ModelName
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.residency.state import (
    Absence,
    Model,
    ModelPhase,
    Residency,
    Waiters,
    WaitingPlace,
)
from luftpause.core.scheduling.residency.uses import absence_of, model_of
from luftpause.core.scheduling.state import State


def check_models(state: State) -> None:
    """Return if all that is known of models is sound.

    Raises:
        AssertionError: it is not.
    """
    residency = state.residency
    owned: dict[str, str] = {}
    for name, model in residency.models.items():
        assert name == model.name, f"{model.name} is known as {name}"
        assert model.launcher in residency.launchers, f"nobody knows the launcher of {name}"
        assert not (model.is_dropped and model.phase is ModelPhase.DOWN), f"{name} is declared no longer, and known"
        assert model.payer is None or model.phase is ModelPhase.LOADING, f"somebody pays for {name}, and nothing loads"
        _check_phase(state, model)
        if model.replica is not None:
            owned[model.replica] = name
    _same("models by replica", dict(residency.of_replica), owned)
    _check_uses(state)
    _check_memory(residency)
    _check_rest(state)


def _check_phase(state: State, model: Model) -> None:
    """A replica is declared while its model is up or draining, and takes turns only in the first of these."""
    assert (model.replica is not None) is model.is_serving, f"{model.name} is {model.phase} as {model.replica}"
    has_why = model.phase is ModelPhase.DRAINING or model.phase is ModelPhase.STOPPING
    assert (model.unload_why is not None) is has_why, f"{model.name} is {model.phase}: {model.unload_why}"
    if model.replica is None:
        return
    replica = state.replicas[model.replica]
    assert replica.declared, f"{model.name} is up, and its replica is not declared"
    assert replica.spec is not None, f"{model.name} is up, and its replica says nothing"
    _same(f"what the replica of {model.name} serves", replica.spec.models, (model.name,))
    assert replica.spec.kind is model.spec.kind, f"{model.name} is up as a replica of another kind"
    assert replica.draining is (model.phase is ModelPhase.DRAINING), f"{model.name} is {model.phase}: {replica}"


def _check_uses(state: State) -> None:
    waiting: dict[ModelName, tuple[list[WaitingPlace], list[WaitingPlace]]] = {}
    for held in state.held.values():
        model = model_of(state.residency, held.arrival.kind, held.arrival.model)
        if model is not None:
            is_batch = held.arrival.service_class is ServiceClass.BATCH
            waiting.setdefault(model.name, ([], []))[is_batch].append(held.place)
    expected = {
        name: Waiters(tuple(sorted(interactive)), tuple(sorted(batch)))
        for name, (interactive, batch) in waiting.items()
    }
    _same("turns that wait for a model", dict(state.residency.waiting), expected)
    paused: dict[ModelName, Counter[Absence]] = {}
    for run in state.runs.values():
        absence = absence_of(run)
        if absence is not None and run.model in state.residency.models:
            paused.setdefault(run.model, Counter())[absence] += 1
    counted = {name: dict(out) for name, out in state.residency.paused.items()}
    _same("runs that will come back to a model", counted, {name: dict(out) for name, out in paused.items()})


def _check_memory(residency: Residency) -> None:
    for model in residency.models.values():
        assert model.memory >= 0, f"{model.name} takes {model.memory} bytes"
        assert model.load_s >= 0, f"{model.name} loads in {model.load_s} s"


def _check_rest(state: State) -> None:
    """Whoever waits for a model that is down is waited for by somebody: a load, a stop, a use, or a deadline."""
    residency = state.residency
    for name in residency.waiting:
        model = residency.models[name]
        is_served = (model.spec.kind, name) in state.serving
        connected = residency.launchers[model.launcher].connected
        if model.phase is ModelPhase.DOWN and not is_served and connected:
            assert model.blocked is not None, f"turns wait for {name}, and nothing is in its way"
            assert residency.is_pressed, f"turns wait for {name}, and nobody will look again"


def _same(what: str, index: object, scanned: object) -> None:
    assert index == scanned, f"{what}: the index says {index}, a scan says {scanned}"
