"""A runtime in a process of its own whose client spawns until it is refused, and no run ever ends.

    greedy_runtime.py FOLDER SPAWNS_MAX FILE_BYTES_MAX

FILE_BYTES_MAX is the longest that a file may get, 0 for no such limit. Prints what it found and what became of it.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path

from crash.three_runs import ME, SlowTools, StoppedClock
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.core.model.ids import ANONYMOUS_CALLER, ModelName, PrincipalId, RunId
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.orders import NotKeptError, SpawnOrder, SpawnRefusedError
from luftpause.services.runtime.service import RuntimeService


class SilentTurns:
    """A model that never answers."""

    async def take(self, request: TurnRequest) -> TurnReply:
        await asyncio.Event().wait()
        raise TurnFailedError("unreachable")

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        return


async def refusal_of(service: RuntimeService, answered: list[str], most: int) -> str:
    order = SpawnOrder(task="wait " * 40, principal=ME, caller=ANONYMOUS_CALLER, model=ModelName("silent"))
    try:
        while len(answered) < most:
            answered.append(await service.spawn(order))
    except SpawnRefusedError as refusal:
        return str(refusal)
    return ""


async def waiting_is_refused(service: RuntimeService, answered: list[str]) -> str:
    try:
        await service.wait(ME, answered[:1], "all", 0.0)
    except NotKeptError as refusal:
        return str(refusal)
    return ""


async def main(folder: Path, most: int) -> None:
    service = RuntimeService(
        FileJournal(DiskFolder(folder / "state"), StoppedClock()), SilentTurns(), SlowTools(pause_s=0.0)
    )
    await service.start()
    found = [run.run for run in service.glance(ME).views()]
    answered: list[str] = []
    refusal = await refusal_of(service, answered, most)
    again = await refusal_of(service, [], 1) if refusal else ""
    told = {
        "found": found,
        "answered": answered,
        "refusal": refusal,
        "again": again,
        "failure": service.journal_failure,
        "waiting": await waiting_is_refused(service, answered),
    }
    sys.stdout.write(json.dumps(told))
    await service.close()


if __name__ == "__main__":
    if int(sys.argv[3]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
