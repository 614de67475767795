"""What is known of the slots of engines and of KV that is kept in files, as values. Nothing here decides.

A *slot* is where an engine keeps the KV of one conversation at a time. A run's KV is *parked* when its launcher keeps
it in a file while the model is down.
"""

from enum import Enum
from typing import NamedTuple

from luftpause.core.model.ids import Instant, KvFile, RunId, TurnId


class Slot(NamedTuple):
    """One slot of an engine that is up.

    Attributes:
        run: whose KV it holds; None: nobody's that is known.
        turn: what is in flight in it.
        tokens: of that KV, as the engine told, or else by the length of the request; 0: nothing yet.
        used_at: when its last turn ended.
    """

    run: RunId | None = None
    turn: TurnId | None = None
    tokens: int = 0
    used_at: Instant = Instant(0.0)


class ParkPhase(Enum):
    """What becomes of parked KV."""

    SAVING = "saving"
    """Ordered, with the stop of its engine."""
    KEPT = "kept"
    RESTORING = "restoring"
    """A turn of its run is in flight and was to be given it first. It goes with that turn."""

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


class Parked(NamedTuple):
    """A run's KV in a file.

    Attributes:
        size: bytes; guessed while it is being saved.
        build: of the settings that its engine was started with: no other can read it.
        turn: which restores it.
    """

    file: KvFile
    tokens: int
    size: int
    build: str
    phase: ParkPhase = ParkPhase.SAVING
    turn: TurnId | None = None


class KvCosts(NamedTuple):
    """What a model's KV costs per token, as measured; None: not yet.

    Attributes:
        prefill_s: to compute it.
        save_s: to write it to a file.
        restore_s: to read it from one.
        size: bytes.
        misses: restores in a row that brought nothing.
    """

    prefill_s: float | None = None
    save_s: float | None = None
    restore_s: float | None = None
    size: float | None = None
    misses: int = 0


class Seat(NamedTuple):
    """Where in an engine a turn goes. `file`: what is to be restored there first."""

    slot: int | None = None
    file: KvFile | None = None


NO_SEAT = Seat()
"""The engine chooses."""
