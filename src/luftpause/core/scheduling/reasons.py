"""Why the scheduler did what it did: a few fields each, and one sentence for people."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, assert_never

from luftpause.core.model.ids import CallerId, LauncherId, ModelName, ReplicaId
from luftpause.core.scheduling.residency.reasons import Blocked, explain_blocked


class PlacedBecause(Enum):
    """Why a turn went to the replica it went to."""

    HOME = "its run's last turn ran there"
    LEAST_LOADED = "fewest turns in flight"
    READ_SOONEST = "its prompt is read soonest there, and of equals the fewest tokens are taken"
    ROOM_CAME = "it may begin there now"
    TOO_LARGE = "it seems too large for any engine, and the engine says so at once if it is"
    PLACE_LAPSED = "its place at home was not kept any longer"
    HOME_LOST = "its home replica is unhealthy, gone or was started anew"
    RESYNCED = "its dataplane says that it runs there"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


class RecalledBecause(Enum):
    """Why a turn is asked back from its replica."""

    FIRST_TOKENS = "an interactive turn waits, and as many turns there as may have no first token yet"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForRoom:
    """Every replica that may serve the turn is full; this is the one that came closest.

    `foreign`: requests of others, past us, that its engine has to do besides.
    """

    replica: ReplicaId
    in_flight: int
    capacity: int
    foreign: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomKept:
    """There is room, kept for interactive runs that are paused on a tool there and will come back."""

    replica: ReplicaId
    paused_interactive: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingReturn:
    """There is room, but an interactive run came back to the full replica, and batch waits for its first token."""

    replica: ReplicaId


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFull:
    """The replica takes few turns until it has proved that it bears more: it came back from an outage or refused one.

    Attributes:
        turns: how many it may have in flight for now.
        refused: whether a refusal is the cause; else an outage.
    """

    replica: ReplicaId
    turns: int
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForHome:
    """The run's prefix is cached on a replica that has no room now. `foreign` as with `WaitingForRoom`."""

    replica: ReplicaId
    in_flight: int
    capacity: int
    foreign: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForTokens:
    """A run begins where its tokens fit, and they fit nowhere; this replica comes closest. Both in tokens.

    `foreign`: requests of others, past us, that its engine has to do besides: they take of its memory too.
    """

    replica: ReplicaId
    need: int
    free: int
    foreign: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomKeptFor:
    """There is room, and the replica is closed for a turn that comes first and does not fit yet; `caller` has it."""

    replica: ReplicaId
    caller: CallerId


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingFirstTokens:
    """So many turns on the replica have no first token yet: another one would only wait there."""

    replica: ReplicaId
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoHealthyReplica:
    """The model is known, but no replica that serves it answers its health probe.

    Attributes:
        cause: the first such replica with what made its last probe fail; empty when none was probed yet.
    """

    model: ModelName
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaClosed:
    """The engine refused a turn and asked for no new ones for a while."""

    replica: ReplicaId


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindCaller:
    """Another turn is ahead in fair order: a caller with fewer turns in flight, or an earlier arrival."""

    caller: CallerId


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWanted:
    """The model is not up; it is loaded as soon as there is room."""

    model: ModelName


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoading:
    """The model is being loaded. `eta_s`: for about so many seconds still."""

    model: ModelName
    eta_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForMemory:
    """The model has no room yet: another one is in its way."""

    model: ModelName
    blocked: Blocked


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLeaving:
    """The model takes no more turns and is unloaded; then it is loaded again. `why` it goes is for people."""

    model: ModelName
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherAway:
    """The launcher that could load the model is not connected."""

    model: ModelName
    launcher: LauncherId


ModelReason: TypeAlias = ModelWanted | ModelLoading | WaitingForMemory | ModelLeaving | LauncherAway

RoomReason: TypeAlias = WaitingForRoom | RoomKept | AwaitingReturn | WindowFull | WaitingForHome

WorkingSetReason: TypeAlias = WaitingForTokens | RoomKeptFor | AwaitingFirstTokens

HoldReason: TypeAlias = RoomReason | WorkingSetReason | NoHealthyReplica | ReplicaClosed | BehindCaller | ModelReason


def explain(reason: HoldReason) -> str:
    """Return the reason as one sentence without its full stop."""
    match reason:
        case NoHealthyReplica(model=model, cause=cause):
            words = f"no healthy replica serves {model}" + (f": {cause}" if cause else " yet")
        case ReplicaClosed(replica=replica):
            words = f"{replica} refused a turn and asked for no new ones for a while"
        case BehindCaller(caller=caller):
            words = f"behind caller {caller} in fair order"
        case WaitingForTokens() | RoomKeptFor() | AwaitingFirstTokens():
            words = _explain_working_set(reason)
        case ModelWanted() | ModelLoading() | WaitingForMemory() | ModelLeaving() | LauncherAway():
            words = _explain_model(reason)
        case _:
            words = _explain_room(reason)
    return words


def _explain_room(reason: RoomReason) -> str:
    match reason:
        case WaitingForRoom(replica=replica, in_flight=in_flight, capacity=capacity, foreign=foreign):
            words = f"waiting for room: {replica} runs {in_flight} of {capacity}{_besides(foreign)}"
        case RoomKept(replica=replica, paused_interactive=paused):
            words = f"room on {replica} is kept for {_several(paused, 'interactive run')} paused on a tool"
        case AwaitingReturn(replica=replica):
            words = f"an interactive run came back to {replica}, and batch waits for its first token"
        case WindowFull(replica=replica, turns=turns, refused=refused):
            before = "refused a turn" if refused else "came back"
            words = f"{replica} {before} a moment ago and takes {_several(turns, 'turn')} until it has answered some"
        case WaitingForHome(replica=replica, in_flight=in_flight, capacity=capacity, foreign=foreign):
            words = f"waiting for its home {replica}, where its prefix is cached: {in_flight} of {capacity} in flight"
            words += _besides(foreign)
        case _:
            assert_never(reason)
    return words


def _explain_working_set(reason: WorkingSetReason) -> str:
    match reason:
        case WaitingForTokens(replica=replica, need=need, free=free, foreign=foreign):
            words = (
                f"waiting for room to begin: it needs {need} tokens, and {replica} has {free} free{_besides(foreign)}"
            )
        case RoomKeptFor(replica=replica, caller=caller):
            words = f"{replica} is closed to others until a turn of caller {caller} fits that comes first"
        case AwaitingFirstTokens(replica=replica, turns=turns):
            words = f"{_several(turns, 'turn')} on {replica} have no first token yet"
        case _:
            assert_never(reason)
    return words


def _explain_model(reason: ModelReason) -> str:
    match reason:
        case ModelWanted(model=model):
            words = f"{model} is not up, and is loaded as soon as there is room"
        case ModelLoading(model=model, eta_s=eta_s):
            words = f"{model} is loading" + (f", for about {eta_s:.0f} s still" if eta_s >= 1 else "")
        case WaitingForMemory(model=model, blocked=blocked):
            words = f"{model} is not up and has no room yet: {explain_blocked(blocked)}"
        case ModelLeaving(model=model, why=why):
            words = f"{model} is being unloaded" + (f": {why}" if why else "")
        case LauncherAway(model=model, launcher=launcher):
            words = f"{model} is not up, and its launcher {launcher} is not connected"
        case _:
            assert_never(reason)
    return words


def _besides(foreign: int) -> str:
    return f", and its engine has {_several(foreign, 'request')} of others" if foreign else ""


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
