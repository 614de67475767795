"""A run as the doors show it: plain values, no conversation."""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import RunSpawned
from luftpause.core.runs.state import (
    CallingTools,
    Cancelled,
    Concluding,
    Failed,
    Finished,
    Generating,
    Phase,
    State,
    Totals,
)


class RunStatus(Enum):
    """How a run stands, in the words that clients see."""

    RUNNING = "Running"
    FINISHED = "Finished"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run. `phase` says in a word what it is doing; `error` is also set when it was cancelled, to say why."""

    spawn: RunSpawned
    status: RunStatus
    phase: str
    result: str | None
    error: str | None
    children: tuple[RunId, ...]
    own: Totals
    subtree: Totals


def view(state: State, run: RunId) -> RunView:
    """Return how a known run stands.

    Raises:
        KeyError: there is no such run.
    """
    known = state.runs[run]
    status, word, result, error = _describe(known.phase)
    return RunView(
        spawn=known.spawn,
        status=status,
        phase=word,
        result=result,
        error=error,
        children=known.children,
        own=known.own,
        subtree=known.subtree,
    )


def _describe(phase: Phase) -> tuple[RunStatus, str, str | None, str | None]:
    match phase:
        case Generating():
            return RunStatus.RUNNING, "generating", None, None
        case CallingTools():
            return RunStatus.RUNNING, "calling_tools", None, None
        case Concluding():
            return RunStatus.RUNNING, "concluding", None, None
        case Finished():
            return RunStatus.FINISHED, "over", phase.result, None
        case Failed():
            return RunStatus.FAILED, "over", None, phase.error
        case Cancelled():
            return RunStatus.CANCELLED, "over", None, f"cancelled: {phase.why}"
        case _:
            assert_never(phase)
