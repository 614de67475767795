"""The journal and a start: records a second, replay among finished runs, and what tidying up holds up."""

import asyncio
import gc
import time
from pathlib import Path

from benchmarks.runtimebench.lives import (
    RECORDS,
    Figures,
    condensed,
    entries,
    life,
    new_run,
    opened,
    percentile,
    rss_mib,
)
from benchmarks.runtimebench.quiet import Effort, NoTurns, SleepyTools, status_ms

from luftpause.adapters.clock_system import SystemClock
from luftpause.adapters.journal_file.compaction import MAIN
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal, Upkeep
from luftpause.adapters.journal_file.lines import Piece, Record, encode
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, ActiveMs
from luftpause.services.runtime.service import RuntimeService


async def write_lives(journal: FileJournal, epoch: int, until: float, waited: list[float]) -> None:
    """One writer: lives one after another, each record by itself, as an actor does."""
    while time.perf_counter() < until:
        run = new_run()
        for seq, event in enumerate(life(run)):
            began = time.perf_counter()
            await journal.append(run, run, seq, epoch, entries(event))
            waited.append(time.perf_counter() - began)
        journal.settle(condensed(run))


async def measure_journal(folder: Path, chosen: Effort) -> Figures:
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


async def measure_replay(folder: Path, chosen: Effort) -> Figures:
    write_finished(folder / "state", chosen.runs)
    gc.collect()
    before = rss_mib()
    service = RuntimeService(FileJournal(DiskFolder(folder / "state"), SystemClock()), NoTurns(), SleepyTools())
    began, cpu = time.perf_counter(), time.process_time()
    await service.start()
    start_s, cpu = time.perf_counter() - began, time.process_time() - cpu
    after = rss_mib()
    some = [run.spawn.run for run in service.glance(ANONYMOUS_PRINCIPAL, 20).views()]
    began = time.perf_counter()
    for _ in range(1000):
        service.look(ANONYMOUS_PRINCIPAL, some[:1])
    one_us = (time.perf_counter() - began) * 1000
    whole_ms, longest_ms = await status_ms(service)
    await service.close()
    return {
        "runs": chosen.runs,
        "main_file_mib": round((folder / "state" / MAIN).stat().st_size / 2**20, 1),
        "start_s": round(start_s, 2),
        "start_cpu_s": round(cpu, 2),
        "kib_per_finished_run": round((after - before) * 1024 / chosen.runs, 2),
        "status_of_one_us": round(one_us, 1),
        "status_ms": round(whole_ms, 1),
        "status_step_ms": round(longest_ms, 2),
    }


async def measure_compaction(folder: Path, chosen: Effort) -> Figures:
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
