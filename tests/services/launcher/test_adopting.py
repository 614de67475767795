"""What an earlier launcher left is kept where it is what we would start, whole and healthy; the rest is ended."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.memory_meter import MachineMemory
from luftpause.core.model.models import EnginePhase
from luftpause.core.processes.actions import StopSignal
from luftpause.core.scheduling.residency.events import ModelDown, ModelUp
from luftpause.ports.processes import CouldNotStartError, Launch, LeftBehind, LogSlice, ProcessEnd, RunningProcess
from luftpause.services.launcher.planning import EnginePlan, ModelPlan
from luftpause.services.launcher.service import LauncherService, Tools
from services.launcher.launcher_world import RecordingScheduler, catalogue, engine, model, poll, run


class Adopted:
    """A process that ends when it is signalled, or told to."""

    pid = 1
    alive = True

    def __init__(self) -> None:
        self.end = asyncio.Event()

    def listens_on(self, port: int) -> bool | None:
        return True

    def worked_s(self) -> float | None:
        return None

    def tail(self) -> tuple[str, ...]:
        return ()

    def signal(self, signal: StopSignal) -> None:
        self.end.set()

    async def ended(self) -> ProcessEnd:
        await self.end.wait()
        return ProcessEnd(code=None, tail=())


@dataclass
class Left:
    """What an earlier launcher left. `same`: it is what would be started now."""

    name: str
    port: int
    same: bool = True
    listening: bool | None = True
    adopted: Adopted | None = None
    asked: list[Launch] = field(default_factory=list)

    def is_of(self, launch: Launch) -> bool:
        self.asked.append(launch)
        return self.same

    def listens(self) -> bool | None:
        return self.listening

    def adopt(self) -> RunningProcess:
        self.adopted = Adopted()
        return self.adopted


@dataclass
class LeftHost:
    """A machine on which an earlier launcher left something, and nothing can be started."""

    left: Sequence[Left]
    ended: list[str] = field(default_factory=list)

    def left_behind(self) -> Sequence[LeftBehind]:
        return self.left

    def end_left_behind(self, grace_s: float) -> None:
        self.ended += [each.name for each in self.left if each.adopted is None]

    def free_port(self, host: str) -> int:
        raise NotImplementedError

    def lines(self, name: str, after: int) -> LogSlice:
        return LogSlice(lines=(), next=0)

    def start(self, launch: Launch) -> RunningProcess:
        raise CouldNotStartError("there is no such program")


@asynccontextmanager
async def answering(status: int = 200, body: bytes = b"") -> AsyncIterator[int]:
    """A port on which an engine answers its health path, and all others alike."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline() not in (b"", b"\r\n"):
            pass
        head = b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@dataclass
class World:
    """A launcher that comes after another one and has not started."""

    launcher: LauncherService
    scheduler: RecordingScheduler
    host: LeftHost


@asynccontextmanager
async def heir(plan: ModelPlan, *left: Left, adopt: bool = True, kv_folder: Path | None = None) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        engines, scheduler, host = HttpEngines(), RecordingScheduler(), LeftHost(left)
        stack.push_async_callback(engines.close)
        tools = Tools(host=host, engines=engines, meter=MachineMemory({}), kv_folder=kv_folder)
        launcher = LauncherService(catalogue(plan), tools, link=scheduler, replicas=scheduler)
        stack.push_async_callback(launcher.close)
        await launcher.take_over(adopt=adopt)
        yield World(launcher, scheduler, host)


def pair() -> tuple[EnginePlan, EnginePlan]:
    return engine(name="toy-1", instances=2), engine(name="toy-2", instances=2)


def test_a_healthy_engine_is_up_before_anybody_asks_and_is_kept_as_any_other() -> None:
    async def story() -> None:
        async with answering() as port, heir(model(engine()), left := Left("toy-1", port)) as world:
            assert world.host.ended == []
            assert f"--port {port}" in " ".join(left.asked[0].argv)
            (held,) = world.launcher.inventory().engines
            assert (held.phase, held.build) == (EnginePhase.UP, "1")
            assert held.replica is not None
            assert held.replica.endpoint.url == f"http://127.0.0.1:{port}"
            world.launcher.start()
            world.scheduler.load()
            assert (await world.scheduler.until(ModelUp)).replica == held.replica
            (view,) = world.launcher.snapshot()
            assert (view.state, view.pid) == ("ready", 1)
            world.scheduler.unload()
            assert (await world.scheduler.until(ModelDown)).why == "stopped as asked"

    run(story())


def test_an_adopted_engine_parks_kv_as_any_other(tmp_path: Path) -> None:
    async def story() -> None:
        plan = model(engine(parks=True))
        async with (
            answering(body=b'[{"id":0},{"id":1}]') as port,
            heir(plan, Left("toy-1", port), kv_folder=tmp_path) as world,
        ):
            assert world.launcher.inventory().engines[0].slots == 2
            world.launcher.start()
            world.scheduler.load()
            assert (await world.scheduler.until(ModelUp)).slots == 2

    run(story())


def test_an_adopted_engine_that_ends_is_told_as_a_crash() -> None:
    async def story() -> None:
        async with answering() as port, heir(model(engine()), left := Left("toy-1", port)) as world:
            world.launcher.start()
            assert left.adopted is not None
            left.adopted.end.set()
            assert (await world.scheduler.until(ModelDown)).why == "ended while it served (exit status unknown)"

    run(story())


@pytest.mark.parametrize(
    ("left", "status"),
    [
        (Left("toy-1", 1, same=False), 200),
        (Left("toy-1", 1, listening=False), 200),
        (Left("toy-1", 1), 503),
        (Left("toy-1", 0), 200),
        (Left("other-1", 1), 200),
    ],
    ids=["unlike", "stranger", "unwell", "nowhere", "unknown"],
)
def test_what_is_not_ours_as_it_would_be_started_now_or_is_not_well_is_ended(left: Left, status: int) -> None:
    async def story() -> None:
        async with answering(status) as port:
            left.port = left.port and port
            async with heir(model(engine()), left) as world:
                assert world.host.ended == [left.name]
                assert world.launcher.inventory().engines == ()

    run(story())


def test_what_a_command_stops_need_not_listen_itself() -> None:
    async def story() -> None:
        plan = model(engine(stop_argv=("stop",)))
        async with answering() as port, heir(plan, Left("toy-1", port, listening=False)) as world:
            assert world.host.ended == []
            world.launcher.start()

    run(story())


def test_nothing_is_kept_where_nothing_is_to_be_adopted() -> None:
    async def story() -> None:
        async with answering() as port, heir(model(engine()), Left("toy-1", port), adopt=False) as world:
            assert world.host.ended == ["toy-1"]

    run(story())


def test_of_several_engines_all_are_kept_or_none() -> None:
    async def story() -> None:
        async with answering() as first, answering() as second:
            async with heir(model(*pair()), Left("toy-1", first)) as world:
                assert world.host.ended == ["toy-1"]
            async with heir(model(*pair()), Left("toy-1", first), Left("toy-2", second)) as world:
                assert world.host.ended == []
                (held,) = world.launcher.inventory().engines
                assert held.replica is not None
                assert held.replica.replica == "toy-1"
                world.launcher.start()
                await poll(lambda: bool(world.scheduler.told))
                assert world.scheduler.told == ["+toy-2"]

    run(story())


def test_a_launcher_that_never_starts_ends_what_it_adopted() -> None:
    async def story() -> Left:
        async with answering() as port, heir(model(engine()), left := Left("toy-1", port)):
            pass
        return left

    left = run(story())
    assert left.adopted is not None
    assert left.adopted.end.is_set()
