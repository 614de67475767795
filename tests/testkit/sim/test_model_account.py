"""The account of models finds what must never be ordered."""

from collections.abc import Callable

import pytest

from core.scheduling.builders import arrived
from core.scheduling.residency.words import joined, load_failed, model, up
from luftpause.core.model.ids import LauncherId, ModelName, ReplicaId, RunId, TurnId
from luftpause.core.scheduling.actions import HoldTurn, PlaceTurn
from luftpause.core.scheduling.reasons import ModelWanted, PlacedBecause
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherLost, PinAsked
from luftpause.core.scheduling.residency.reasons import LoadReason, UnloadReason, UnloadWhy
from luftpause.core.scheduling.residency.state import ResidencyLimits
from luftpause.testkit.sim.model_account import ModelAccount

BOX = LauncherId("box")
A, B, P = ModelName("A"), ModelName("B"), ModelName("P")


def load(name: ModelName) -> LoadModel:
    return LoadModel(launcher=BOX, model=name, why=LoadReason.TURNS_WAIT)


def unload(name: ModelName, reason: UnloadReason = UnloadReason.MAKES_ROOM, *, firmly: bool = False) -> UnloadModel:
    return UnloadModel(launcher=BOX, model=name, why=UnloadWhy(reason=reason, room_for=B), firmly=firmly)


def place(turn: str, replica: str) -> PlaceTurn:
    why = PlacedBecause.LEAST_LOADED
    return PlaceTurn(turn=TurnId(turn), run=RunId("r"), replica=ReplicaId(replica), why=why, held_s=0.0)


def hold(turn: str) -> HoldTurn:
    return HoldTurn(turn=TurnId(turn), why=ModelWanted(model=A))


def account() -> ModelAccount:
    """A and P are up since 10 s; a turn is in flight on A, and another waits for B."""
    made = ModelAccount(ResidencyLimits(min_residency_s=5.0))
    made.take(joined(model("A", 4), model("B", 6), model("P", 2, "persistent")), 0.0, ())
    made.take(arrived("t", model="A"), 0.0, (load(A), load(P), hold("t")))
    made.take(up("A"), 10.0, (place("t", "box/A"),))
    made.take(up("P"), 10.0, ())
    made.take(arrived("w", model="B"), 10.0, (hold("w"),))
    return made


def test_what_is_lawful_is_counted() -> None:
    made = account()
    made.take(arrived("t2", model="A"), 20.0, (place("t2", "box/A"),))
    assert made.loads == {A: 1, P: 1}
    assert made.oldest_wait_s(25.0) == 15.0


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (lambda it: it.take(PinAsked(model=B, on=True), 20.0, (load(A),)), "is up already"),
        (lambda it: it.take(PinAsked(model=B, on=True), 20.0, (load(B),)), "the budget is"),
        (lambda it: it.take(PinAsked(model=B, on=True), 20.0, (unload(A, firmly=True),)), "in flight"),
        (lambda it: it.take(PinAsked(model=B, on=True), 20.0, (unload(A),)), "in flight"),
        (lambda it: it.take(PinAsked(model=P, on=True), 20.0, (unload(P),)), "pinned"),
        (lambda it: it.take(PinAsked(model=B, on=True), 20.0, (unload(P),)), "persistent"),
        (lambda it: it.take(PinAsked(model=B, on=True), 12.0, (unload(P, UnloadReason.IDLE),) * 2), "stopped twice"),
        (lambda it: it.take(LauncherLost(launcher=BOX), 20.0, (unload(P, UnloadReason.IDLE),)), "which is away"),
        (lambda it: it.take(arrived("x", model="B"), 20.0, (place("x", "box/B"),)), "and up are"),
        (lambda it: it.take(load_failed("B"), 20.0, ()), "wait on"),
    ],
)
def test_what_must_not_be_is_found(wrong: Callable[[ModelAccount], None], found: str) -> None:
    with pytest.raises(AssertionError, match=found):
        wrong(account())


def test_a_model_that_has_only_just_been_loaded_does_not_make_room() -> None:
    made = ModelAccount(ResidencyLimits(min_residency_s=5.0))
    made.take(joined(model("A", 4)), 0.0, (load(A),))
    made.take(up("A"), 1.0, ())
    with pytest.raises(AssertionError, match=r"was up for 2\.0 s"):
        made.take(PinAsked(model=B, on=True), 3.0, (unload(A),))
