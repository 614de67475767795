"""Runs as tasks of the protocol's extension. A task is a view: its id is the run's handle, and it owns nothing."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Final

from luftpause.core.model.ids import PrincipalId
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.services.runtime.mcp_door import answers
from luftpause.services.runtime.mcp_door.questions import questions_of
from luftpause.services.runtime.mcp_door.task_desk import TaskStatus, TaskView, UnknownTaskError
from luftpause.services.runtime.mcp_door.waiting import Waiting
from luftpause.services.runtime.orders import UnknownHandleError
from luftpause.services.runtime.service import RuntimeService

_PHASES: Final = {
    "waiting_for_runs": "waits for other runs",
    "generating": "the model has the word",
    "calling_tools": "waits for its tools",
}


class RunTasks:
    """A `TaskDesk`."""

    def __init__(self, service: RuntimeService, waiting: Waiting) -> None:
        self._service = service
        self._waiting = waiting

    def look(self, principal: PrincipalId, task: str) -> TaskView:
        """Return how a task stands; see the desk."""
        try:
            (view,) = self._service.look(principal, [task])
        except UnknownHandleError as error:
            raise UnknownTaskError(str(error)) from error
        return self._task_of(view)

    async def answer(self, principal: PrincipalId, task: str, responses: Mapping[str, object]) -> None:
        """Take answers; see the desk."""
        read = {key: answer for key, answer in responses.items() if isinstance(answer, Mapping)}
        try:
            await self._waiting.answer(principal, [task], read)
        except UnknownHandleError as error:
            raise UnknownTaskError(str(error)) from error

    async def cancel(self, principal: PrincipalId, task: str) -> None:
        """End a task; see the desk."""
        try:
            await self._service.cancel(principal, task)
        except UnknownHandleError as error:
            raise UnknownTaskError(str(error)) from error

    async def changed(self, principal: PrincipalId, seen: Sequence[TaskView]) -> None:
        """Return when one of these tasks is not as it was seen; see the desk."""
        before = {view.task: view for view in seen}
        try:
            async with aclosing(self._service.changes(principal, list(before))) as changes:
                async for view in changes:
                    if self._task_of(view) != before[view.run]:
                        return
        except UnknownHandleError as error:
            raise UnknownTaskError(str(error)) from error

    def _task_of(self, view: RunView) -> TaskView:
        return task_of(view, self._service.changed_utc(view.run))


def task_of(view: RunView, updated: float) -> TaskView:
    """Return a run as a task; `updated` is when anything was last put on record of it, in seconds of UTC.

    A run that failed, or that a budget ended, is a call with a bad result, which is a completed task; only what was
    cancelled by somebody is a cancelled one.
    """
    questions = questions_of([view])
    status = _status(view)
    return TaskView(
        task=view.run,
        status=status,
        created=view.spawn.utc,
        updated=max(updated, view.spawn.utc),
        message=_message(view),
        input_requests={
            question.key: question.as_request().model_dump(by_alias=True, mode="json", exclude_none=True)
            for question in questions
        },
        result=(
            answers.run_result(view).model_dump(by_alias=True, mode="json", exclude_unset=True)
            if status is TaskStatus.COMPLETED
            else {}
        ),
    )


def _status(view: RunView) -> TaskStatus:
    match view.status:
        case RunStatus.RUNNING:
            return TaskStatus.WORKING
        case RunStatus.AWAITING_APPROVAL:
            return TaskStatus.INPUT_REQUIRED
        case RunStatus.CANCELLED if view.budget is None or view.budget.exceeded is None:
            return TaskStatus.CANCELLED
        case _:
            return TaskStatus.COMPLETED


def _message(view: RunView) -> str:
    if view.status is RunStatus.AWAITING_APPROVAL:
        return f"a call of {view.pending_approvals[0].tool} waits to be allowed"
    if view.status is RunStatus.RUNNING:
        return _PHASES.get(view.phase, view.phase)
    return view.error or ""
