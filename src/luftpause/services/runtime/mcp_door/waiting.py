"""Waiting for runs on behalf of a client, with signs of life, and asking its user on the way.

Nobody who waits owns a run. In a session the user is asked by a request of ours, one waiter at a time; a request that
stands alone ends with the question instead, and comes back with the answer.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult
from pydantic import ValidationError

from luftpause.core.model.ids import PrincipalId
from luftpause.core.runs.view import RunView
from luftpause.services.runtime.mcp_door.calls import ToolCall, is_sessionless, shows_forms
from luftpause.services.runtime.mcp_door.questions import FORM, Question, allows, questions_of
from luftpause.services.runtime.service import RuntimeService

BY_FORM: Final = "a form"
logger = logging.getLogger("luftpause.mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What is waited for.

    Attributes:
        timeout_s: how long, without the time that a person takes to answer; None: as long as it takes.
        state: comes back with the answer to a question.
    """

    handles: Sequence[str]
    mode: Literal["all", "any"] = "all"
    timeout_s: float | None = None
    state: str | None = None


class Waiting:
    """Waits for all clients of one door."""

    def __init__(self, service: RuntimeService) -> None:
        self._service = service
        self._settings = service.settings
        self._waited_for: Counter[str] = Counter()

    def is_waited_for(self, handle: str) -> bool:
        """Whether a client waits for this run right now."""
        return self._waited_for[handle] > 0

    async def wait(self, call: ToolCall, wait: Wait) -> list[RunView] | InputRequiredResult:
        """Return how the runs stand once they are over, the time is up, or somebody else has to allow a tool call.

        Raises:
            UnknownHandleError: names the first one that the principal does not have.
            NotKeptError: the journal has failed, so no further run ends.
        """
        self._waited_for.update(wait.handles)
        try:
            if is_sessionless(call.context):
                await self.answer(call.principal.name, wait.handles, _answers(call))
            return await _OneWait(self._service, call, wait).course()
        finally:
            self._waited_for.subtract(wait.handles)
            for handle in wait.handles:
                if self._waited_for[handle] <= 0:
                    del self._waited_for[handle]

    async def answer(
        self, principal: PrincipalId, handles: Sequence[str], answers: Mapping[str, Mapping[str, object]]
    ) -> None:
        """Take answers by key to what these runs ask, and return once they are durable. Others are ignored.

        Raises:
            UnknownHandleError: names the first run that the principal does not have.
            NotKeptError: it could not be recorded.
        """
        for question in questions_of(self._service.look(principal, handles)):
            answer = answers.get(question.key)
            if answer is not None:
                await decide(self._service, principal, question, allow=allows(answer))


async def decide(service: RuntimeService, principal: PrincipalId, question: Question, *, allow: bool) -> None:
    """Put an answer on record: for this one call."""
    await service.approvals.approve(principal, question.run, question.call, allow=allow, by=BY_FORM)


def _answers(call: ToolCall) -> dict[str, Mapping[str, object]]:
    given = call.params.input_responses or {}
    return {key: answer.model_dump() for key, answer in given.items() if isinstance(answer, ElicitResult)}


