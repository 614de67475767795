"""A turn: one model request of a run, as every room of the house speaks of it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from luftpause.core.model.ids import CallerId, Mark, ModelName, PeerId, PrincipalId, RunId, ToolCallId, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.traces import TraceContext


class ServiceClass(Enum):
    """What class of work a turn is."""

    INTERACTIVE = "interactive"
    BATCH = "batch"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


class TurnShape(Enum):
    """How a turn stands to its run, and whether it may have to wait for room."""

    IN_RUN = "in-run"
    """A turn of a run: it goes where the run's prefix is, and leaves the run paused or idle."""
    ASIDE = "aside"
    """One that offers no tools and answers none, such as a harness's question for a title. While its run is out on a
    tool it stands alone; else it is a turn of the run like any other, but for a pause that begins meanwhile."""
    ALONE = "alone"
    """A request by itself: admitted like any other, and no run is changed by it."""
    ERRAND = "errand"
    """A question that an engine answers beside its batch: alone, and full replicas take it too."""

    @property
    def in_run(self) -> bool:
        """Whether it changes its run, as long as nothing else is known of that."""
        return self is TurnShape.IN_RUN or self is TurnShape.ASIDE

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one turn as the engine reported them; `cached_tokens` is None where it does not say."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityKeys:
    """What a request says about the run it belongs to, in falling order of trust.

    Attributes:
        run: the `x-luftpause-run-id` header.
        session: of the harness itself; empty where it names none.
        tool_calls: every tool-call id that the request echoes, in order of appearance.
        cache_key: the request's `prompt_cache_key`; empty without one.
        said: what was said in the request, the newest answer first.
        parent: the `x-luftpause-parent` header.
        parent_call: the tool call that began this run, an answer of the parent's: whoever asked for it is the parent.
        parent_session: the harness's session that this one belongs to; empty where it names none.
    """

    run: RunId | None = None
    session: str = ""
    tool_calls: tuple[ToolCallId, ...] = ()
    cache_key: str = ""
    said: tuple[Mark, ...] = ()
    parent: RunId | None = None
    parent_call: ToolCallId | None = None
    parent_session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is in a request, as far as it decides where one for an unknown model goes.

    Attributes:
        images: whether there is a picture in it.
        code_share: how many in a hundred of its bytes are in fenced code.
    """

    images: bool = False
    code_share: int = 0


NO_TRAITS: Final = Traits()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOffer:
    """A turn that asks to be admitted: all that is known before the scheduler has spoken.

    Attributes:
        turn: minted by the dataplane, unique; offering it again returns the same placement.
        peer: the dataplane instance that offers it.
        model: empty: the only one that replicas of its kind serve.
        kind: None: single-pass, if any such replica serves the model, else generative.
        prompt_bytes: length of the request body, bytes.
        age_s: how long the turn has waited already when it is offered again after a reconnect, seconds;
            it keeps its place in the queue.
        shape: single-pass turns are in no run, whatever it says.
        traits: what is in it; looked at only where that may matter.
        trace: the turn's own place in its trace; None where nobody traces.
        recalls: how often it was placed and given back before, each time as another turn.
        reply_max: tokens that its answer may have; 0 where the request does not say.
        picture_bytes: of the body, what are pictures; they come to about `picture_tokens`.
    """

    turn: TurnId
    peer: PeerId
    model: ModelName
    kind: ReplicaKind | None
    service_class: ServiceClass
    caller: CallerId
    principal: PrincipalId
    keys: IdentityKeys
    prompt_bytes: int = 0
    age_s: float = 0.0
    shape: TurnShape = TurnShape.IN_RUN
    traits: Traits = NO_TRAITS
    trace: TraceContext | None = None
    recalls: int = 0
    reply_max: int = 0
    picture_bytes: int = 0
    picture_tokens: int = 0
