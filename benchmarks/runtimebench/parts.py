"""The parts of this benchmark by name, and how one is measured: on an event loop and a disk folder of its own."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

import uvloop
from benchmarks.runtimebench.agents import measure_agents, measure_beside, measure_live
from benchmarks.runtimebench.journal import measure_compaction, measure_journal, measure_replay
from benchmarks.runtimebench.lives import Figures
from benchmarks.runtimebench.quiet import Effort

from luftpause.telemetry import pauses

Part = Callable[[Path, Effort], Coroutine[object, object, Figures]]
PARTS: Mapping[str, Part] = {
    "journal": measure_journal,
    "replay": measure_replay,
    "compaction": measure_compaction,
    "agents": measure_agents,
    "live": measure_live,
    "beside": measure_beside,
}


def measure(name: str, chosen: Effort, folder: Path | None) -> Figures:
    """Measure one part on a folder of its own."""
    pauses.begin()  # as every service does
    own = Path(tempfile.mkdtemp(prefix="luftpause-bench-", dir=folder))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(PARTS[name](own, chosen))
    finally:
        shutil.rmtree(own)
