"""Why a model is loaded or unloaded, and how each is said in a sentence."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWhy:
    """A reason to load."""

    reason: LoadReason


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadWhy:
    """A reason to unload. `room_for`: the model that needs the room."""

    reason: UnloadReason
    room_for: ModelName | None = None


def explain_load(why: LoadWhy) -> str:
    """Return the reason as one sentence without its full stop."""
    return why.reason.value


def explain_unload(why: UnloadWhy) -> str:
    """Return the reason as one sentence without its full stop."""
    return why.reason.value + (f" for {why.room_for}" if why.room_for else "")
