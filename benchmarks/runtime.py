"""What the runtime's journal and many runs at once cost.

    python benchmarks/runtime.py [--runs 100000] [--agents 1000] [--seconds 3] [--only journal|replay|compaction|agents]
                                 [--json FILE]

journal     records a second and their latency with 1, 8 and 64 writers, each waiting for its record to be durable.
replay      how long a start takes with so many finished runs, what they cost in memory, and `status` among them.
compaction  how long the event loop is held up at most while the journal is tidied up behind writers.
agents      so many sub-agents at once in one process: real runtime, dataplane and scheduler, a fake engine on loopback,
            tools that take one second. The time from spawn to handle, memory per run that lives, runs a second.

Every part runs in a process of its own, on a disk folder of its own.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import multiprocessing
import resource
import secrets
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import uvloop
from msgspec import structs

from luftpause.adapters.clock_system import SystemClock
from luftpause.adapters.journal_file.compaction import MAIN
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal, Upkeep
from luftpause.adapters.journal_file.lines import Piece, Record, encode
from luftpause.adapters.link.direct import DirectLink
from luftpause.adapters.turns_http.client import HttpTurns
from luftpause.assembly.doors import Access
from luftpause.assembly.parts import Plans, dataplane_part, engines_part, memory_part, scheduler_part
from luftpause.config import schema
from luftpause.core.model.ids import (
    ANONYMOUS_CALLER,
    ANONYMOUS_PRINCIPAL,
    ActiveMs,
    ModelName,
    PrincipalId,
    RunId,
    ToolCallId,
)
from luftpause.core.model.replicas import Endpoint
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.condensing import Outcome, RunCondensed, brief
from luftpause.core.runs.events import Event, RunFinished, RunSpawned, ToolCallIntended, ToolReturned, TurnTaken
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.replay import Entry
from luftpause.core.runs.state import Totals
from luftpause.core.runs.tools import ToolHints, ToolSpec
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.orders import RuntimeSettings, SpawnOrder
from luftpause.services.runtime.service import RuntimeService
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import FIGURES
from luftpause.testkit.fake_engine.settings import Settings as EngineSettings

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
RAMP_S = 5.0
"""Agents begin within this time."""


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


async def write_lives(journal: FileJournal, epoch: int, until: float, waited: list[float]) -> None:
    """One writer: lives one after another, each record by itself, as an actor does."""
    while time.perf_counter() < until:
        run = new_run()
        for seq, event in enumerate(life(run)):
            began = time.perf_counter()
            await journal.append(run, run, seq, epoch, entries(event))
            waited.append(time.perf_counter() - began)
        journal.settle(condensed(run))


async def measure_journal(folder: Path, chosen: argparse.Namespace) -> Figures:
    figures: dict[str, float] = {}
    for writers in (1, 8, 64):
        waited: list[float] = []
        async with opened(folder / str(writers), Upkeep(waste_bytes=2**40)) as (journal, epoch):
            began = time.perf_counter()
            until = began + chosen.seconds
            await asyncio.gather(*(write_lives(journal, epoch, until, waited) for _ in range(writers)))
            lasted = time.perf_counter() - began
        figures[f"records_per_s_{writers}"] = round(len(waited) / lasted)
        figures[f"append_p50_ms_{writers}"] = round(percentile(waited, 50) * 1000, 2)
        figures[f"append_p99_ms_{writers}"] = round(percentile(waited, 99) * 1000, 2)
    return figures


def write_finished(folder: Path, runs: int) -> None:
    """A main file as it is after compaction; nobody looks at the archive before somebody wants a transcript."""
    folder.mkdir()
    with (folder / MAIN).open("wb") as file:
        for number in range(runs):
            run = new_run()
            short = Record(
                seq=RECORDS,
                tree=run,
                epoch=1,
                at=ActiveMs(6700),
                utc_s=time.time() - runs + number,
                event=condensed(run),
                archive=(Piece(1, number * 8000, 8000),),
            )
            file.write(encode(short))


class NoTurns:
    """Nothing is running, so nothing is asked."""

    async def take(self, request: TurnRequest) -> TurnReply:
        """Nobody calls this."""
        raise TurnFailedError("no run is alive")

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        """Nobody calls this."""


async def measure_replay(folder: Path, chosen: argparse.Namespace) -> Figures:
    write_finished(folder / "state", chosen.runs)
    gc.collect()
    before = rss_mib()
    service = RuntimeService(FileJournal(DiskFolder(folder / "state"), SystemClock()), NoTurns(), SleepyTools(0))
    began, cpu = time.perf_counter(), time.process_time()
    await service.start()
    start_s, cpu = time.perf_counter() - began, time.process_time() - cpu
    after = rss_mib()
    some = [run.spawn.run for run in service.look_at_all(ANONYMOUS_PRINCIPAL, 20).runs]
    began = time.perf_counter()
    for _ in range(1000):
        service.look(ANONYMOUS_PRINCIPAL, some[:1])
    one_us = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    service.look_at_all(ANONYMOUS_PRINCIPAL)
    all_ms = (time.perf_counter() - began) * 1000
    await service.close()
    return {
        "runs": chosen.runs,
        "main_file_mib": round((folder / "state" / MAIN).stat().st_size / 2**20, 1),
        "start_s": round(start_s, 2),
        "start_cpu_s": round(cpu, 2),
        "kib_per_finished_run": round((after - before) * 1024 / chosen.runs, 2),
        "status_of_one_us": round(one_us, 1),
        "status_of_all_ms": round(all_ms, 1),
    }


async def measure_compaction(folder: Path, chosen: argparse.Namespace) -> Figures:
    """Eight writers among many finished runs, without compaction and with one as soon as there is anything to do."""
    write_finished(folder / "state", chosen.runs // 2)
    lags: list[float] = []

    async def look_at_the_clock(until: float) -> None:
        while time.perf_counter() < until:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - began - 0.001)

    figures: dict[str, float] = {}
    for name, upkeep in (("without", Upkeep(waste_bytes=2**40)), ("with", Upkeep(waste_share=0.0))):
        lags.clear()
        waited: list[float] = []
        async with opened(folder / "state", upkeep) as (journal, epoch):
            gc.freeze()
            until = time.perf_counter() + 2 * chosen.seconds
            writers = (write_lives(journal, epoch, until, waited) for _ in range(8))
            await asyncio.gather(look_at_the_clock(until), *writers)
        figures[f"loop_lag_p99_ms_{name}"] = round(percentile(lags, 99) * 1000, 2)
        figures[f"loop_lag_max_ms_{name}"] = round(max(lags) * 1000, 2)
        figures[f"append_p99_ms_{name}"] = round(percentile(waited, 99) * 1000, 2)
    figures["segments"] = len(list((folder / "state").glob("runs-*.jsonl")))
    return figures


class SleepyTools:
    """One tool that takes its time."""

    def __init__(self, takes_s: float) -> None:
        self._takes_s = takes_s

    async def catalogue(self, _wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        """Return it."""
        return (LOOKUP,)

    async def call(self, _tool: ToolSpec, _arguments: Mapping[str, object], _key: str) -> ToolOutcome:
        """Take it."""
        await asyncio.sleep(self._takes_s)
        return ToolOutcome(text=FOUND)


@contextlib.asynccontextmanager
async def whole_runtime(folder: Path, agents: int) -> AsyncIterator[RuntimeService]:
    """Fake engine, scheduler, dataplane and runtime in this process."""
    engine = EngineSettings(tool_rounds=2, reply_tokens=8, figures=structs.replace(FIGURES, max_running=agents))
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        url = await enter(fake_engine(engine))
        replica = schema.Replica(name="fake", url=url, models=[MODEL], engine="vllm")
        dataplane = schema.Dataplane(port=0)
        runtime = schema.Runtime(state_dir=str(folder / "scheduler"))
        plans = Plans(config=schema.Config(replicas=[replica], dataplane=dataplane, runtime=runtime), access=Access())
        engines = await enter(engines_part(plans))
        memory = await enter(memory_part(plans))
        scheduler = await enter(scheduler_part(plans, engines, memory))
        door = await enter(dataplane_part(plans, DirectLink(scheduler), engines))
        service = RuntimeService(
            FileJournal(DiskFolder(folder), SystemClock()),
            HttpTurns(engines, Endpoint(url=door.url), {}),
            SleepyTools(1.0),
            settings=RuntimeSettings(default_model=MODEL, max_running=agents),
        )
        await service.start()
        try:
            yield service
        finally:
            await service.close()


async def measure_agents(folder: Path, chosen: argparse.Namespace) -> Figures:
    async with whole_runtime(folder / "state", chosen.agents) as service:
        gc.collect()
        before, peak = rss_mib(), 0.0
        spawns: list[float] = []

        async def one_run(number: int) -> float:
            began = time.perf_counter()
            order = SpawnOrder(
                task=f"{number}: {TASK}", principal=ANONYMOUS_PRINCIPAL, caller=ANONYMOUS_CALLER, max_tokens=64
            )
            run = await service.spawn(order)
            took = time.perf_counter() - began
            await service.wait(ANONYMOUS_PRINCIPAL, [run], "all", 600)
            (seen,) = service.look(ANONYMOUS_PRINCIPAL, [run])
            assert seen.result is not None, seen.error
            assert seen.own.tool_calls >= 2, "the fake engine must ask for tools"
            return took

        async def one_agent(number: int) -> None:
            await asyncio.sleep(RAMP_S * number / chosen.agents)
            await one_run(number)
            spawns.append(await one_run(number))  # among all the others, who have come by now

        async def watch() -> None:
            nonlocal peak
            while True:
                peak = max(peak, rss_mib())
                await asyncio.sleep(0.1)

        watching = asyncio.create_task(watch())
        began = time.perf_counter()
        await asyncio.gather(*map(one_agent, range(chosen.agents)))
        lasted = time.perf_counter() - began
        watching.cancel()
    return {
        "agents": chosen.agents,
        "all_done_s": round(lasted, 2),
        "runs_per_s": round(2 * chosen.agents / lasted, 1),
        "spawn_p50_ms": round(percentile(spawns, 50) * 1000, 1),
        "spawn_p99_ms": round(percentile(spawns, 99) * 1000, 1),
        "kib_per_live_run": round((peak - before) * 1024 / chosen.agents, 1),
        "records_per_s": round(2 * chosen.agents * RECORDS / lasted),
    }


Part = Callable[[Path, argparse.Namespace], Coroutine[object, object, Figures]]
PARTS: Mapping[str, Part] = {
    "journal": measure_journal,
    "replay": measure_replay,
    "compaction": measure_compaction,
    "agents": measure_agents,
}


def measure(name: str, chosen: argparse.Namespace) -> Figures:
    folder = Path(tempfile.mkdtemp(prefix="luftpause-bench-", dir=chosen.folder))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(PARTS[name](folder, chosen))
    finally:
        shutil.rmtree(folder)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=100_000, help="finished runs in the journal")
    options.add_argument("--agents", type=int, default=1000, help="sub-agents at once")
    options.add_argument("--seconds", type=float, default=3.0, help="how long each number of writers writes")
    options.add_argument("--only", choices=list(PARTS), help="measure this part alone")
    options.add_argument("--folder", type=Path, help="where the state directories go; a real disk, not memory")
    options.add_argument("--json", type=Path, help="also write the figures here")
    chosen = options.parse_args()
    found: dict[str, Figures] = {}
    for name in [chosen.only] if chosen.only else PARTS:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            found[name] = alone.apply(measure, (name, chosen))
        print(name)
        for figure, value in found[name].items():
            print(f"  {figure}: {value:,}")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
