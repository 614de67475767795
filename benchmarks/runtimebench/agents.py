"""Many sub-agents at once, and what their spawns cost those who stream through the LLM door beside them."""

import asyncio
import gc
import json
import time
from pathlib import Path

from benchmarks.doorbench.processes import python_module
from benchmarks.runtimebench.lives import TASK, Figures, percentile, rss_mib
from benchmarks.runtimebench.quiet import Effort, status_ms
from benchmarks.runtimebench.whole import MODEL, PACED, engine, whole_runtime

from luftpause.core.model.ids import ANONYMOUS_CALLER, ANONYMOUS_PRINCIPAL
from luftpause.services.runtime.orders import SpawnOrder
from luftpause.services.runtime.service import RuntimeService
from luftpause.testkit.bench.over_http.children import Child

RAMP_S = 5.0
"""Agents whose model is quick begin within this time."""

SLOW_TOKEN_MS = 350.0
SLOW_RUN_S = 10.5
"""A run of three turns of eight tokens and two rounds of tools with such a model, about."""

ROOM = 4000
STREAMS = 50
STREAM_CHUNK_MS = 20.0


class Watch:
    """How late the event loop is, and how much memory the process takes at most."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.peak_mib = 0.0
        self._task = asyncio.create_task(self._look())

    def end(self) -> None:
        """Look no more."""
        self._task.cancel()

    async def _look(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            self.lags.append(time.perf_counter() - began - 0.005)
            if len(self.lags) % 20 == 0:
                self.peak_mib = max(self.peak_mib, rss_mib())


async def one_run(service: RuntimeService, task: str) -> float:
    """Spawn a run, see it through, and return how long it took until its handle was there, seconds."""
    began = time.perf_counter()
    order = SpawnOrder(task=task, principal=ANONYMOUS_PRINCIPAL, caller=ANONYMOUS_CALLER, max_tokens=64)
    run = await service.spawn(order)
    took = time.perf_counter() - began
    await service.wait(ANONYMOUS_PRINCIPAL, [run], "all", 600)
    (seen,) = service.look(ANONYMOUS_PRINCIPAL, [run])
    if seen.result is None:
        raise RuntimeError(seen.error)
    return took


async def measure_agents(folder: Path, chosen: Effort) -> Figures:
    """A model that is quick: as many runs as the process can carry."""
    return await _agents(folder, chosen, token_ms=5.0, ramp_s=RAMP_S)


async def measure_live(folder: Path, chosen: Effort) -> Figures:
    """A model that takes its time, as most do: as many runs live, and their spawns come evenly."""
    return await _agents(folder, chosen, token_ms=SLOW_TOKEN_MS, ramp_s=SLOW_RUN_S)


async def _agents(folder: Path, chosen: Effort, *, token_ms: float, ramp_s: float) -> Figures:
    """Each agent has two runs, one after the other: the second ones are spawned among all the others."""
    with engine(folder, MODEL, token_ms=token_ms) as replica:
        async with whole_runtime(folder, [replica], chosen.agents) as (service, _):
            gc.collect()
            before = rss_mib()
            spawns: list[float] = []

            async def one_agent(number: int) -> None:
                await asyncio.sleep(ramp_s * number / chosen.agents)
                await one_run(service, f"{number}: {TASK}")
                spawns.append(await one_run(service, f"{number} again: {TASK}"))

            watch = Watch()
            began, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*map(one_agent, range(chosen.agents)))
            lasted, cpu = time.perf_counter() - began, time.process_time() - cpu
            watch.end()
            whole_ms, longest_ms = await status_ms(service)
    return {
        "agents": chosen.agents,
        "all_done_s": round(lasted, 2),
        "runs_per_s": round(2 * chosen.agents / lasted, 1),
        "cpu_ms_per_run": round(cpu * 1000 / (2 * chosen.agents), 2),
        "spawn_p50_ms": round(percentile(spawns, 50) * 1000, 1),
        "spawn_p99_ms": round(percentile(spawns, 99) * 1000, 1),
        "loop_lag_p99_ms": round(percentile(watch.lags, 99) * 1000, 1),
        "kib_per_live_run": round((watch.peak_mib - before) * 1024 / chosen.agents, 1),
        "status_ms": round(whole_ms, 1),
        "status_step_ms": round(longest_ms, 2),
    }


async def measure_beside(folder: Path, chosen: Effort) -> Figures:
    """Streams of a chunk every 20 ms through the LLM door, first alone, then with runs of one turn spawned beside."""
    with engine(folder, MODEL, token_ms=5.0) as agents, engine(folder, PACED, token_ms=STREAM_CHUNK_MS) as paced:
        async with whole_runtime(folder, [agents, paced], ROOM) as (service, door):
            spawns: list[float] = []
            figures: dict[str, float] = {"streams": STREAMS, "spawns_per_s": chosen.spawns_per_s}
            for name, rate in (("alone", 0), ("with_spawns", chosen.spawns_per_s)):
                spawning = asyncio.create_task(_spawn_on(service, rate, spawns))
                watch, cpu = Watch(), time.process_time()
                late = await asyncio.to_thread(_streams_beside, folder, door, chosen.seconds * 3)
                cpu = time.process_time() - cpu
                watch.end()
                spawning.cancel()
                await asyncio.gather(spawning, return_exceptions=True)
                figures[f"chunk_late_p50_ms_{name}"] = round(percentile(late, 50) * 1000, 2)
                figures[f"chunk_late_p99_ms_{name}"] = round(percentile(late, 99) * 1000, 2)
                figures[f"loop_lag_p99_ms_{name}"] = round(percentile(watch.lags, 99) * 1000, 2)
                figures[f"cpu_s_{name}"] = round(cpu, 2)
            figures["spawn_p50_ms"] = round(percentile(spawns, 50) * 1000, 1)
            figures["spawn_p99_ms"] = round(percentile(spawns, 99) * 1000, 1)
            return figures


async def _spawn_on(service: RuntimeService, per_s: int, spawns: list[float]) -> None:
    """Spawn at an even pace until cancelled; each run is one turn of a few tokens."""
    if not per_s:
        return
    began, number = time.perf_counter(), 0
    async with asyncio.TaskGroup() as runs:
        while True:
            number += 1
            await asyncio.sleep(max(0.0, began + number / per_s - time.perf_counter()))
            runs.create_task(_timed(service, f"{number}: {TASK} [tools:0]", spawns))


async def _timed(service: RuntimeService, task: str, spawns: list[float]) -> None:
    spawns.append(await one_run(service, task))


def _streams_beside(folder: Path, door: str, seconds: float) -> list[float]:
    """Return how late each chunk was at a client in a process of its own, seconds."""
    arguments = [door, PACED, str(STREAMS), str(STREAM_CHUNK_MS / 1000), str(seconds)]
    command = python_module("benchmarks.runtimebench.streams", *arguments)
    client = Child(command, log=folder / "streams.log", lines=True)
    try:
        late: list[float] = json.loads(client.read_line(seconds + 60))
        return late
    finally:
        client.stop()
