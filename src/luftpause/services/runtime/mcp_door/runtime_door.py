"""The door with the runtime's own tools behind it."""

from dataclasses import dataclass

from mcp.server.lowlevel import Server

from luftpause.ports.decisions import Decisions
from luftpause.services.runtime.mcp_door.door import McpDoor
from luftpause.services.runtime.mcp_door.orphans import Orphans
from luftpause.services.runtime.mcp_door.run_tasks import RunTasks
from luftpause.services.runtime.mcp_door.run_tools import RunTools
from luftpause.services.runtime.mcp_door.subscriptions import Subscriptions
from luftpause.services.runtime.mcp_door.tasks import Tasks
from luftpause.services.runtime.mcp_door.waiting import Waiting
from luftpause.services.runtime.service import RuntimeService


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorParts:
    """What the door needs beside the service.

    Attributes:
        decisions: who labels texts.
        state_key: seals what clients carry from one request to the next; 32 bytes, the same after a restart.
        version: of the product, told to clients.
    """

    decisions: Decisions
    state_key: bytes
    version: str


class RuntimeDoor:
    """Serves a started service on `server`. Close it before the service."""

    def __init__(self, service: RuntimeService, parts: DoorParts) -> None:
        waiting = Waiting(service)
        self._orphans = Orphans(service, waiting, service.settings.orphan_grace_s)
        tasks = Tasks(RunTasks(service, waiting))
        tools = RunTools(service, parts.decisions, waiting, tasks, self._orphans)
        door = McpDoor(
            tools.offered(),
            tasks,
            Subscriptions(tasks.desk),
            version=parts.version,
            state_key=parts.state_key,
        )
        self.server: Server[object] = door.server

    async def close(self) -> None:
        """Stop looking after runs whose clients left. They go on, like all that are not over."""
        await self._orphans.close()
