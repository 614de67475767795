"""What is kept of a simulated world once it is over: runs that ended and turns that were answered. Decides nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from luftpause.core.model.ids import CallerId, PrincipalId, RunId
from luftpause.core.model.turns import ServiceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """What one run was like.

    Attributes:
        stream: of its source.
        parent: the run that began it.
        alone_s: how long it would have taken with an engine for itself; see `plans.alone_s`.
        service: what it took of the engines, weighted tokens; see `fairness.py`.
        failed: its agent gave it up.
        turn_s: how long each answered turn took.
    """

    run: RunId
    service_class: ServiceClass
    stream: int
    parent: RunId | None
    principal: PrincipalId
    caller: CallerId
    alone_s: float
    service: float
    begun_at: float
    ended_at: float
    turns: int
    turn_s: tuple[float, ...]
    reprefilled_tokens: int
    moves: int
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTurn:
    """A turn that was answered whole.

    Attributes:
        cached_tokens: of its prompt, found by its engine.
        known_tokens: of its prompt, computed for its run before.
    """

    ended_at: float
    principal: PrincipalId
    caller: CallerId
    prompt_tokens: int
    cached_tokens: int
    reply_tokens: int
    known_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that has begun and not ended, which nobody else began."""

    stream: int
    begun_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """All that happened until now, whatever runs were served by.

    Attributes:
        under_way: runs that nobody else began; `unfinished` counts the others, too.
        retractions: requests that an engine took back for want of memory.
        loads: engines that were loaded.
    """

    ended: Sequence[EndedRun]
    answered: Sequence[AnsweredTurn]
    under_way: Sequence[Begun]
    unfinished: int
    failed_turns: int
    retractions: int = 0
    loads: int = 0
