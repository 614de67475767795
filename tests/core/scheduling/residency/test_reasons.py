"""The sentences of residency: each reason has one."""

from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.reasons import (
    LauncherAway,
    ModelLeaving,
    ModelLoading,
    ModelWanted,
    WaitingForMemory,
    explain,
)
from luftpause.core.scheduling.residency.reasons import (
    Blocked,
    LoadReason,
    Obstacle,
    UnloadReason,
    UnloadWhy,
    explain_blocked,
    explain_unload,
)

A, B = ModelName("A"), ModelName("B")


def test_every_reason_is_a_sentence() -> None:
    assert all(reason.value for each in (LoadReason, UnloadReason, Obstacle) for reason in each)
    assert explain_unload(UnloadWhy(reason=UnloadReason.IDLE)) == "nobody used it for its TTL"
    assert explain_unload(UnloadWhy(reason=UnloadReason.MAKES_ROOM, room_for=B)) == "its room is needed for B"
    blocked = Blocked(by=A, obstacle=Obstacle.IN_USE)
    assert explain_blocked(blocked) == "A has turns in flight or waiting"
    assert explain(WaitingForMemory(model=B, blocked=blocked)).endswith("no room yet: A has turns in flight or waiting")


def test_a_hold_for_a_model_says_what_it_waits_for() -> None:
    assert explain(ModelWanted(model=A)) == "A is not up, and is loaded as soon as there is room"
    assert explain(ModelLoading(model=A, eta_s=2.4)) == "A is loading, for about 2 s still"
    assert explain(ModelLoading(model=A, eta_s=0.0)) == "A is loading"
    assert explain(ModelLeaving(model=A, why="")) == "A is being unloaded"
    assert explain(ModelLeaving(model=A, why="so")) == "A is being unloaded: so"
    away = LauncherAway(model=A, launcher=LauncherId("box"))
    assert explain(away) == "A is not up, and its launcher box is not connected"
