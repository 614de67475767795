"""Each service with what it needs, as a context: entered it runs, left it has ended.

`all_in_one` and `split` combine the same parts and differ only in the link between them.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import luftpause
from luftpause.adapters.clock_system import SystemClock
from luftpause.adapters.decisions_http import HttpDecisions
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.http_server.refusal import Refusals
from luftpause.adapters.http_server.server import HttpServer
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.adapters.key_file import KeyFileError, key_in
from luftpause.adapters.link.server import Insiders, LinkServer
from luftpause.adapters.llama_cpp.discover import find_local_engine, find_local_model
from luftpause.adapters.memory_file import MemoryFile
from luftpause.adapters.memory_meter import MachineMemory, ram_budget
from luftpause.adapters.process_host.host import LocalProcessHost
from luftpause.adapters.process_host.marks import ProcessMarks
from luftpause.adapters.process_host.orphan_watch import watched
from luftpause.adapters.run_trees_http import HttpRunTrees
from luftpause.adapters.tools_mcp.tools import McpTools
from luftpause.adapters.turns_http.client import HttpTurns
from luftpause.adapters.turns_http.served_models import ServedModels
from luftpause.assembly.declared import (
    dataplane_settings,
    engine_key,
    kv_folder,
    link_graces,
    log_folder,
    marks_folder,
    patience,
    replica_specs,
    require_keys,
    runtime_settings,
    scheduler_settings,
    state_folder,
    tool_server_specs,
    upkeep,
)
from luftpause.assembly.doors import Access, Address, open_door
from luftpause.assembly.recording import Recording, recorded_scheduler
from luftpause.assembly.start_failed import StartFailedError
from luftpause.config import schema
from luftpause.config.units import seconds
from luftpause.core.model.ids import PeerId
from luftpause.core.model.replicas import Endpoint
from luftpause.core.scheduling.events import MemoryRestored
from luftpause.ports.crew import Crew
from luftpause.ports.engines import Engines
from luftpause.ports.journal import JournalFailedError
from luftpause.ports.launcher import LauncherDesk, LauncherLink
from luftpause.ports.scheduler import SchedulerDesk, SchedulerLink
from luftpause.ports.tracing import Telemetry, Tracer
from luftpause.services.dataplane.app import Dataplane
from luftpause.services.dataplane.headers import refusal_headers
from luftpause.services.dataplane.routes import error_at
from luftpause.services.launcher.instance import InstanceView
from luftpause.services.launcher.kv_folders import held_folder
from luftpause.services.launcher.planning import LauncherPlan, Machine, plan
from luftpause.services.launcher.service import LauncherService, Tools
from luftpause.services.runtime import http as runtime_http
from luftpause.services.runtime.mcp_door.runtime_door import DoorParts
from luftpause.services.runtime.service import RuntimeService
from luftpause.services.scheduler.admit_spans import AdmitSpans
from luftpause.services.scheduler.http import SchedulerHttp
from luftpause.services.scheduler.keeping import Keeper
from luftpause.services.scheduler.live_http import Surroundings
from luftpause.services.scheduler.probes import Prober
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.status.page import FILES, page_routes
from luftpause.telemetry.borrowed import dropped_spans
from luftpause.telemetry.exposition import Counts, counts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """What is to be assembled: the configuration, who may come in, and what is written down.

    `worker_command` starts a process that serves the LLM door beside others; see `assembly.crew`. `telemetry` is where
    spans and counts go; None: nowhere.
    """

    config: schema.Config
    access: Access
    recording: Recording = field(default_factory=Recording)
    worker_command: Sequence[str] = ()
    telemetry: Telemetry | None = None

    def tracer(self, service: str) -> Tracer | None:
        """Return where a service's spans go, None where nobody traces."""
        return None if self.telemetry is None else self.telemetry.tracer(service)

    def shows(self, service: str, read: Callable[[], Counts]) -> None:
        """Let what a service counts be sent, where that is asked for."""
        if self.telemetry is not None:
            self.telemetry.counts(service, read)


def _address(section: schema.Dataplane | schema.Scheduler | schema.Runtime, *, port: int, option: str) -> Address:
    return Address(
        host=section.host,
        port=port,
        option=option,
        allowed_hosts=section.allowed_hosts,
        allowed_origins=section.allowed_origins,
    )


def dataplane_address(plans: Plans) -> Address:
    """Return where the LLM door opens; shared where several processes serve it."""
    section = plans.config.dataplane
    address = _address(section, port=section.port, option="dataplane.port")
    return replace(address, drain_s=seconds(section.drain), shared=section.workers > 1)


