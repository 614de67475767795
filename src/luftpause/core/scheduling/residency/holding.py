"""Why a turn waits for its model, as far as that is the reason."""

from collections.abc import Container

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.reasons import (
    HoldReason,
    LauncherAway,
    ModelLeaving,
    ModelLoading,
    ModelWanted,
    WaitingForMemory,
)
from luftpause.core.scheduling.residency.reasons import explain_unload
from luftpause.core.scheduling.residency.state import Model, ModelPhase, Residency
from luftpause.core.scheduling.residency.uses import model_of
from luftpause.core.scheduling.state import Service

FRACTION_MIN = 0.05
"""Before that much of a load is done, its progress says nothing of how long the rest takes."""


def why_model_held(
    residency: Residency, serving: Container[Service], arrival: TurnArrived, now: Instant
) -> HoldReason | None:
    """Return why a turn waits for its model; None when no launcher has it, or it is up and the reason is another."""
    model = model_of(residency, arrival.kind, arrival.model)
    if model is None or model.phase is ModelPhase.UP:
        return None
    if model.phase is ModelPhase.DRAINING:
        return _leaving(model)
    if (arrival.kind, arrival.model) in serving:
        return None  # something else serves it
    if not residency.launchers[model.launcher].connected:
        return LauncherAway(model=model.name, launcher=model.launcher)
    return _on_its_way(model, now)


def _on_its_way(model: Model, now: Instant) -> HoldReason:
    if model.phase is ModelPhase.LOADING:
        return ModelLoading(model=model.name, eta_s=eta_s(model, now))
    if model.phase is ModelPhase.STOPPING:
        return _leaving(model)
    if model.blocked is None:
        return ModelWanted(model=model.name)
    return WaitingForMemory(model=model.name, blocked=model.blocked)


def _leaving(model: Model) -> HoldReason:
    return ModelLeaving(model=model.name, why="" if model.unload_why is None else explain_unload(model.unload_why))


def eta_s(model: Model, now: Instant) -> float:
    """Return in how many seconds a model that is loading is thought to be ready, by its progress or by its past."""
    elapsed_s = now - model.since
    if model.fraction >= FRACTION_MIN:
        return elapsed_s * (1.0 - model.fraction) / model.fraction
    return max(0.0, model.load_s - elapsed_s)
