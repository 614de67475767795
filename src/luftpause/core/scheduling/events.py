"""What can have happened, as the scheduler learns it: facts in the past tense.

Any event is legal in any state: duplicates, late ones and ones about things long forgotten change nothing.
Ages are seconds before the event arrived, never instants of another process. What happened to a turn names the trace
that it belongs to, where somebody traces: for those who read the events, no policy reads it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import (
    CallerId,
    Mark,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.replicas import EngineKind, Load, Priorities, ReplicaKind, ReplicaSpec
from luftpause.core.model.traces import TraceContext
from luftpause.core.model.turns import ServiceClass, TurnShape, Usage
from luftpause.core.scheduling.residency.events import ModelReport

_IN_RUN: Final = TurnShape.IN_RUN
_ASIDE: Final = TurnShape.ASIDE
"""Those of `TurnShape.in_run`, which runs in Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnArrived:
    """A dataplane offered a turn and the shell found its run. Ends with one PlaceTurn or RefuseTurn.

    Attributes:
        prompt_bytes: length of the request body, bytes.
        age_s: how long the turn has waited elsewhere already, seconds: it counts for its place in the queue.
        trace: the turn's place in its trace.
        recalls: how often it was placed and given back before, each time as another turn.
        reply_max: tokens that its answer may have; 0 where nobody says.
        picture_bytes: of the body, what are pictures; they come to about `picture_tokens`.
    """

    turn: TurnId
    peer: PeerId
    run: RunId
    model: ModelName
    kind: ReplicaKind
    service_class: ServiceClass
    caller: CallerId
    principal: PrincipalId
    parent: RunId | None = None
    prompt_bytes: int = 0
    age_s: float = 0.0
    shape: TurnShape = TurnShape.IN_RUN
    trace: TraceContext | None = None
    recalls: int = 0
    reply_max: int = 0
    picture_bytes: int = 0
    picture_tokens: int = 0

    @property
    def in_run(self) -> bool:
        """Whether it changes a run: single-pass turns never do."""
        return self.kind is ReplicaKind.GENERATIVE and (self.shape is _IN_RUN or self.shape is _ASIDE)

    @property
    def text_bytes(self) -> int:
        """What of its body is text, bytes."""
        return max(0, self.prompt_bytes - max(0, self.picture_bytes))

    @property
    def part(self) -> tuple[RunId, ModelName]:
        """Its run, as far as its model takes part in it."""
        return self.run, self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokenSeen:
    """The engine's first byte of answer arrived."""

    turn: TurnId
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGrew:
    """A turn's answer has become longer than its turn is charged for; see `Charge.reply_bytes`.

    Attributes:
        reply_bytes: of it, as its engine has streamed them by now.
    """

    turn: TurnId
    reply_bytes: int
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """The engine answered whole. With tool calls the run is paused on them, without it is idle.

    Attributes:
        finish: the engine's own finish reason, empty when it gave none.
        usage: None when the engine reported none.
        marks: what the answer may be recognised by besides its tool calls; for the shell, no policy reads them.
        tools: different names of the tools called, in order; at most TOOLS_MAX, none where they could not be read.
        restore_s: how long its engine took to take the run's KV back first, seconds; None where it did not.
        reply_bytes: of its answer, as its engine streamed them; 0 where it did not, or nobody asked.
        reply_cap: tokens that its engine was told by us that it may have; 0 where it was told nothing.
    """

    turn: TurnId
    finish: str = ""
    usage: Usage | None = None
    tool_calls: tuple[ToolCallId, ...] = ()
    marks: tuple[Mark, ...] = ()
    tools: tuple[ToolName, ...] = ()
    restore_s: float | None = None
    reply_bytes: int = 0
    reply_cap: int = 0
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """The engine refused, broke or was out of reach. The run is idle, never paused.

    Attributes:
        cause: for people.
        retry_after_s: for how long the engine asked to be left alone (429 or 503 with Retry-After), seconds; None when
            it did not.
    """

    turn: TurnId
    cause: str
    retry_after_s: float | None = None
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAbandoned:
    """The client left: a held turn leaves the queue, a placed one ends as failed."""

    turn: TurnId
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReturned:
    """A recalled turn was taken back from its engine, of whose answer nothing had come; it is offered anew."""

    turn: TurnId
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStays:
    """A recall came too late, or the turn is of a kind that is not sent twice: it stays where it is."""

    turn: TurnId
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsRenewed:
    """A dataplane says that these turns are still open, held ones included: a sign of life."""

    turns: tuple[TurnId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The run will not come back (`DELETE /v1/runs/{id}`)."""

    run: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAdded:
    """A replica was declared. It takes turns once a probe found it healthy."""

    spec: ReplicaSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRemoved:
    """A replica is gone for good; the exact inverse of ReplicaAdded."""

    replica: ReplicaId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaProbed:
    """A probe ended.

    Attributes:
        load: None when the engine reports none or its report did not arrive in time.
        engine: which engine its report looks like; AUTO when it does not say.
        cause: why it is not healthy, for people; the same trouble has the same words every time.
        priorities: in which order its engine takes them; None while it does not say that it takes any.
    """

    replica: ReplicaId
    healthy: bool
    load: Load | None = None
    engine: EngineKind = EngineKind.AUTO
    cause: str = ""
    priorities: Priorities | None = None


class RunPhase(Enum):
    """What a run is doing. *Generating* while any of its turns is in flight."""

    GENERATING = "generating"
    PAUSED = "paused"
    IDLE = "idle"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """A turn in flight as its dataplane knows it, told again after a reconnect.

    Attributes:
        charge: what it was charged with, and is now if its answer grew; None where that was not told.
        reply_max: tokens that its answer may have; 0 where the request does not say.
    """

    turn: TurnId
    run: RunId
    replica: ReplicaId
    model: ModelName
    kind: ReplicaKind
    service_class: ServiceClass
    caller: CallerId
    principal: PrincipalId
    shape: TurnShape = TurnShape.IN_RUN
    parent: RunId | None = None
    trace: TraceContext | None = None
    charge: Charge | None = None
    reply_max: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRun:
    """A run with one of its models as its dataplane remembers it, told again after a reconnect.

    Attributes:
        age_s: since its last turn with that model ended, seconds.
        marks: what its next turn may be recognised by; for the shell, no policy reads them.
        tools: what it is out on while it is paused, as `TurnFinished` told it.
    """

    run: RunId
    model: ModelName
    phase: RunPhase
    replica: ReplicaId
    service_class: ServiceClass
    caller: CallerId
    principal: PrincipalId
    age_s: float
    marks: tuple[Mark, ...] = ()
    tools: tuple[ToolName, ...] = ()
    parent: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResynced:
    """A dataplane (re)connected and told all it knows. Turns of that peer that it did not name are over."""

    peer: PeerId
    turns: tuple[OpenTurn, ...]
    runs: tuple[KnownRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerLost:
    """A dataplane stayed away longer than the link's grace: its turns are over."""

    peer: PeerId


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTool:
    """What a tool taught a scheduler before us; the fields are those of `tool_history.History`, its age in seconds."""

    tool: ToolName
    returned: int
    returns: tuple[float, ...]
    losses: tuple[float, ...]
    unit: float
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownReplica:
    """What a scheduler before us knew of a replica.

    Attributes:
        placed: turns ever placed there.
        window: size, what was in flight at the refusal or None after an outage, and answers; None without a window.
        speed: tokens that it prefills in a second, 0 where nobody knows.
        bears: tokens that its memory bears, where that is less than its engine says.
    """

    replica: ReplicaId
    placed: int = 0
    window: tuple[int, int | None, int] | None = None
    speed: float = 0.0
    bears: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRestored:
    """The shell found what a scheduler before us had learned. What we know ourselves by now is newer."""

    tools: tuple[KnownTool, ...] = ()
    replicas: tuple[KnownReplica, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WokeUp:
    """A deadline passed. Extra ones are harmless."""


TurnReport: TypeAlias = (
    FirstTokenSeen | AnswerGrew | TurnFinished | TurnFailed | TurnAbandoned | TurnReturned | TurnStays | TurnsRenewed
)
"""What a dataplane reports about turns that it was given."""

Event: TypeAlias = (
    TurnArrived
    | TurnReport
    | RunEnded
    | ReplicaAdded
    | ReplicaRemoved
    | ReplicaProbed
    | PeerResynced
    | PeerLost
    | MemoryRestored
    | ModelReport
    | WokeUp
)
