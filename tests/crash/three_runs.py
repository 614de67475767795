"""A tree of three runs, the client that wants it, and the world outside that a crash of the runtime does not touch.

`plan` has a budget that all three share and two children: `look` uses every kind of tool, and `pay` begins when `look`
is over, with a tool call that a person must allow. Once all are over the client sends `plan` a further message.
"""

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from luftpause.adapters.journal_file.disk import Folder
from luftpause.adapters.journal_file.journal import FileJournal, Upkeep
from luftpause.core.model.ids import ANONYMOUS_CALLER, ANONYMOUS_PRINCIPAL, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import Usage
from luftpause.core.runs.events import Limits
from luftpause.core.runs.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from luftpause.core.runs.tools import ToolHints, ToolSpec
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.orders import SpawnOrder
from luftpause.services.runtime.service import RuntimeService

ME = ANONYMOUS_PRINCIPAL
SMALL = Upkeep(waste_bytes=2000, waste_share=0.1)
MORE = "and now?"
ORDER = SpawnOrder(task="", principal=ME, caller=ANONYMOUS_CALLER, model=ModelName("scripted"))
ROUNDS: Mapping[str, Sequence[Sequence[str]]] = {
    "plan": [("look",)],
    "look": [("look", "put", "pay"), ("pay",)],
    "pay": [("pay",), ("look",)],
}
"""The tools that each run's model asks for, reply by reply."""

UNINTERRUPTED: Mapping[str, str] = {
    "plan": "plan: nothing new",
    "look": "look: look done / put done / pay done / pay done",
    "pay": "pay: pay done / look done",
}
"""What comes of it when nothing happens."""

HINTS = {
    "look": ToolHints(read_only=True),
    "put": ToolHints(destructive=False, idempotent=True),
    "pay": ToolHints(destructive=False),
}


@dataclass
class Outside:
    """What the runtime's end does not undo.

    Attributes:
        effects: what tools did, with the key of each call, in order.
        handles: of the spawns that were answered, by task.
        allowed: calls whose approval was answered.
        sent: whether the further message was.
    """

    effects: list[tuple[str, str]] = field(default_factory=list)
    handles: dict[str, RunId] = field(default_factory=dict)
    allowed: set[tuple[RunId, ToolCallId]] = field(default_factory=set)
    sent: bool = False

    def copy(self) -> "Outside":
        return copy.deepcopy(self)

    def acted(self, tool: str, key: str) -> None:
        self.effects.append((tool, key))

    def answered(self, task: str, run: RunId) -> None:
        self.handles.setdefault(task, run)

    def was_allowed(self, run: RunId, call: ToolCallId) -> None:
        self.allowed.add((run, call))

    def was_sent(self) -> None:
        self.sent = True


