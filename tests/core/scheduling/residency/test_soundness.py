"""What is told of models is compared with a scan: each falsehood is found."""

from collections.abc import Callable

import pytest
from immutables import Map

from core.scheduling.builders import World, arrived, finished
from core.scheduling.residency.words import joined, model, up
from luftpause.core.model.ids import KvFile, ModelName, RunId, TurnId
from luftpause.core.scheduling.residency.kv_state import Parked, ParkPhase, Slot
from luftpause.core.scheduling.residency.soundness import check_models
from luftpause.core.scheduling.residency.state import Model, ModelPhase, Residency

A = ModelName("A")


def world() -> World:
    made = World()
    made.tell(joined(model("A", 6), model("B", 6)))
    made.tell(arrived("t", "r", model="A"))
    made.tell(up("A"))
    made.tell(arrived("w", model="B"))
    made.tell(arrived("t2", "q", model="A"))
    made.tell(finished("t2", tools=["look"]))
    return made


SAVING = Parked(KvFile(1), 10, 10, "")
KEPT = SAVING._replace(phase=ParkPhase.KEPT)


def slots_of_a(residency: Residency, *slots: Slot) -> Residency:
    return residency._replace(slots=residency.slots.set(A, slots))


def adrift_in_a(residency: Residency, *turns: str) -> Residency:
    return slots_of_a(residency)._replace(adrift=residency.adrift.set(A, tuple(map(TurnId, turns))))


def parked_of_a(residency: Residency, **parked: Parked) -> Residency:
    of_a = Map({RunId(run): each for run, each in parked.items()})
    return residency._replace(parked=residency.parked.set(A, of_a))


def of_a(residency: Residency, changed: Model) -> Residency:
    return residency._replace(models=residency.models.set(A, changed))


@pytest.mark.parametrize(
    ("falsify", "found"),
    [
        (lambda it: it._replace(of_replica=Map()), "models by replica"),
        (lambda it: it._replace(waiting=Map()), "turns that wait for a model"),
        (lambda it: it._replace(paused=Map()), "runs that will come back"),
        (lambda it: it._replace(is_pressed=False), "nobody will look again"),
        (lambda it: it._replace(launchers=Map()), "nobody knows the launcher"),
        (
            lambda it: it._replace(models=it.models.set(A, it.models[A]._replace(phase=ModelPhase.DRAINING))),
            "ModelPhase",
        ),
        (lambda it: of_a(it, it.models[A]._replace(replica=None)), "is ModelPhase"),
        (lambda it: of_a(it, it.models[A]._replace(memory=-1)), "takes -1 bytes"),
        (lambda it: slots_of_a(it, Slot(run=RunId("x"))), "keeps KV of x, which is over"),
        (lambda it: slots_of_a(it, Slot(tokens=-1)), "keeps -1 tokens"),
        (lambda it: slots_of_a(it, Slot(turn=TurnId("x"))), "x is over, and has a slot"),
        (lambda it: slots_of_a(it, Slot(turn=TurnId("t")), Slot(turn=TurnId("t"))), "t has two slots"),
        (lambda it: it._replace(slots=it.slots.set(ModelName("B"), (Slot(),))), "and has slots"),
        (lambda it: it._replace(adrift=it.adrift.set(A, ())), "nothing is adrift"),
        (lambda it: it._replace(adrift=it.adrift.set(A, (TurnId("t"),))), "A has no slots"),
        (lambda it: adrift_in_a(it, "t", "t"), "adrift twice"),
        (lambda it: adrift_in_a(it, "x"), "x is over, and adrift"),
        (lambda it: slots_of_a(adrift_in_a(it, "t"), Slot(turn=TurnId("t"))), "and has a slot"),
        (lambda it: parked_of_a(it, r=KEPT), "and may keep 0"),
        (lambda it: parked_of_a(it, x=KEPT), "and the run is over"),
        (lambda it: parked_of_a(it, r=SAVING), "and saves KV of r"),
        (lambda it: parked_of_a(it, r=KEPT, q=KEPT), "is kept twice"),
        (lambda it: parked_of_a(it, r=KEPT._replace(phase=ParkPhase.RESTORING)), "KV of r"),
        (lambda it: parked_of_a(it, r=KEPT._replace(phase=ParkPhase.RESTORING, turn=TurnId("x"))), "x is over, and"),
        (lambda it: parked_of_a(it), "nothing is kept for A"),
    ],
)
def test_a_falsehood_is_found(falsify: Callable[[Residency], Residency], found: str) -> None:
    state = world().state
    check_models(state)
    with pytest.raises(AssertionError, match=found):
        check_models(state._replace(residency=falsify(state.residency)))
