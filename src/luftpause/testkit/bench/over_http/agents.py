"""Agents that play a scenario's runs at doors over HTTP, and note what happens as the simulator notes it.

Time runs `speed` times as fast: what is planned to take a second takes less here, and what is measured is told in
planned seconds. The engines must be sped up alike.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from luftpause.core.model.replicas import Endpoint
from luftpause.core.model.turns import ServiceClass
from luftpause.ports.engines import Engines, Header
from luftpause.testkit.bench.over_http.conversation import Conversation
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.load.runs import RunFailedError
from luftpause.testkit.load.turns import Answer, Door, take_turn
from luftpause.testkit.sim.fairness import service_of
from luftpause.testkit.sim.past import AnsweredTurn, Begun, EndedRun, Past
from luftpause.testkit.sim.plans import RunPlan, alone_s
from luftpause.testkit.sim.scenario import Faults
from luftpause.testkit.sim.sources import Drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and how runs are played.

    Attributes:
        doors: base URLs, asked in turn.
        model: what is asked for.
        real: the engine behind them is no fake.
        speed: so many planned seconds pass in one.
        engine: figures, for what a run would take alone.
        faults: how agents go on after a failure.
        turn_timeout_s: the longest a turn may take, real seconds.
    """

    doors: Sequence[str]
    model: str
    real: bool
    speed: float
    engine: EngineFigures
    faults: Faults
    turn_timeout_s: float = 300.0


@dataclass(slots=True)
class _Course:
    """A run under way."""

    plan: RunPlan
    stream: int
    begun_at: float
    parent: "_Course | None"
    turn_s: list[float]
    known_tokens: int = 0
    reprefilled: int = 0
    service: float = 0.0
    turns: int = 0


class Agents:
    """Plays runs from a source for a while; `past` is what came of it."""

    def __init__(self, place: Place, source: Drawn, engines: Engines) -> None:
        self._place = place
        self._source = source
        self._doors = cycle([Door(engines, Endpoint(url=url), place.turn_timeout_s) for url in place.doors])
        self._began = 0.0
        self._under_way: dict[int, _Course] = {}
        self._ended: list[EndedRun] = []
        self._answered: list[AnsweredTurn] = []
        self._failed_turns = 0

    @property
    def now(self) -> float:
        """Planned seconds since the beginning."""
        return (asyncio.get_running_loop().time() - self._began) * self._place.speed

    async def play(self, until: float) -> Past:
        """Play until then, planned seconds, and return what happened. What is under way is dropped."""
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        limit = asyncio.timeout(until / self._place.speed)
        try:
            async with limit, asyncio.TaskGroup() as group:
                for at, stream in self._source.starts():
                    group.create_task(self._stream(group, at, stream))
                await asyncio.Event().wait()
        except TimeoutError:
            assert limit.expired(), "one from inside a run comes wrapped in a group"
        roots = [course for course in self._under_way.values() if course.parent is None]
        return Past(
            ended=self._ended,
            answered=self._answered,
            under_way=[Begun(stream=course.stream, begun_at=course.begun_at) for course in roots],
            unfinished=len(self._under_way),
            failed_turns=self._failed_turns,
        )

    async def _stream(self, group: asyncio.TaskGroup, at: float, stream: int) -> None:
        """Begin a run then, and those that follow it."""
        await self._sleep(at)
        following = self._source.next_at(stream, at)
        if following is not None:
            group.create_task(self._stream(group, following - at, stream))
        plan: RunPlan | None = self._source.begin(stream)
        while plan is not None:
            await self._run(group, plan, stream, None)
            plan = self._source.follow(stream)

    async def _run(self, group: asyncio.TaskGroup, plan: RunPlan, stream: int, parent: _Course | None) -> None:
        course = _Course(plan, stream, self.now, parent, [])
        self._under_way[id(course)] = course
        conversation = Conversation(plan, self._place.model, real=self._place.real)
        is_whole = True
        for number, leg in enumerate(plan.legs):
            is_whole = await self._turn(course, conversation, number)
            if not is_whole:
                break
            if leg.children:
                await self._children(group, course, leg.children, leg.enough)
            elif leg.away_s is not None:
                await self._sleep(leg.away_s)
        del self._under_way[id(course)]
        self._ended.append(self._noted(course, failed=not is_whole))

    async def _children(
        self, group: asyncio.TaskGroup, parent: _Course, children: Sequence[RunPlan], enough: int
    ) -> None:
        left, ended = enough, asyncio.Event()

        async def one(plan: RunPlan) -> None:
            nonlocal left
            await self._run(group, plan, parent.stream, parent)
            left -= 1
            if left <= 0:
                ended.set()

        for child in children:
            group.create_task(one(child))
        await ended.wait()

    async def _turn(self, course: _Course, conversation: Conversation, number: int) -> bool:
        """Take a turn, again after a failure; say whether it was answered."""
        offered_at = self.now
        body = conversation.body(number)
        for attempt in range(1, self._place.faults.attempts + 1):
            course.turns += 1
            try:
                answer = await take_turn(next(self._doors), headers_of(course.plan), body)
            except RunFailedError:
                self._failed_turns += 1
                if attempt < self._place.faults.attempts:
                    await self._sleep(self._place.faults.retry_s)
                continue
            course.turn_s.append(self.now - offered_at)
            self._note(course, answer)
            conversation.take(answer)
            return True
        return False

    def _note(self, course: _Course, answer: Answer) -> None:
        seen = answer.seen()
        known = min(course.known_tokens, seen.prompt_tokens)
        turn = AnsweredTurn(
            ended_at=self.now,
            principal=course.plan.principal,
            caller=course.plan.caller,
            prompt_tokens=seen.prompt_tokens,
            cached_tokens=seen.cached_tokens,
            reply_tokens=seen.completion_tokens,
            known_tokens=known,
        )
        course.reprefilled += max(0, known - seen.cached_tokens)
        course.known_tokens = seen.prompt_tokens
        course.service += service_of(turn)
        self._answered.append(turn)

    def _noted(self, course: _Course, *, failed: bool) -> EndedRun:
        plan = course.plan
        return EndedRun(
            run=plan.run,
            service_class=plan.service_class,
            stream=course.stream,
            parent=plan.parent,
            principal=plan.principal,
            caller=plan.caller,
            alone_s=alone_s(plan, self._place.engine),
            service=course.service,
            begun_at=course.begun_at,
            ended_at=self.now,
            turns=course.turns,
            turn_s=tuple(course.turn_s),
            reprefilled_tokens=course.reprefilled,
            moves=0,
            failed=failed,
        )

    async def _sleep(self, planned_s: float) -> None:
        await asyncio.sleep(planned_s / self._place.speed)


def headers_of(plan: RunPlan) -> list[Header]:
    """Return what tells a run to every arm: to ours, and in the words of each router to that one."""
    run = plan.run.encode()
    interactive = plan.service_class is ServiceClass.INTERACTIVE
    headers = [
        (b"x-luftpause-run-id", run),
        (b"x-luftpause-class", plan.service_class.value.encode()),
        (b"x-luftpause-caller", plan.caller.encode()),
        (b"x-smg-routing-key", run),
        (b"x-session-id", run),
        (b"x-smg-priority", b"interactive" if interactive else b"bulk"),
    ]
    return headers if plan.parent is None else [*headers, (b"x-luftpause-parent", plan.parent.encode())]
