"""A runtime as `luftpause up` has it: with dataplane and scheduler in this process, its engines in their own."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from benchmarks.runtimebench.quiet import SleepyTools

from luftpause.adapters.clock_system import SystemClock
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.adapters.link.direct import DirectLink
from luftpause.adapters.turns_http.client import HttpTurns
from luftpause.assembly.doors import Access
from luftpause.assembly.parts import Plans, dataplane_part, engines_part, memory_part, scheduler_part
from luftpause.config import schema
from luftpause.core.model.ids import ModelName
from luftpause.core.model.replicas import Endpoint
from luftpause.services.runtime.orders import RuntimeSettings
from luftpause.services.runtime.service import RuntimeService
from luftpause.testkit.bench.over_http.children import Child, wait_until

MODEL = ModelName("agents-1b")
PACED = ModelName("paced-1b")
TOOL_S = 1.0


@contextlib.contextmanager
def engine(folder: Path, model: ModelName, token_ms: float) -> Iterator[schema.Replica]:
    """A fake engine in a process of its own that never has too little of anything but time: `token_ms` a token."""
    ready = folder / f"{model}.json"
    plenty = {"--slots": 10_000, "--kv-tokens": 2**30, "--chunk-tokens": 2**30, "--prefill-tps": 1e9}
    pace = {"--token-ms": token_ms, "--crowd-ms": 0, "--ttft-ms": 0, "--tool-rounds": 2, "--reply-tokens": 8}
    where = {"--model": model, "--port": 0, "--ready-file": ready}
    options = [str(each) for pair in (plenty | pace | where).items() for each in pair]
    process = Child([sys.executable, "-m", "luftpause", "fake-engine", *options], log=folder / f"{model}.log")
    try:
        wait_until(lambda: ready.exists() or not process.running, timeout_s=30, what="the fake engine")
        if not process.running:
            raise RuntimeError(process.tail())
        (url,) = (each for each in json.loads(ready.read_text("utf-8")).values() if isinstance(each, str))
        yield schema.Replica(name=model, url=url, models=[model], engine="vllm")
    finally:
        process.stop()


@contextlib.asynccontextmanager
async def whole_runtime(
    folder: Path, replicas: Sequence[schema.Replica], agents: int
) -> AsyncIterator[tuple[RuntimeService, str]]:
    """Yield a started service and the URL of the LLM door that its runs use."""
    runtime = schema.Runtime(state_dir=str(folder / "scheduler"))
    config = schema.Config(replicas=list(replicas), dataplane=schema.Dataplane(port=0), runtime=runtime)
    plans = Plans(config=config, access=Access())
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        engines = await enter(engines_part(plans))
        memory = await enter(memory_part(plans))
        scheduler = await enter(scheduler_part(plans, engines, memory))
        door = await enter(dataplane_part(plans, DirectLink(scheduler), engines))
        service = RuntimeService(
            FileJournal(DiskFolder(folder / "state"), SystemClock()),
            HttpTurns(engines, Endpoint(url=door.url), {}),
            SleepyTools(TOOL_S),
            settings=RuntimeSettings(default_model=MODEL, max_running=agents),
        )
        await service.start()
        try:
            yield service, door.url
        finally:
            await service.close()
