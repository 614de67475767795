"""What the scheduler orders, performed by the shell in the order given.

| action       | ends with exactly one of                                                                  |
| ------------ | ----------------------------------------------------------------------------------------- |
| `PlaceTurn`  | `TurnFinished`, `TurnFailed`, `TurnAbandoned`, `TurnReturned`, `PeerLost`, `PeerResynced` or expiry |
| `HoldTurn`   | a later `PlaceTurn` or `RefuseTurn`, `TurnAbandoned`, `PeerLost`, `PeerResynced` or expiry |
| `RefuseTurn` | nothing: it ends the turn                                                                 |
| `RecallTurn` | `TurnReturned`, `TurnStays`, or whatever else ends the turn                              |
| `ForgetRun`  | nothing: it ends the run                                                                  |

`LoadModel`, `UnloadModel` and `DropKv`, for launchers, stand in `residency/actions.py`.
"""

from dataclasses import dataclass
from typing import TypeAlias

from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import KvFile, ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import Refusal
from luftpause.core.scheduling.reasons import HoldReason, PlacedBecause, RecalledBecause
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceTurn:
    """Send the turn to the replica.

    Attributes:
        held_s: how long it was held before.
        slot: where in its engine; None: the engine chooses.
        restore: what is to be read into that slot first.
        priority: in its engine's queue; None: none is sent.
        owns_priority: whether a priority that its request names is replaced by that, or taken out.
        charge: what it is charged with; None where nobody asks how long its answer becomes.
    """

    turn: TurnId
    run: RunId
    replica: ReplicaId
    why: PlacedBecause
    held_s: float
    slot: int | None = None
    restore: KvFile | None = None
    priority: int | None = None
    owns_priority: bool = False
    charge: Charge | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldTurn:
    """The turn waits here. Given once on arrival; the current reason is in the view."""

    turn: TurnId
    why: HoldReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseTurn:
    """Turn the turn away: its client gets the refusal."""

    turn: TurnId
    why: Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallTurn:
    """Take the turn back from its engine, if nothing of its answer has come, and offer it again as it was.

    Attributes:
        replica: where it is.
        favours: the turn that waits for its place there.
    """

    turn: TurnId
    replica: ReplicaId
    favours: TurnId
    why: RecalledBecause


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRun:
    """The run left the state: what the shell kept for it (tool-call ids) goes too. `why` is for people."""

    run: RunId
    why: str


Action: TypeAlias = PlaceTurn | HoldTurn | RefuseTurn | RecallTurn | ForgetRun | LoadModel | UnloadModel | DropKv
