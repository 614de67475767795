"""Lives of runs as the journal sees them, and what the parts of this benchmark measure with."""

import contextlib
import resource
import secrets
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from luftpause.adapters.clock_system import SystemClock
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal, Upkeep
from luftpause.core.model.ids import (
    ANONYMOUS_CALLER,
    ANONYMOUS_PRINCIPAL,
    ActiveMs,
    ModelName,
    RunId,
    ToolCallId,
)
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.condensing import Outcome, RunCondensed, brief
from luftpause.core.runs.events import Event, RunFinished, RunSpawned, ToolCallIntended, ToolReturned, TurnTaken
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.replay import Entry
from luftpause.core.runs.state import Totals
from luftpause.core.runs.tools import ToolHints, ToolSpec

Figures = Mapping[str, float]
MODEL = ModelName("fake-1b")
TASK = "Find out what the weather in Lisbon will be like tomorrow and whether the ferry runs, then say so in one line. "
FOUND = "Two sources agree and a third was not asked; the number most often given is seven. " * 6
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
LOOKUP = ToolSpec(
    name="lookup",
    server="fake",
    tool="lookup",
    description="Look something up, quickly: one short finding. " * 3,
    schema=SCHEMA,
    hints=ToolHints(read_only=True),
)
RECORDS = 12


def life(run: RunId) -> Sequence[Event]:
    """A run of three turns and four calls, in twelve records: the events that the journal of a usual one holds."""
    events: list[Event] = [
        RunSpawned(
            run=run,
            task=TASK * 2,
            model=MODEL,
            service_class=ServiceClass.INTERACTIVE,
            caller=ANONYMOUS_CALLER,
            principal=ANONYMOUS_PRINCIPAL,
            tools=(LOOKUP,) * 4,
        )
    ]
    for turn in range(2):
        calls = [ToolCallId(f"call_{turn}{place}_{run[-8:]}") for place in range(2)]
        asked = tuple(ToolCall(call=call, tool="lookup", arguments='{"query": "ferry to Lisbon"}') for call in calls)
        usage = Usage(prompt_tokens=900, completion_tokens=70)
        events.append(TurnTaken(run=run, message=AssistantMessage(text="", tool_calls=asked), usage=usage, took_ms=900))
        for call in calls:
            events.append(ToolCallIntended(run=run, call=call, repeatable=True))
            events.append(ToolReturned(run=run, call=call, text=FOUND, took_ms=1000))
    events.append(TurnTaken(run=run, message=AssistantMessage(text=FOUND), took_ms=900))
    events.append(RunFinished(run=run, result=FOUND))
    return events


def condensed(run: RunId) -> RunCondensed:
    spawn = life(run)[0]
    assert isinstance(spawn, RunSpawned)
    own = Totals(turns=3, tool_calls=4, prompt_tokens=2700, completion_tokens=210, turn_ms=2700, tool_ms=4000)
    return RunCondensed(
        run=run,
        spawn=brief(spawn),
        own=own,
        outcome=Outcome.FINISHED,
        text=FOUND,
        began=ActiveMs(0),
        ended=ActiveMs(6700),
    )


def new_run() -> RunId:
    return RunId(f"run_{secrets.token_urlsafe(16)}")


def entries(*events: Event) -> list[Entry]:
    return [Entry(event, ActiveMs(0)) for event in events]


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def rss_mib() -> float:
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


@contextlib.asynccontextmanager
async def opened(folder: Path, upkeep: Upkeep | None = None) -> AsyncIterator[tuple[FileJournal, int]]:
    journal = FileJournal(DiskFolder(folder), SystemClock(), upkeep)
    loaded = await journal.load()
    try:
        yield journal, loaded.epoch
    finally:
        await journal.close()
