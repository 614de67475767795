"""One service in this process, the others elsewhere: they meet over the link."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from luftpause.adapters.http_server.listening import address_of
from luftpause.adapters.link.client import RemoteLink
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
from luftpause.assembly.start_failed import StartFailedError
from luftpause.config.units import seconds
from luftpause.core.model.ids import PeerId
from luftpause.ports.crew import Crew
from luftpause.ports.engines import Engines
from luftpause.ports.scheduler import LinkRefusedError
from luftpause.services.launcher.instance import InstanceView
from luftpause.services.launcher.service import LauncherService

WELCOME_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerAlone:
    """Base URL of status and page, and the link as host:port."""

    url: str
    link: str


@asynccontextmanager
async def scheduler_alone(plans: Plans) -> AsyncIterator[SchedulerAlone]:
    """Run the scheduler for the length of a block.

    Raises:
        StartFailedError: an address cannot be used.
    """
    async with AsyncExitStack() as stack:
        plans = await stack.enter_async_context(observed(plans))
        engines = await stack.enter_async_context(engines_part(plans))
        memory = await stack.enter_async_context(memory_part(plans))
        service = await stack.enter_async_context(scheduler_part(plans, engines, memory))
        listener = await stack.enter_async_context(link_part(plans, service, memory, service.launchers))
        doors = _other_doors(plans, engines)
        status = await stack.enter_async_context(scheduler_door(plans, service, listener, doors))
        yield SchedulerAlone(url=status.url, link=f"{plans.config.scheduler.host}:{listener.port}")


def _other_doors(plans: Plans, engines: Engines) -> OtherDoors:
    """Return what the configuration tells of the doors that other processes open."""
    config = plans.config
    dataplane, runtime = config.dataplane, config.runtime
    doors = OtherDoors(HttpRunTrees(engines, plans.access.token))
    if dataplane.port:
        doors.llm = f"http://{address_of(dataplane.host, dataplane.port)}"
    own = [f"http://{address_of(runtime.host, runtime.port)}"] if runtime.port else []
    for url in config.scheduler.runtimes or own:
        doors.runtimes.know(url)
    return doors


@asynccontextmanager
async def dataplane_alone(plans: Plans) -> AsyncIterator[str]:
    """Run the LLM door for the length of a block; yields its base URL. Until the scheduler is there, turns are held.

    Raises:
        StartFailedError: the address cannot be used.
    """
    port = plans.config.scheduler.port
    if port == 0:
        raise StartFailedError("scheduler.port: is 0, so there is no telling where the scheduler's link is; name it")
    if plans.config.dataplane.workers > 1:
        async with crew_part(plans, link_port=port) as url:
            yield url
    else:
        async with _linked_dataplane(plans, name="dp") as url:
            yield url


@asynccontextmanager
async def dataplane_worker(plans: Plans, crew: Crew, number: int) -> AsyncIterator[str]:
    """Run one worker's part in the LLM door for the length of a block; see `dataplane_alone`."""
    async with _linked_dataplane(plans, name=f"dp{number}", crew=crew) as url:
        yield url


@asynccontextmanager
async def _linked_dataplane(plans: Plans, *, name: str, crew: Crew | None = None) -> AsyncIterator[str]:
    peer = PeerId(f"{name}_{secrets.token_urlsafe(9)}")
    scheduler = plans.config.scheduler
    link = RemoteLink(
        scheduler.host,
        scheduler.port,
        peer=peer,
        token=plans.access.token,
        retry_s=seconds(plans.config.dataplane.link_retry),
        run_idle_s=seconds(scheduler.run_idle_expiry),
    )
    await link.start()
    try:
        await _welcomed(link)
        async with (
            observed(plans) as seen,
            engines_part(seen) as engines,
            dataplane_part(seen, link, engines, peer=peer, crew=crew) as door,
        ):
            yield door.url
    finally:
        await link.close()


@asynccontextmanager
async def launcher_alone(
    plans: Plans, *, on_change: Callable[[InstanceView], None] | None = None
) -> AsyncIterator[LauncherService]:
    """Run the launcher for the length of a block. At the end its models go as soon as nobody uses them.

    Raises:
        ConfigError: a declared model cannot be started as it stands.
        StartFailedError: the scheduler does not accept our token.
    """
    config = plans.config
    scheduler = config.scheduler
    if scheduler.port == 0:
        raise StartFailedError("scheduler.port: is 0, so there is no telling where the scheduler's link is; name it")
    link = RemoteLink(
        scheduler.host,
        scheduler.port,
        peer=PeerId(f"launcher_{config.launcher.name}"),
        token=plans.access.token,
        retry_s=seconds(config.dataplane.link_retry),
    )
    await link.start()
    try:
        await _welcomed(link)
        links = LauncherLinks(orders=link, replicas=link)
        drain_s = seconds(config.dataplane.drain)
        async with (
            engines_part(plans) as engines,
            launcher_part(plans, links, engines, on_change, drain_s=drain_s) as launcher,
        ):
            launcher.start()
            yield launcher
    finally:
        await link.close()


@asynccontextmanager
async def runtime_alone(plans: Plans) -> AsyncIterator[str]:
    """Run the MCP door for the length of a block; yields its base URL.

    Raises:
        StartFailedError: the address or the state directory cannot be used.
    """
    dataplane = plans.config.dataplane
    turns_url = plans.config.runtime.dataplane_url or f"http://{dataplane.host}:{dataplane.port}"
    async with (
        observed(plans) as seen,
        engines_part(seen) as engines,
        runtime_part(seen, engines, turns_url) as door,
    ):
        yield door.url


async def _welcomed(link: RemoteLink) -> None:
    """Wait a moment for the scheduler, so that a token that it does not accept ends us with a word to a person."""
    try:
        async with asyncio.timeout(WELCOME_S):
            await link.ready()
    except TimeoutError:
        return  # it may come later; turns are held until then
    except LinkRefusedError as error:
        raise StartFailedError(f"scheduler.port: {error}") from error
