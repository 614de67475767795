"""What the Tasks extension needs of whoever does the work, and how a task looks on the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Final, Protocol

from luftpause.core.model.ids import PrincipalId

POLL_MS: Final = 1000
"""How often a client should ask for a task."""


class UnknownTaskError(Exception):
    """The principal has no task of this name."""


class TaskStatus(Enum):
    """How a task stands, in the extension's words. `FAILED` is for errors of the protocol only."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether nothing changes it any more."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A task as clients see it.

    Attributes:
        created, updated: seconds of UTC.
        message: what it is doing, for people.
        input_requests: what it asks, by key, while `INPUT_REQUIRED`.
        result: what the tool returned, as JSON, once `COMPLETED`.
        error: code and message, once `FAILED`.
    """

    task: str
    status: TaskStatus
    created: float
    updated: float
    message: str = ""
    input_requests: Mapping[str, object] = field(default_factory=dict)
    result: Mapping[str, object] = field(default_factory=dict)
    error: Mapping[str, object] = field(default_factory=dict)


class TaskDesk(Protocol):
    """The work behind the tasks."""

    def look(self, principal: PrincipalId, task: str) -> TaskView:
        """Return how a task stands.

        Raises:
            UnknownTaskError: the principal has no such task.
        """
        ...

    async def answer(self, principal: PrincipalId, task: str, responses: Mapping[str, object]) -> None:
        """Take answers to what it asks, by key, and return once they are durable. Unknown and old keys are ignored.

        Raises:
            UnknownTaskError: the principal has no such task.
        """
        ...

    async def cancel(self, principal: PrincipalId, task: str) -> None:
        """End a task. One that is over stays as it is.

        Raises:
            UnknownTaskError: the principal has no such task.
        """
        ...

    async def changed(self, principal: PrincipalId, seen: Sequence[TaskView]) -> None:
        """Return when one of these tasks is not any more as it was seen.

        Raises:
            UnknownTaskError: the principal has no such task.
        """
        ...


def created_on_wire(view: TaskView) -> dict[str, object]:
    """Return what tells a client that its call became a task."""
    return {"resultType": "task", **_common(view)}


def on_wire(view: TaskView) -> dict[str, object]:
    """Return a task with all that belongs to its status."""
    shown = _common(view)
    match view.status:
        case TaskStatus.INPUT_REQUIRED:
            shown["inputRequests"] = dict(view.input_requests)
        case TaskStatus.COMPLETED:
            shown["result"] = dict(view.result)
        case TaskStatus.FAILED:
            shown["error"] = dict(view.error)
        case TaskStatus.WORKING | TaskStatus.CANCELLED:
            pass
    return shown


def _common(view: TaskView) -> dict[str, object]:
    # A life without an end is said with null, which a client that reads carefully expects to see.
    shown: dict[str, object] = {
        "taskId": view.task,
        "status": view.status.value,
        "createdAt": _iso(view.created),
        "lastUpdatedAt": _iso(view.updated),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }
    if view.message:
        shown["statusMessage"] = view.message
    return shown


def _iso(utc: float) -> str:
    return datetime.fromtimestamp(utc, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