@dataclass
class SlowTools:
    """Each call takes two pauses and acts between them."""

    pause_s: float
    outside: Outside = field(default_factory=Outside)

    async def catalogue(self, _wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        return [
            ToolSpec(name=name, server="s", tool=name, description=name, schema={"type": "object"}, hints=hints)
            for name, hints in HINTS.items()
        ]

    async def call(
        self, tool: ToolSpec, arguments: Mapping[str, object], key: str, traceparent: str = ""
    ) -> ToolOutcome:
        await asyncio.sleep(self.pause_s)
        self.outside.acted(tool.name, key)
        await asyncio.sleep(self.pause_s)
        return ToolOutcome(text=f"{tool.name} done")


@dataclass
class ScriptedTurns:
    """The model: asks for what ROUNDS says and then repeats what it was told since the last user message."""

    pause_s: float

    async def take(self, request: TurnRequest) -> TurnReply:
        await asyncio.sleep(self.pause_s)
        users = [place for place, said in enumerate(request.messages) if isinstance(said, UserMessage)]
        task = request.messages[users[0]]
        assert isinstance(task, UserMessage)
        replies = sum(isinstance(said, AssistantMessage) for said in request.messages)
        rounds = ROUNDS[task.text]
        asked = rounds[replies] if replies < len(rounds) else ()
        calls = tuple(
            ToolCall(call=ToolCallId(f"{task.text}{replies}{place}"), tool=name, arguments="{}")
            for place, name in enumerate(asked)
        )
        heard = [said.text for said in request.messages[users[-1] :] if isinstance(said, ToolMessage)]
        text = "" if asked else f"{task.text}: {' / '.join(heard) or 'nothing new'}"
        return TurnReply(
            message=AssistantMessage(text=text, tool_calls=calls), usage=Usage(prompt_tokens=10, completion_tokens=5)
        )

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        return


class StoppedClock:
    def utc(self) -> float:
        return 1_795_000_000.0


class Client:
    """Wants the tree, and after a crash asks again for whatever was not answered."""

    def __init__(self, service: RuntimeService, outside: Outside) -> None:
        self._service = service
        self._outside = outside

    async def want(self) -> dict[str, RunView]:
        budget = Limits(tokens=1000, tool_calls=20, seconds=600)
        plan = await self._spawn(replace(ORDER, task="plan", budget=budget))
        below = replace(ORDER, parent=plan)
        look = await self._spawn(replace(below, task="look", parallel_tool_calls=True))
        pay = await self._spawn(replace(below, task="pay", after=(look,), approve_tools=("pay",)))
        await self._until_over([plan, look, pay])
        await self._send_more(plan)
        await self._until_over([plan])
        return dict(zip(("plan", "look", "pay"), self._service.look(ME, [plan, look, pay]), strict=True))

    async def _spawn(self, order: SpawnOrder) -> RunId:
        run = await self._service.spawn(replace(order, idempotency_key=f"the {order.task}"))
        assert self._outside.handles.get(order.task, run) == run, "an answered spawn was forgotten or made again"
        self._outside.answered(order.task, run)
        return run

    async def _until_over(self, runs: Sequence[RunId]) -> None:
        while not await self._service.wait(ME, runs, "all", 60, or_approval=True):
            for run in self._service.look(ME, runs):
                assert run.status is not RunStatus.FAILED, run.error
                for pending in run.pending_approvals:
                    call = (run.run, pending.call)
                    assert call not in self._outside.allowed, "what was answered is asked again"
                    if await self._service.approvals.approve(ME, run.run, pending.call, allow=True, by="me"):
                        self._outside.was_allowed(*call)

    async def _send_more(self, plan: RunId) -> None:
        said = await self._service.transcript(ME, plan, 0, 1000)
        arrived = sum(isinstance(each, UserMessage) and each.text == MORE for each in said.messages)
        assert arrived <= 1
        if self._outside.sent:
            assert arrived == 1, "an answered message was forgotten"
        elif not arrived:
            await self._service.send(ME, plan, MORE)
        if not self._outside.sent:
            self._outside.was_sent()


def check_answers(result: str | None, usual: str) -> int:
    """See whether a run answered as usual but for calls of `pay` that broke off, and return how many did."""
    assert result is not None
    told, expected = result.split(" / "), usual.split(" / ")
    assert len(told) == len(expected)
    lost = 0
    for answer, usually in zip(told, expected, strict=True):
        unknown = usually.endswith("pay done") and "Whether it took effect is unknown" in answer
        assert answer == usually or unknown
        lost += unknown
    return lost


async def live_once(folder: Folder, outside: Outside, pause_s: float = 1.0) -> dict[str, RunView]:
    """One life of the runtime and of its client, from where the last one left off, up to the end of all three runs."""
    service = RuntimeService(
        FileJournal(folder, StoppedClock(), SMALL),
        ScriptedTurns(pause_s / 4),
        SlowTools(pause_s, outside),
    )
    await service.start()
    seen = await Client(service, outside).want()
    await service.close()
    return seen
