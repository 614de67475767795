"""What is told of models is compared with a scan: each falsehood is found."""

from collections.abc import Callable

import pytest
from immutables import Map

from core.scheduling.builders import World, arrived, finished
from core.scheduling.residency.words import joined, model, up
from luftpause.core.model.ids import ModelName
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
    ],
)
def test_a_falsehood_is_found(falsify: Callable[[Residency], Residency], found: str) -> None:
    state = world().state
    check_models(state)
    with pytest.raises(AssertionError, match=found):
        check_models(state._replace(residency=falsify(state.residency)))