@asynccontextmanager
async def engines_part(plans: Plans) -> AsyncIterator[HttpEngines]:
    """The HTTP client to engines and to our own doors."""
    section = plans.config.dataplane
    engines = HttpEngines(connect_timeout_s=seconds(section.connect_timeout), idle_s=seconds(section.engine_idle))
    try:
        yield engines
    finally:
        await engines.close()


@dataclass(frozen=True, slots=True)
class Remembering:
    """What a scheduler before this one left, and who writes down what this one leaves."""

    learned: MemoryRestored
    keeper: Keeper


@asynccontextmanager
async def memory_part(plans: Plans) -> AsyncIterator[Remembering]:
    """The scheduler's memory over a restart."""
    file = MemoryFile(state_folder(plans.config))
    left = await asyncio.to_thread(file.read)
    keeper = Keeper(file, left.peers)
    try:
        yield Remembering(left.learned, keeper)
    finally:
        await keeper.close()


@asynccontextmanager
async def scheduler_part(plans: Plans, engines: Engines, memory: Remembering) -> AsyncIterator[SchedulerService]:
    """The scheduler with its probes, what it learned before, and the replicas that the configuration names.

    Raises:
        ConfigError: the key of a replica is not set.
        StartFailedError: the event log cannot be written.
    """
    config = plans.config
    require_keys(config, os.environ)
    tracer = plans.tracer("scheduler")
    witnesses = [memory.keeper] if tracer is None else [memory.keeper, AdmitSpans(tracer)]
    async with recorded_scheduler(scheduler_settings(config), plans.recording, *witnesses) as service:
        if tracer is not None:
            service.metrics.show(dropped_spans(lambda: tracer.dropped))
        plans.shows("scheduler", service.metrics.counts)
        service.restore(memory.learned)
        prober = Prober(service, engines)
        for spec in replica_specs(config):
            service.add_replica(spec)
        prober.start()
        try:
            yield service
        finally:
            await prober.close()


@dataclass(slots=True)
class OtherDoors:
    """What the page tells of the doors beside the scheduler's: they may open after it.

    Attributes:
        runtimes: whose runs it shows.
        llm: base URL of the LLM door, empty where that is not known.
    """

    runtimes: HttpRunTrees
    llm: str = ""


@asynccontextmanager
async def scheduler_door(
    plans: Plans, service: SchedulerService, listener: LinkServer, doors: OtherDoors
) -> AsyncIterator[HttpServer]:
    """Status and page. The page itself needs no token: it asks a person for the one that its figures need."""
    section = plans.config.scheduler
    address = _address(section, port=section.http_port, option="scheduler.http_port")
    around = Surroundings(peers=listener.peers, trees=doors.runtimes, llm_door=lambda: doors.llm)
    http = SchedulerHttp(service, around)
    app = http.app(more_routes=page_routes())
    async with open_door(app, replace(address, open_paths=tuple(FILES)), plans.access.for_operator()) as server:
        try:
            yield server
        finally:
            http.close()


@asynccontextmanager
async def link_part(
    plans: Plans, desk: SchedulerDesk, memory: Remembering, launchers: LauncherDesk
) -> AsyncIterator[LinkServer]:
    """The link for services in other processes."""
    section = plans.config.scheduler
    address = Address(host=section.host, port=section.port, option="scheduler.port")
    plans.access.check(address)
    server = LinkServer(
        desk,
        host=section.host,
        port=section.port,
        token=plans.access.token,
        graces=link_graces(plans.config),
        insiders=Insiders(register=memory.keeper, launchers=launchers),
    )
    try:
        await server.start()
    except OSError as error:
        raise StartFailedError(
            f"scheduler.port: cannot listen on {section.host}:{section.port}: {error.strerror or error}; "
            "stop what listens there or choose another port (0 picks a free one)"
        ) from error
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def dataplane_part(
    plans: Plans, link: SchedulerLink, engines: Engines, *, peer: PeerId | None = None, crew: Crew | None = None
) -> AsyncIterator[HttpServer]:
    """The LLM door, or one worker's part in it.

    Raises:
        ConfigError: the key of a replica is not set.
        StartFailedError: the address cannot be used.
    """
    require_keys(plans.config, os.environ)
    address = dataplane_address(plans)
    tracer = plans.tracer("dataplane")
    app = Dataplane(link, engines, dataplane_settings(plans.config), peer=peer, crew=crew, tracer=tracer)
    plans.shows("dataplane", lambda: counts_of(app.metrics))
    await app.start()
    try:
        refusals = Refusals(headers=refusal_headers, body=error_at)
        async with open_door(app, address, plans.access, key_in_query=True, refusals=refusals) as server:
            yield server
    finally:
        await app.close()


