"""What must hold of models in every state, proved by a scan. Called by `invariants.check`."""

from collections import Counter

from luftpause.core.model.ids import KvFile, LauncherId, ModelName, TurnId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.places import Place, all_of
from luftpause.core.scheduling.residency.kv_state import ParkPhase
from luftpause.core.scheduling.residency.state import (
    Absence,
    Model,
    ModelPhase,
    Residency,
)
from luftpause.core.scheduling.residency.uses import absence_of, model_of, waiting_place
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
    _check_slots(state)
    _check_adrift(state)
    _check_parked(state)
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
    waiting: dict[ModelName, tuple[list[Place], list[Place]]] = {}
    for held in state.held.values():
        model = model_of(state.residency, held.arrival.kind, held.arrival.model)
        if model is not None:
            is_batch = held.arrival.service_class is ServiceClass.BATCH
            waiting.setdefault(model.name, ([], []))[is_batch].append(waiting_place(held))
    expected = {name: (sorted(interactive), sorted(batch)) for name, (interactive, batch) in waiting.items()}
    listed = {
        name: ([*all_of(each.interactive)], [*all_of(each.batch)]) for name, each in state.residency.waiting.items()
    }
    _same("turns that wait for a model", listed, expected)
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


def _check_slots(state: State) -> None:
    """A slot's turn is in flight there and in no other slot, and a slot's run is known."""
    residency = state.residency
    seen: set[TurnId] = set()
    for name, slots in residency.slots.items():
        model = residency.models[name]
        assert model.is_serving, f"{name} is {model.phase}, and has slots"
        for slot in slots:
            assert slot.run is None or (slot.run, name) in state.runs, f"{name} keeps KV of {slot.run}, which is over"
            assert slot.tokens >= 0, f"{name} keeps {slot.tokens} tokens of {slot.run}"
            if slot.turn is not None:
                turn = state.turns.get(slot.turn)
                assert turn is not None, f"{slot.turn} is over, and has a slot of {name}"
                assert turn.replica == model.replica, f"{slot.turn} runs on {turn.replica}, and has a slot of {name}"
                assert slot.turn not in seen, f"{slot.turn} has two slots"
                seen.add(slot.turn)


def _check_adrift(state: State) -> None:
    residency = state.residency
    for name, adrift in residency.adrift.items():
        assert adrift, f"nothing is adrift in {name}, and that is noted"
        assert name in residency.slots, f"{name} has no slots, and turns are in one that nobody knows"
        assert len(set(adrift)) == len(adrift), f"a turn is adrift twice: {adrift}"
        for turn in adrift:
            assert turn in state.turns, f"{turn} is over, and adrift in {name}"
            held = [slot.turn for slot in residency.slots[name]]
            assert turn not in held, f"{turn} is adrift in {name}, and has a slot"


def _check_parked(state: State) -> None:
    """A file is one run's, and all that a launcher keeps fits into what it may keep."""
    residency = state.residency
    files: set[tuple[LauncherId, KvFile]] = set()
    kept: Counter[LauncherId] = Counter()
    for name, parked in residency.parked.items():
        assert parked, f"nothing is kept for {name}, and that is noted"
        model = residency.models[name]
        for run, each in parked.items():
            assert (run, name) in state.runs, f"KV of {run} is kept for {name}, and the run is over"
            if each.phase is ParkPhase.SAVING:
                assert model.phase is ModelPhase.STOPPING, f"{name} is {model.phase}, and saves KV of {run}"
            is_restoring = each.phase is ParkPhase.RESTORING
            assert is_restoring is (each.turn is not None), f"KV of {run}: {each}"
            assert each.turn is None or each.turn in state.turns, f"{each.turn} is over, and restores KV of {run}"
            assert (model.launcher, each.file) not in files, f"file {each.file} is kept twice"
            files.add((model.launcher, each.file))
            kept[model.launcher] += each.size if each.phase is ParkPhase.KEPT else 0
    for launcher, size in kept.items():
        most = residency.launchers[launcher].parking
        assert size <= most, f"{launcher} keeps {size} bytes of KV, and may keep {most}"


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