class _OneWait:
    """One client's wait, from its call to the answer."""

    def __init__(self, service: RuntimeService, call: ToolCall, wait: Wait) -> None:
        self._service = service
        self._settings = service.settings
        self._call = call
        self._wait = wait
        self._principal = call.principal.name
        self._asks = shows_forms(call.context)
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._answering_s = 0.0

    async def course(self) -> list[RunView] | InputRequiredResult:
        while True:
            views = self._service.look(self._principal, self._wait.handles)
            await self._show_life(views)
            if self._is_enough(views) or self._call.gone.is_set():
                return views
            questions = questions_of(views)
            if questions and self._asks and is_sessionless(self._call.context):
                return self._with_questions(questions)
            mine = self._claimed(questions) if self._asks else None
            if mine is not None:
                await self._ask(mine)
                continue
            step = max(min(self._settings.progress_every_s, self._left_s()), 0.0)
            over = await self._service.wait(
                self._principal, self._wait.handles, self._wait.mode, step, or_approval=True
            )
            if not over and (self._left_s() <= 0 or self._is_stuck()):
                return self._service.look(self._principal, self._wait.handles)

    def _is_enough(self, views: Sequence[RunView]) -> bool:
        enough = all if self._wait.mode == "all" else any
        return enough(view.status.is_over for view in views)

    def _is_stuck(self) -> bool:
        """Whether a call waits for somebody whom this client cannot ask, and whom nobody else is asking."""
        if self._asks:
            return False
        questions = questions_of(self._service.look(self._principal, self._wait.handles))
        unasked = self._claimed(questions)
        if unasked is not None:
            self._release(unasked)
        return unasked is not None

    def _left_s(self) -> float:
        timeout_s = self._wait.timeout_s
        return float("inf") if timeout_s is None else timeout_s + self._answering_s - self._waited_s()

    def _waited_s(self) -> float:
        return self._clock() - self._began

    async def _show_life(self, views: Sequence[RunView]) -> None:
        """Report progress: clients and proxies drop calls that show no life. A client of `run` learns the handle."""
        over = sum(view.status.is_over for view in views)
        said = f"{over} of {len(views)} runs are over"
        waited_s, total_s = self._waited_s(), None
        if self._wait.timeout_s is None:
            said = f"{views[0].run}: {views[0].phase}"
        else:
            total_s = max(self._wait.timeout_s + self._answering_s, waited_s)
        await self._call.context.session.report_progress(waited_s, total_s, said)

    def _with_questions(self, questions: Sequence[Question]) -> InputRequiredResult:
        return InputRequiredResult(
            input_requests={question.key: question.as_request() for question in questions},
            request_state=self._wait.state,
        )

    def _claimed(self, questions: Sequence[Question]) -> Question | None:
        """Return the first question that nobody is asking, now ours to ask."""
        claim = self._service.approvals.claim
        return next((each for each in questions if claim(self._principal, each.run, each.call)), None)

    def _release(self, question: Question) -> None:
        self._service.approvals.release(self._principal, question.run, question.call)

    async def _ask(self, question: Question) -> None:
        """Ask the client's user, until there is an answer, nobody needs one, or answering takes too long altogether."""
        elicit = asyncio.create_task(self._elicited(question), name=f"question {question.key}")
        ended = asyncio.create_task(self._no_answer_needed(question), name=f"question {question.key} needed")
        since = self._clock()
        until = since + self._settings.await_max_s - (0.0 if self._wait.timeout_s is None else self._answering_s)
        try:
            while not (elicit.done() or ended.done()) and self._clock() < until:
                step = min(self._settings.progress_every_s, until - self._clock())
                await asyncio.wait((elicit, ended), timeout=step, return_when=asyncio.FIRST_COMPLETED)
                await self._show_life(self._service.look(self._principal, self._wait.handles))
            answer = elicit.result() if elicit.done() else None
            if answer is not None and self._is_open(question):
                await decide(self._service, self._principal, question, allow=allows(answer))
            elif answer is None and not ended.done():
                # Nobody answered, or the client said that it can ask and then could not.
                self._asks = False
        finally:
            self._answering_s += self._clock() - since
            self._release(question)
            elicit.cancel()
            ended.cancel()
            await asyncio.gather(elicit, ended, return_exceptions=True)

    async def _no_answer_needed(self, question: Question) -> None:
        """Return once the question was answered otherwise, the runs are over, or the client left."""
        changes = self._service.changes(self._principal, self._wait.handles)
        gone = asyncio.create_task(self._call.gone.wait())
        try:
            while not self._call.gone.is_set():
                change = asyncio.ensure_future(anext(changes))
                await asyncio.wait((change, gone), return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
                await asyncio.gather(change, return_exceptions=True)
                views = self._service.look(self._principal, self._wait.handles)
                if not self._is_open(question) or self._is_enough(views):
                    return
        finally:
            gone.cancel()
            await changes.aclose()

    def _is_open(self, question: Question) -> bool:
        views = self._service.look(self._principal, [question.run])
        return any(each.key == question.key for each in questions_of(views))

    async def _elicited(self, question: Question) -> Mapping[str, object] | None:
        """Return what the user answered, None when the client could not ask."""
        context = self._call.context
        try:
            answer = await context.session.elicit_form(question.text, dict(FORM), context.request_id)
        except (MCPError, ValidationError) as error:
            logger.info("question_not_asked", extra={"run": question.run, "error": str(error)[:200]})
            return None
        return answer.model_dump()
