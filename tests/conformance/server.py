"""The runtime's own door with the suite's fixtures behind it instead of the product's tools.

    PYTHONPATH=tests python -m conformance.server FOLDER READY_FILE

Transport, guard, sealed state, tasks and the runs behind them are the product's. Ends when its standard input does.
"""

import asyncio
import json
import sys
from pathlib import Path

from mcp.server.subscriptions import InMemorySubscriptionBus

from conformance.asking import ask_prompt, session_tools, sessionless_tools
from conformance.content import plain_tools, serve_content
from conformance.work import BreakingTasks, DangerousTools, ScriptedTurns, working_tools
from luftpause.adapters.clock_system import SystemClock
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.adapters.key_file import key_in
from luftpause.assembly.doors import Access, Address, open_door
from luftpause.services.runtime.http import app_around
from luftpause.services.runtime.mcp_door.door import McpDoor
from luftpause.services.runtime.mcp_door.run_tasks import RunTasks
from luftpause.services.runtime.mcp_door.subscriptions import Subscriptions
from luftpause.services.runtime.mcp_door.tasks import Tasks
from luftpause.services.runtime.mcp_door.waiting import Waiting
from luftpause.services.runtime.service import RuntimeService


def door_of(service: RuntimeService, key: bytes) -> McpDoor:
    waiting, bus = Waiting(service), InMemorySubscriptionBus()
    desk = BreakingTasks(RunTasks(service, waiting))
    tasks = Tasks(desk)
    offered = [
        *plain_tools(bus),
        *sessionless_tools(),
        *session_tools(),
        *working_tools(service, waiting, tasks, desk.broken),
    ]
    door = McpDoor(offered, tasks, Subscriptions(desk, bus), version="0", state_key=key)
    serve_content(door.server, ask_prompt)
    return door


async def serve(folder: Path, ready: Path) -> None:
    service = RuntimeService(FileJournal(DiskFolder(folder), SystemClock()), ScriptedTurns(), DangerousTools())
    await service.start()
    try:
        door = door_of(service, key_in(folder / "mcp.key"))

        async def nothing() -> None:
            return

        app = app_around(service, door.server, nothing)
        address = Address(host="127.0.0.1", port=0, option="port")
        async with open_door(app, address, Access(), lifespan=True) as server:
            ready.with_suffix(".new").write_text(json.dumps({"url": server.url}))
            ready.with_suffix(".new").rename(ready)
            await asyncio.to_thread(sys.stdin.read)
    finally:
        await service.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))
