"""What a launcher and a scheduler may rely on of each other, however they are linked."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from contracts.fake_desk import FakeDesk
from contracts.relay import Relay
from luftpause.adapters.link.client import RemoteLink
from luftpause.adapters.link.direct import DirectLauncherLink
from luftpause.adapters.link.server import Insiders, LinkServer
from luftpause.core.model.ids import CallerId, KvFile, LauncherId, ModelName, PeerId, PrincipalId, ReplicaId, RunId
from luftpause.core.model.models import RAM, Device, EnginePhase, HeldEngine, ModelGroup, ModelSpec
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.model.replicas import Endpoint, ReplicaSpec
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import (
    LauncherJoined,
    LauncherLost,
    LoadFailed,
    LoadProgressed,
    ModelDown,
    ModelReport,
    ModelUp,
)
from luftpause.core.scheduling.residency.reasons import KvDropReason, KvReason, LoadReason, UnloadReason, UnloadWhy
from luftpause.ports.launcher import LauncherLink, ModelOrder
from luftpause.ports.processes import LogSlice
from luftpause.services.scheduler.launchers import Launchers

T = TypeVar("T")
BOX = LauncherId("box")
M = ModelName("m")
TOKEN = "open sesame"
REPLICA = ReplicaSpec(replica=ReplicaId("m-1"), endpoint=Endpoint(url="http://127.0.0.1:1"), models=(M,))
SAVED = SavedKv(file=KvFile(7), tokens=900, size=2**30, took_s=0.25)
JOINED = LauncherJoined(
    launcher=BOX,
    devices=(Device(device=RAM, memory=2**40),),
    catalogue=(ModelSpec(model=M, aliases=(ModelName("n"),), group=ModelGroup(name="g", swap=True), ttl_s=1.5),),
    engines=(HeldEngine(model=M, phase=EnginePhase.UP, replica=REPLICA, memory=2**33, build="1", slots=4),),
    parking=2**32,
    kv=(SAVED,),
)
LOAD = LoadModel(launcher=BOX, model=M, why=LoadReason.AHEAD)
UNLOAD = UnloadModel(
    launcher=BOX, model=M, why=UnloadWhy(reason=UnloadReason.MAKES_ROOM, room_for=ModelName("b")), firmly=True
)
PARK = replace(
    UNLOAD,
    firmly=False,
    kv=(
        KvVerdict(slot=1, run=RunId("r"), tokens=900, why=KvReason.EXPECTED, file=KvFile(7)),
        KvVerdict(slot=2, run=RunId("s"), tokens=9, why=KvReason.NOT_WORTH),
    ),
)
DROP = DropKv(launcher=BOX, files=(KvFile(7),), why=KvDropReason.RUN_ENDED)
REPORTS = (
    LoadProgressed(model=M, fraction=0.5),
    ModelUp(model=M, replica=REPLICA, memory=2**33, slots=4),
    LoadFailed(model=M, cause="no such tensor", tail=("a", "b"), out_of_memory=True),
    ModelDown(model=M, why="stopped as asked", kv=(SAVED,), prefill_s=0.001),
)


@dataclass
class Seat:
    """A launcher that remembers its orders."""

    stock: LauncherJoined = JOINED
    orders: list[ModelOrder] = field(default_factory=list)

    def inventory(self) -> LauncherJoined:
        return self.stock

    def ordered(self, order: ModelOrder) -> None:
        self.orders.append(order)

    async def log(self, model: ModelName, after: int) -> LogSlice:
        return LogSlice(lines=(f"{model} from {after}",), next=after + 1)


class World:
    """In process."""

    def __init__(self) -> None:
        self.events: list[ModelReport] = []
        self.launchers = Launchers(self.events.append)
        self.link: LauncherLink = DirectLauncherLink(self.launchers)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator["World"]:
        yield self


class RemoteWorld(World):
    """Over TCP, through a relay that can be cut."""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator["World"]:
        server = LinkServer(FakeDesk([]), token=TOKEN, insiders=Insiders(launchers=self.launchers))
        self.relay = Relay()
        async with self.relay:
            await server.start()
            self.relay.target = server.port
            link = RemoteLink("127.0.0.1", self.relay.port, peer=PeerId("launcher_box"), token=TOKEN, retry_s=0.05)
            self.link = link
            await link.start()
            try:
                await link.ready()
                yield self
            finally:
                await link.close()
                await server.close()


WORLDS: dict[str, type[World]] = {"direct": World, "remote": RemoteWorld}


def run(work: Coroutine[None, None, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(10):
            return await work

    return asyncio.run(bounded())


async def until(holds: Callable[[], bool]) -> None:
    while True:
        if holds():
            return
        await asyncio.sleep(0.005)


@pytest.fixture(params=list(WORLDS))
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]()


def test_a_launcher_tells_all_that_it_has_and_all_that_happens_in_order(world: World) -> None:
    async def story() -> None:
        async with world.run():
            world.link.join(Seat())
            await until(lambda: bool(world.events))
            for report in REPORTS:
                world.link.tell(report)
            await until(lambda: len(world.events) == 1 + len(REPORTS))

    run(story())
    assert world.events[: 1 + len(REPORTS)] == [JOINED, *REPORTS]


def test_orders_come_whole_and_in_order(world: World) -> None:
    async def story() -> list[ModelOrder]:
        seat = Seat()
        async with world.run():
            world.link.join(seat)
            await until(lambda: bool(world.events))
            for order in (LOAD, UNLOAD, PARK, DROP):
                world.launchers.order(order)
            await until(lambda: len(seat.orders) == 4)
        return seat.orders

    assert run(story()) == [LOAD, UNLOAD, PARK, DROP]


def test_another_catalogue_is_told_like_the_first(world: World) -> None:
    async def story() -> None:
        seat = Seat()
        async with world.run():
            world.link.join(seat)
            seat.stock = LauncherJoined(launcher=BOX, devices=(), catalogue=())
            world.link.join(seat)
            await until(lambda: len(world.events) == 2)
            world.launchers.order(LOAD)
            await until(lambda: seat.orders == [LOAD])

    run(story())
    assert world.events[:2] == [JOINED, LauncherJoined(launcher=BOX, devices=(), catalogue=())]


def test_a_log_is_asked_and_answered(world: World) -> None:
    async def story() -> LogSlice:
        async with world.run():
            world.link.join(Seat())
            await until(lambda: bool(world.events))
            return await world.launchers.log(BOX, M, 7)

    assert run(story()) == LogSlice(lines=("m from 7",), next=8)


def test_nobody_is_ordered_or_heard_who_has_not_joined(world: World) -> None:
    async def story() -> LogSlice:
        async with world.run():
            world.launchers.order(LOAD)
            world.launchers.told(BOX, REPORTS[0])
            return await world.launchers.log(BOX, M, 7)

    assert run(story()) == LogSlice(lines=(), next=7)
    assert world.events == []


def test_a_lost_launcher_is_told_lost_once_and_joins_again_by_itself() -> None:
    world = RemoteWorld()

    async def story() -> None:
        async with world.run():
            seat = Seat()
            world.link.join(seat)
            await until(lambda: world.events == [JOINED])
            world.relay.cut()
            await until(lambda: len(world.events) == 3)
            assert world.events == [JOINED, LauncherLost(launcher=BOX), JOINED]
            world.launchers.order(LOAD)
            await until(lambda: seat.orders == [LOAD])
        await until(lambda: world.events[-1] == LauncherLost(launcher=BOX))

    run(story())


def test_who_pays_for_a_load_stays_with_the_scheduler() -> None:
    world = RemoteWorld()

    async def story() -> list[ModelOrder]:
        seat = Seat()
        async with world.run():
            world.link.join(seat)
            await until(lambda: bool(world.events))
            payer = (PrincipalId("p"), CallerId("c"))
            world.launchers.order(LoadModel(launcher=BOX, model=M, why=LoadReason.AHEAD, payer=payer))
            await until(lambda: bool(seat.orders))
        return seat.orders

    assert run(story()) == [LOAD]


def test_a_seat_whose_place_another_took_changes_nothing_when_it_leaves() -> None:
    events: list[ModelReport] = []
    launchers = Launchers(events.append)
    old, new = Seat(), Seat()
    launchers.joined(old, JOINED)
    launchers.joined(new, JOINED)
    launchers.left(old)
    launchers.order(LOAD)
    assert (old.orders, new.orders, events) == ([], [LOAD], [JOINED, JOINED])
