"""Fakes of the runtime's ports: a model that follows a script, tools that are functions, a journal in memory."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import Usage
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.messages import AssistantMessage, ToolCall, ToolMessage
from luftpause.core.runs.replay import Entry, History
from luftpause.core.runs.tools import ToolHints, ToolSpec
from luftpause.ports.journal import JournalFailedError, Loaded, StaleAppendError
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.tracing import Tracer
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.orders import RuntimeSettings, SpawnOrder
from luftpause.services.runtime.service import RuntimeService

T = TypeVar("T")
Say = Callable[[TurnRequest], Awaitable[TurnReply]]
AT: Mapping[str, object] = {
    "type": "object",
    "properties": {"at": {"type": "string"}},
    "required": ["at"],
    "additionalProperties": False,
}


def in_time(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(40):
            return await work

    return asyncio.run(bounded())


def text(said: str) -> TurnReply:
    return TurnReply(
        message=AssistantMessage(text=said), finish="stop", usage=Usage(prompt_tokens=9, completion_tokens=2)
    )


def calls(*asked: tuple[str, str]) -> TurnReply:
    made = tuple(
        ToolCall(call=ToolCallId(f"c{place}"), tool=name, arguments=arguments)
        for place, (name, arguments) in enumerate(asked)
    )
    return TurnReply(message=AssistantMessage(text="", tool_calls=made), finish="tool_calls")


def answers_of(request: TurnRequest) -> list[str]:
    """What the model has been told by tools so far."""
    return [message.text for message in request.messages if isinstance(message, ToolMessage)]


async def look_once(request: TurnRequest) -> TurnReply:
    """A model that asks `look` once and repeats what it heard."""
    heard = answers_of(request)
    return text(f"I heard: {heard[0]}") if heard else calls(("look", '{"at": "moon"}'))


@dataclass
class FakeTurns:
    say: Say = look_once
    asked: list[TurnRequest] = field(default_factory=list)
    ended: list[RunId] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: TurnRequest) -> TurnReply:
        self.asked.append(request)
        self.reached.set()
        return await self.say(request)

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        self.ended.append(run)


async def hold(_request: TurnRequest) -> TurnReply:
    """A model that never answers."""
    await asyncio.Event().wait()
    raise TurnFailedError("unreachable")


def tool_spec(
    name: str, *, read_only: bool = True, destructive: bool = False, schema: Mapping[str, object] = AT
) -> ToolSpec:
    return ToolSpec(
        name=name,
        server="fake",
        tool=name,
        description=f"{name}s",
        schema=schema,
        # Most servers are silent about destroying.
        hints=ToolHints(read_only=read_only and not destructive, says_destructive=destructive),
    )


async def look(arguments: Mapping[str, object]) -> ToolOutcome:
    return ToolOutcome(text=f"{arguments['at']} is there")


@dataclass
class FakeTools:
    tools: dict[str, Callable[[Mapping[str, object]], Awaitable[ToolOutcome]]] = field(
        default_factory=lambda: {"look": look}
    )
    unsafe: frozenset[str] = frozenset()
    destructive: frozenset[str] = frozenset()
    made: list[tuple[str, str]] = field(default_factory=list)
    asked: list[Sequence[str] | None] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    fails: str = ""

    async def catalogue(self, wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        self.asked.append(wanted)
        return [
            tool_spec(name, read_only=name not in self.unsafe, destructive=name in self.destructive)
            for name in sorted(self.tools)
        ]

    async def call(
        self, tool: ToolSpec, arguments: Mapping[str, object], key: str, traceparent: str = ""
    ) -> ToolOutcome:
        self.made.append((tool.name, key))
        self.traces.append(traceparent)
        if self.fails:
            return ToolOutcome(text=self.fails, failed=True)
        return await self.tools[tool.name](arguments)


@dataclass
class MemoryJournal:
    """Keeps events in memory; hand the same `kept` to another one to restart."""

    kept: dict[RunId, list[Entry]] = field(default_factory=dict)
    epoch: int = 0
    broken: bool = False
    closed: bool = False
    read_back: list[RunId] = field(default_factory=list)
    settled: dict[RunId, RunCondensed] = field(default_factory=dict)
    utc_s: dict[RunId, float] = field(default_factory=dict)
    now_s: float = field(default_factory=time.time)
    to_forget: tuple[RunId, ...] = ()
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    knocked: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def load(self) -> Loaded:
        self.epoch += 1
        return Loaded(
            epoch=self.epoch,
            histories=tuple(History(run=run, entries=tuple(events)) for run, events in self.kept.items()),
            last_seq={run: len(events) for run, events in self.kept.items()},
        )

    async def append(self, tree: RunId, run: RunId, expected_seq: int, epoch: int, entries: Sequence[Entry]) -> int:
        self.knocked.set()
        await self.gate.wait()
        await asyncio.sleep(0)
        if self.broken:
            raise JournalFailedError("the disk is full")
        events = self.kept.setdefault(run, [])
        if expected_seq != len(events) or epoch != self.epoch:
            raise StaleAppendError(f"{run}: {expected_seq} is not {len(events)}")
        events.extend(entries)
        self.utc_s[run] = self.now_s
        return len(events)

    def settle(self, kept: RunCondensed) -> Sequence[RunId]:
        self.settled[kept.run] = kept
        gone, self.to_forget = self.to_forget, ()
        return gone

    def written_utc(self, run: RunId) -> float:
        return self.utc_s.get(run, 0.0)

    async def history(self, run: RunId) -> History:
        self.read_back.append(run)
        await asyncio.sleep(0)
        return History(run=run, entries=tuple(self.kept.get(run, ())))

    async def close(self) -> None:
        self.closed = True


@dataclass
class World:
    service: RuntimeService
    turns: FakeTurns
    tools: FakeTools
    journal: MemoryJournal


@asynccontextmanager
async def runtime(
    say: Say = look_once,
    *,
    tools: FakeTools | None = None,
    journal: MemoryJournal | None = None,
    settings: RuntimeSettings | None = None,
    models: Sequence[str] = ("served-model",),
    tracer: Tracer | None = None,
) -> AsyncIterator[World]:
    async def served() -> Sequence[ModelName]:
        return [ModelName(model) for model in models]

    turns, tools, journal = FakeTurns(say), tools or FakeTools(), journal or MemoryJournal()
    service = RuntimeService(journal, turns, tools, settings=settings, models=served, tracer=tracer)
    await service.start()
    try:
        yield World(service, turns, tools, journal)
    finally:
        await service.close()


def order(task: object = "find the moon", **changes: object) -> SpawnOrder:
    values: dict[str, object] = {"principal": ANONYMOUS_PRINCIPAL, "caller": CallerId("c"), "task": task, **changes}
    return SpawnOrder(**values)  # type: ignore[arg-type]
