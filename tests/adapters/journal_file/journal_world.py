"""A journal in a folder, a clock that stands still, and events to put in."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.events import (
    Event,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunRecovered,
    RunSpawned,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnTaken,
)
from luftpause.core.runs.messages import AssistantMessage, ToolCall
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


class StoppedClock:
    def utc(self) -> float:
        return 1_795_000_000.25


def in_time(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(bounded())


def spawned(run: RunId = R) -> RunSpawned:
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
        parent=RunId("run_parent"),
    )


def turn(run: RunId = R) -> TurnTaken:
    calls = (ToolCall(call=CALL, tool="look", arguments='{"at": "moon"}'),)
    usage = Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=2)
    return TurnTaken(run=run, message=AssistantMessage(text="", tool_calls=calls), finish="tool_calls", usage=usage)


def finished(run: RunId = R) -> RunFinished:
    return RunFinished(run=run, result="heavy")


EVERY_EVENT: tuple[Event, ...] = (
    spawned(),
    turn(),
    ToolCallIntended(run=R, call=CALL, repeatable=False),
    ToolCallRejected(run=R, call=CALL, text="no"),
    ToolReturned(run=R, call=CALL, text="x", failed=True, outcome_unknown=True, took_ms=9),
    RunRecovered(run=R),
    finished(),
    RunFailed(run=R, error="gone"),
    RunCancelled(run=R, why="test"),
)


async def with_journal(folder: Path, use: Callable[[FileJournal, Loaded], Awaitable[T]]) -> T:
    journal = FileJournal(folder, StoppedClock())
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
            last[event.run] = await journal.append(event.run, event.run, known, loaded.epoch, [event])

    in_time(with_journal(folder, each))
    return folder / "runs.jsonl"


def read(folder: Path) -> Loaded:
    async def give(_journal: FileJournal, loaded: Loaded) -> Loaded:
        return loaded

    return in_time(with_journal(folder, give))
