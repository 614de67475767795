"""Why a model is loaded, unloaded, or has to wait, and how each is said in a sentence."""

from dataclasses import dataclass
from enum import Enum

from luftpause.core.model.ids import ModelName


class LoadReason(Enum):
    """Why a model is loaded."""

    TURNS_WAIT = "turns wait for it"
    ASKED = "an operator asked for it"
    PRELOAD = "it is to be up from the start"
    RESTART = "it crashed and is to come back by itself"
    AHEAD = "a run is about to come back to it"


class UnloadReason(Enum):
    """Why a model is unloaded."""

    IDLE = "nobody used it for its TTL"
    TREE_ENDED = "the runs that used it have ended"
    MAKES_ROOM = "its room is needed"
    ASKED = "an operator asked for it"
    CHANGED = "its settings changed"
    DROPPED = "it is declared no longer"
    NAME_TAKEN = "its replica has a name that is in use"
    SILENT = "its engine answers nothing any more, and is started anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadWhy:
    """A reason to unload. `room_for`: the model that needs the room."""

    reason: UnloadReason
    room_for: ModelName | None = None


class KvReason(Enum):
    """Why a run's KV is kept when its model goes, or is not."""

    EXPECTED = "its run is expected back from its tool"
    WAITS = "a turn of its run waits"
    NOT_EXPECTED = "its run is not expected back"
    NOT_WORTH = "it is computed again sooner than it is saved and restored"
    NO_ROOM = "others take all that may be kept, and are worth more"
    NEVER_HELPS = "what was restored for this model brought nothing"


class KvDropReason(Enum):
    """Why a file with KV is deleted."""

    RUN_ENDED = "its run is over"
    RESTORED = "its run has it back"
    PASSED_OVER = "its run went on without it"
    NO_ROOM = "others are worth more"
    OUTDATED = "its model was started otherwise since, or is gone"
    UNKNOWN = "nobody knows whose it is"


class Obstacle(Enum):
    """What another model has that keeps a model from its room."""

    IN_USE = "has turns in flight or waiting"
    EXPECTED = "expects a run back from its tool sooner than both could be loaded"
    FRESH = "has only just been loaded"
    LOADING = "is being loaded for turns that wait"
    LEAVING = "is being unloaded"
    KEPT = "is kept up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Why a model that is wanted is not loaded yet: the first of those that stand in its way."""

    by: ModelName
    obstacle: Obstacle


def explain_unload(why: UnloadWhy) -> str:
    """Return the reason as one sentence without its full stop."""
    return why.reason.value + (f" for {why.room_for}" if why.room_for else "")


def explain_blocked(blocked: Blocked) -> str:
    """Return the reason as one sentence without its full stop."""
    return f"{blocked.by} {blocked.obstacle.value}"
