"""A journal in a folder, a clock that stands still, and events to put in."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from luftpause.adapters.journal_file.disk import DiskFolder, Folder
from luftpause.adapters.journal_file.journal import FileJournal, Upkeep
from luftpause.core.model.ids import ActiveMs, CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.condensing import Outcome, RunCondensed, brief
from luftpause.core.runs.events import (
    AnswerRejected,
    ApprovalAsked,
    ApprovalDecided,
    ApprovalScope,
    Event,
    Exceeded,
    LandingBegun,
    Limits,
    MessageSent,
    Origin,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunRecovered,
    RunsAwaited,
    RunSpawned,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnFailed,
    TurnTaken,
)
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.replay import Entry, History
from luftpause.core.runs.state import Totals
from luftpause.core.runs.tools import ToolHints, ToolSpec
from luftpause.ports.journal import Loaded

R, Q = RunId("run_r"), RunId("run_q")
CALL = ToolCallId("call_1")
LOOK = ToolSpec(
    name="look",
    server="s",
    tool="look",
    description="Looks",
    schema={"type": "object", "properties": {"at": {"type": "string", "maxLength": 9}}},
    hints=ToolHints(read_only=True),
)
T = TypeVar("T")


UTC_S = 1_795_000_000.25
AT = ActiveMs(1500)


class StoppedClock:
    """Stands still unless somebody moves it."""

    def __init__(self) -> None:
        self.now = UTC_S

    def utc(self) -> float:
        return self.now


def in_time(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(bounded())


def spawned(run: RunId = R, *, parent: RunId | None = None) -> RunSpawned:
    return RunSpawned(
        run=run,
        task="weigh the “moon”\n",
        model=ModelName("m"),
        service_class=ServiceClass.BATCH,
        caller=CallerId("c"),
        principal=PrincipalId("p"),
        system="be brief",
        tools=(LOOK,),
        max_tool_calls=3,
        max_tokens=0,
        parallel_tool_calls=True,
        parent=parent,
        budget=Limits(tokens=100, seconds=60),
        approve_tools=("look",),
        after=(RunId("run_before"),),
        output_schema={"type": "string"},
        idempotency_key="mine",
        arguments_digest="d1",
        origin=Origin(tool_call=ToolCallId("toolu_1"), thread="t"),
        traceparent="00-1-1-00",
        fallback_models=(ModelName("n"),),
    )


def turn(run: RunId = R) -> TurnTaken:
    calls = (ToolCall(call=CALL, tool="look", arguments='{"at": "moon"}'),)
    usage = Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=2)
    return TurnTaken(run=run, message=AssistantMessage(text="", tool_calls=calls), finish="tool_calls", usage=usage)


def finished(run: RunId = R) -> RunFinished:
    return RunFinished(run=run, result="heavy")


def condensed(run: RunId = R, *, parent: RunId | None = None) -> RunCondensed:
    return RunCondensed(
        run=run,
        spawn=brief(spawned(run, parent=parent)),
        own=Totals(turns=1, tool_calls=1, prompt_tokens=7, completion_tokens=3),
        outcome=Outcome.FINISHED,
        text="heavy",
        began=ActiveMs(2),
        ended=AT,
        structured={"kg": [7]},
        grants=frozenset({"s__look", "s__see"}),
    )


EVERY_EVENT: tuple[Event, ...] = (
    spawned(),
    RunsAwaited(run=R, text="before: done"),
    TurnFailed(run=R, error="no such model"),
    turn(),
    ToolCallIntended(run=R, call=CALL, repeatable=False),
    ToolCallRejected(run=R, call=CALL, text="no"),
    ApprovalAsked(run=R, call=CALL, tool="s__look", reason="it destroys", repeatable=False),
    ApprovalDecided(run=R, call=CALL, allow=True, by="me", scope=ApprovalScope.TREE),
    ToolReturned(run=R, call=CALL, text="x", failed=True, outcome_unknown=True, took_ms=9),
    LandingBegun(run=R),
    AnswerRejected(run=R, complaint="no number"),
    MessageSent(run=R, text="more"),
    RunRecovered(run=R),
    finished(),
    RunFailed(run=R, error="gone"),
    RunCancelled(run=R, why="test", exceeded=Exceeded(run=R, which="tokens", used=9, limit=8)),
)


def entries(*events: Event) -> tuple[Entry, ...]:
    return tuple(Entry(event, AT) for event in events)


def events_of(history: History) -> tuple[Event, ...]:
    return tuple(entry.event for entry in history.entries)


async def with_journal(
    folder: Path | Folder, use: Callable[[FileJournal, Loaded], Awaitable[T]], upkeep: Upkeep | None = None
) -> T:
    journal = FileJournal(DiskFolder(folder) if isinstance(folder, Path) else folder, StoppedClock(), upkeep)
    loaded = await journal.load()
    try:
        return await use(journal, loaded)
    finally:
        await journal.close()


def write(folder: Path, *events: Event) -> Path:
    """Append each event by itself, and return the file."""

    async def each(journal: FileJournal, loaded: Loaded) -> None:
        last = dict(loaded.last_seq)
        for event in events:
            known = last.get(event.run, 0)
            last[event.run] = await journal.append(event.run, event.run, known, loaded.epoch, entries(event))

    in_time(with_journal(folder, each))
    return folder / "runs.jsonl"


def read(folder: Path | Folder) -> Loaded:
    async def give(_journal: FileJournal, loaded: Loaded) -> Loaded:
        return loaded

    return in_time(with_journal(folder, give))
