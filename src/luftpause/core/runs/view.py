"""A run as the doors show it: plain values, no conversation."""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from luftpause.core.model.ids import ActiveMs, ModelName, RunId, ToolCallId
from luftpause.core.runs.approvals import pending_calls
from luftpause.core.runs.budgets import Used, passed, used_of
from luftpause.core.runs.events import Limits, RunSpawned
from luftpause.core.runs.state import (
    CallingTools,
    Cancelled,
    Concluding,
    Failed,
    Failing,
    Finished,
    Generating,
    Phase,
    Run,
    State,
    Totals,
    WaitingForRuns,
)


class RunStatus(Enum):
    """How a run stands, in the words that clients see."""

    RUNNING = "Running"
    AWAITING_APPROVAL = "AwaitingApproval"
    FINISHED = "Finished"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_over(self) -> bool:
        """Whether the run does nothing any more, unless it finished and is sent a message."""
        return self in (RunStatus.FINISHED, RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A tool call that waits for somebody to allow it.

    Attributes:
        tool: the name that the run knows it by.
        arguments: as the model wrote them, JSON if it behaved.
        reason: why somebody is asked, for people.
    """

    call: ToolCallId
    tool: str
    arguments: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """How a run's budget stands. `exceeded`: the limit that was passed, `tokens`, `toolCalls` or `seconds`."""

    limits: Limits
    used: Used
    exceeded: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run.

    Attributes:
        phase: in a word what it is doing.
        model: which it is on now; fallbacks change it.
        result: the answer, once Finished; `structured` is its value where the run has an output schema.
        error: why it Failed or was Cancelled.
        pending_approvals: in the order asked for; empty unless AwaitingApproval.
        budget: None where the spawn gave none.
        origin_run: the run of the LLM door whose tool call or thread spawned it, once that was found.
    """

    spawn: RunSpawned
    tree: RunId
    status: RunStatus
    phase: str
    model: ModelName
    result: str | None
    structured: object
    error: str | None
    children: tuple[RunId, ...]
    own: Totals
    subtree: Totals
    pending_approvals: tuple[PendingApproval, ...]
    budget: BudgetView | None
    origin_run: RunId | None

    @property
    def run(self) -> RunId:
        """Its handle."""
        return self.spawn.run

    @property
    def parent(self) -> RunId | None:
        """The run that it is a child of."""
        return self.spawn.parent


def view(state: State, run: RunId, now: ActiveMs) -> RunView:
    """Return how a known run stands at a moment of its tree's clock.

    Raises:
        KeyError: there is no such run.
    """
    known = state.runs[run]
    phase = known.phase
    status, word = _describe(phase)
    pending = tuple(
        PendingApproval(call=call.asked.call, tool=call.asked.tool, arguments=call.asked.arguments, reason=call.reason)
        for call in pending_calls(state, known)
    )
    return RunView(
        spawn=known.spawn,
        tree=known.tree,
        status=RunStatus.AWAITING_APPROVAL if pending else status,
        phase=word,
        model=known.model,
        result=phase.result if isinstance(phase, Finished) else None,
        structured=phase.structured if isinstance(phase, Finished) else None,
        error=_error(phase),
        children=known.children,
        own=known.own,
        subtree=known.subtree,
        pending_approvals=pending,
        budget=_budget(known, now),
        origin_run=known.origin_run,
    )


def _budget(run: Run, now: ActiveMs) -> BudgetView | None:
    limits = run.spawn.budget
    if limits is None:
        return None
    used = used_of(run, now)
    exceeded = passed(run, now)
    if exceeded is None and isinstance(run.phase, Cancelled):
        ended_by = run.phase.exceeded
        exceeded = ended_by if ended_by is not None and ended_by.run == run.spawn.run else None
    return BudgetView(limits=limits, used=used, exceeded=None if exceeded is None else exceeded.which)


def _describe(phase: Phase) -> tuple[RunStatus, str]:
    status, word = RunStatus.RUNNING, "over"
    match phase:
        case WaitingForRuns():
            word = "waiting_for_runs"
        case Generating():
            word = "generating"
        case CallingTools():
            word = "calling_tools"
        case Concluding():
            word = "concluding"
        case Failing():
            word = "failing"
        case Finished():
            status = RunStatus.FINISHED
        case Failed():
            status = RunStatus.FAILED
        case Cancelled():
            status = RunStatus.CANCELLED
        case _:
            assert_never(phase)
    return status, word


def _error(phase: Phase) -> str | None:
    match phase:
        case Failed():
            return phase.error
        case Cancelled():
            return phase.why
        case _:
            return None