@asynccontextmanager
async def runtime_part(plans: Plans, engines: Engines, dataplane_url: str) -> AsyncIterator[HttpServer]:
    """The MCP door with its tools, its journal and its way to the LLM door."""
    config = plans.config
    section = config.runtime
    address = _address(section, port=section.port, option="runtime.port")
    plans.access.check(address)
    endpoint = Endpoint(url=dataplane_url)
    tools = McpTools(tool_server_specs(config, os.environ))
    folder = state_folder(config)
    service = RuntimeService(
        FileJournal(DiskFolder(folder), SystemClock(), upkeep(config)),
        HttpTurns(engines, endpoint, plans.access.tokens, patience=patience(config)),
        tools,
        settings=runtime_settings(config),
        models=ServedModels(engines, endpoint, plans.access.token),
        tracer=plans.tracer("runtime"),
    )
    plans.shows("runtime", service.counts)
    tools.start()
    try:
        await _start_runtime(service)
        try:
            patience_s = seconds(section.turn_timeout)
            parts = DoorParts(
                decisions=HttpDecisions(engines, endpoint, plans.access.tokens, timeout_s=patience_s),
                state_key=_state_key(folder),
                version=luftpause.__version__,
            )
            app = runtime_http.build_app(service, parts)
            refusals = Refusals(body=runtime_http.error_at)
            async with open_door(app, address, plans.access, lifespan=True, refusals=refusals) as server:
                yield server
        finally:
            await service.close()
    finally:
        await tools.close()


def _state_key(folder: Path) -> bytes:
    try:
        return key_in(folder / "mcp.key")
    except KeyFileError as error:
        raise StartFailedError(f"runtime.state_dir: {error}") from error


async def _start_runtime(service: RuntimeService) -> None:
    try:
        await service.start()
    except JournalFailedError as error:
        raise StartFailedError(f"runtime.state_dir: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherLinks:
    """The scheduler as a launcher holds it: for its orders and reports, and for replicas that it declares by itself."""

    orders: LauncherLink
    replicas: SchedulerLink


@asynccontextmanager
async def launcher_part(
    plans: Plans,
    links: LauncherLinks,
    engines: Engines,
    on_change: Callable[[InstanceView], None] | None,
    *,
    drain_s: float = 0.0,
) -> AsyncIterator[LauncherService]:
    """The launcher, not started yet: it joins once every door is open, and ends after all of them are closed.

    Engines that a launcher left behind when it was killed are adopted or stopped first. `drain_s`: how long turns may
    take to end at the end, where doors are elsewhere, seconds.

    Raises:
        ConfigError: a declared model cannot be started as it stands.
    """
    config = plans.config
    with held_folder(kv_folder(config)) as folder:
        planned = launcher_plan(config, folder)
        marks = ProcessMarks(marks_folder(config))
        tools = Tools(
            host=LocalProcessHost(os.environ, log_dir=log_folder(config), marks=marks, outlived=config.launcher.adopt),
            engines=engines,
            meter=MachineMemory({device.device: at for at, device in enumerate(planned.devices[1:])}),
            kv_folder=folder,
        )
        launcher = LauncherService(planned, tools, link=links.orders, replicas=links.replicas, on_change=on_change)
        outlived = marks if config.launcher.adopt else None
        with watched(outlived, seconds(config.launcher.adopt_within), planned.stop_grace_s):
            try:
                await launcher.take_over(adopt=config.launcher.adopt)
                yield launcher
            finally:
                await launcher.close(drain_s=drain_s)


def launcher_plan(config: schema.Config, folder: Path | None) -> LauncherPlan:
    """Return what this machine's launcher can start. `folder`: where engines write the KV of runs; None: nowhere.

    Raises:
        ConfigError: a declared model cannot be started as it stands.
    """
    engine, model = find_local_engine(os.environ), find_local_model()
    key = engine_key(config.launcher, os.environ)
    machine = Machine(engine=engine, bundled_model=model, ram=ram_budget(), kv_folder=folder, engine_key=key)
    return plan(config.launcher, machine)
