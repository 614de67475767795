"""Everything in one process: the services meet through calls, and the link is there for others to join.

Only where `dataplane.workers` asks for several is the LLM door served by processes of its own, over that link.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from luftpause.adapters.link.direct import DirectLauncherLink, DirectLink
from luftpause.adapters.run_trees_http import HttpRunTrees
from luftpause.assembly.crew import crew_part
from luftpause.assembly.observing import observed
from luftpause.assembly.parts import (
    LauncherLinks,
    OtherDoors,
    Plans,
    dataplane_part,
    engines_part,
    launcher_part,
    link_part,
    memory_part,
    runtime_part,
    scheduler_door,
    scheduler_part,
)
from luftpause.services.launcher.instance import InstanceView
from luftpause.services.launcher.service import LauncherService


@dataclass(frozen=True, slots=True, kw_only=True)
class AllInOne:
    """Where everything answers: base URLs of the doors, and the link as host:port. And who keeps the engines."""

    dataplane: str
    runtime: str
    scheduler: str
    link: str
    launcher: LauncherService


@asynccontextmanager
async def all_in_one(
    plans: Plans, *, on_change: Callable[[InstanceView], None] | None = None
) -> AsyncIterator[AllInOne]:
    """Run everything for the length of a block.

    Every address is taken before the first engine starts, so that a taken port costs nothing. At the end the MCP
    door closes first; turns that are held are refused and others end, while the LLM door closes; then the engines go.

    Args:
        plans: what is to be assembled.
        on_change: told whenever an engine that we start changes its state.

    Raises:
        StartFailedError: an address or the state directory cannot be used.
        ConfigError: a declared model cannot be started as it stands.
    """
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        plans = await enter(observed(plans))
        engines = await enter(engines_part(plans))
        memory = await enter(memory_part(plans))
        service = await enter(scheduler_part(plans, engines, memory))
        link = DirectLink(service)
        links = LauncherLinks(orders=DirectLauncherLink(service.launchers), replicas=link)
        launcher = await enter(launcher_part(plans, links, engines, on_change))
        listener = await enter(link_part(plans, service, memory, service.launchers))
        doors = OtherDoors(HttpRunTrees(engines, plans.access.token))
        status = await enter(scheduler_door(plans, service, listener, doors))
        if plans.config.dataplane.workers > 1:
            dataplane = await enter(crew_part(plans, link_port=listener.port))
        else:
            dataplane = (await enter(dataplane_part(plans, link, engines))).url
        # Before that door closes: what is held is told so, since nothing will be placed any more.
        stack.callback(service.close)
        turns_url = plans.config.runtime.dataplane_url or dataplane
        runtime = await enter(runtime_part(plans, engines, turns_url))
        doors.llm = dataplane
        for url in (runtime.url, *plans.config.scheduler.runtimes):
            doors.runtimes.know(url)
        launcher.start()
        yield AllInOne(
            dataplane=dataplane,
            runtime=runtime.url,
            scheduler=status.url,
            link=f"{plans.config.scheduler.host}:{listener.port}",
            launcher=launcher,
        )
