"""A launcher over real processes, with a scheduler that orders what the test says and remembers what it is told."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.memory_meter import MachineMemory
from luftpause.adapters.process_host.host import LocalProcessHost
from luftpause.adapters.process_host.marks import ProcessMarks
from luftpause.core.model.ids import KvFile, LauncherId, ModelName, PeerId, PrincipalId, ReplicaId, RunId
from luftpause.core.model.models import ModelSpec
from luftpause.core.model.replicas import EngineKind, ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import TurnReport
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.reasons import KvDropReason, LoadReason, UnloadReason, UnloadWhy
from luftpause.ports.launcher import LauncherReport, LauncherSeat
from luftpause.ports.processes import MemoryMeter, ProcessHost
from luftpause.ports.scheduler import Recall, Ticket
from luftpause.services.launcher.instance import InstanceView
from luftpause.services.launcher.planning import EnginePlan, LauncherPlan, ModelPlan
from luftpause.services.launcher.service import LauncherService, Tools

T = TypeVar("T")
V = TypeVar("V", EnginePlan, ModelSpec)
R = TypeVar("R", bound=LauncherReport)
TOY = str(Path(__file__).with_name("toy_engine.py"))
LOCAL = LauncherId("local")


@dataclass
class RecordingScheduler:
    """Both links of a launcher. `fails`: declarations raise."""

    told: list[str] = field(default_factory=list)
    specs: dict[ReplicaId, ReplicaSpec] = field(default_factory=dict)
    reports: list[LauncherReport] = field(default_factory=list)
    joins: int = 0
    fails: bool = False
    seat: LauncherSeat | None = None
    stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def join(self, seat: LauncherSeat) -> None:
        self.seat = seat
        self.joins += 1

    def tell(self, report: LauncherReport) -> None:
        self.reports.append(report)
        self.stirred.set()

    async def add_replica(self, spec: ReplicaSpec) -> None:
        self.told.append(f"+{spec.replica}")
        if self.fails:
            raise RuntimeError("the link broke")
        self.specs[spec.replica] = spec

    async def remove_replica(self, replica: ReplicaId) -> None:
        self.told.append(f"-{replica}")
        self.specs.pop(replica, None)

    async def admit(self, offer: TurnOffer) -> Ticket:
        raise NotImplementedError

    def report(self, report: TurnReport) -> None:
        raise NotImplementedError

    def attend(self, peer: PeerId, recall: Recall) -> None:
        raise NotImplementedError

    async def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        raise NotImplementedError

    async def models(self) -> Sequence[ModelName]:
        raise NotImplementedError

    def load(self, model: str = "toy") -> None:
        assert self.seat is not None
        self.seat.ordered(LoadModel(launcher=LOCAL, model=ModelName(model), why=LoadReason.TURNS_WAIT))

    def unload(self, model: str = "toy", *, firmly: bool = False, kv: tuple[KvVerdict, ...] = ()) -> None:
        assert self.seat is not None
        why = UnloadWhy(reason=UnloadReason.IDLE)
        self.seat.ordered(UnloadModel(launcher=LOCAL, model=ModelName(model), why=why, firmly=firmly, kv=kv))

    def drop(self, *files: int) -> None:
        assert self.seat is not None
        numbers = tuple(map(KvFile, files))
        self.seat.ordered(DropKv(launcher=LOCAL, files=numbers, why=KvDropReason.RUN_ENDED))

    async def until(self, kind: type[R], *, times: int = 1) -> R:
        """Return a report of a kind, once it was told so often."""
        while True:
            found = [report for report in self.reports if isinstance(report, kind)]
            if len(found) >= times:
                return found[times - 1]
            self.stirred.clear()
            await self.stirred.wait()


@dataclass
class World:
    """A launcher under test, and every change of state that it told."""

    launcher: LauncherService
    scheduler: RecordingScheduler
    engines: HttpEngines
    changes: list[InstanceView] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, view: InstanceView) -> None:
        self.changes.append(view)
        self.changed.set()

    async def until_state(self, state: str, *, times: int = 1) -> InstanceView:
        while self.states().count(state) < times:
            self.changed.clear()
            await self.changed.wait()
        return [view for view in self.changes if view.state == state][times - 1]

    def states(self) -> list[str]:
        return [view.state for view in self.changes]


def engine(*args: str, name: str = "toy-1", **changes: object) -> EnginePlan:
    model, _, instance = name.rpartition("-")
    plan = EnginePlan(
        replica=ReplicaId(name),
        models=(ModelName(model), ModelName(f"{model}-alias")),
        instance=int(instance),
        instances=1,
        argv=(sys.executable, TOY, "--port", "${port}", *args),
        port=0,
        env={},
        health="/health",
        engine=EngineKind.AUTO,
        readiness_timeout_s=10.0,
    )
    return changed(plan, changes)


def changed(value: V, changes: Mapping[str, object]) -> V:
    """Return a dataclass with other values; the test knows their types."""
    return replace(value, **changes)  # type: ignore[arg-type]


def model(*engines: EnginePlan, **changes: object) -> ModelPlan:
    spec = ModelSpec(model=engines[0].models[0], aliases=engines[0].models[1:], build="1")
    return ModelPlan(spec=changed(spec, changes), engines=engines)


def catalogue(*models: ModelPlan, stop_grace_s: float = 5.0) -> LauncherPlan:
    return LauncherPlan(launcher=LOCAL, models=models, stop_grace_s=stop_grace_s, parking=1 << 20)


@dataclass(frozen=True)
class Ground:
    """What a launcher of a test stands on, where it is not this machine as it is."""

    host: ProcessHost | None = None
    meter: MemoryMeter | None = None
    marks: ProcessMarks | None = None
    scheduler: RecordingScheduler | None = None
    kv_folder: Path | None = None


@asynccontextmanager
async def launched(*models: ModelPlan, stop_grace_s: float = 5.0, ground: Ground = Ground()) -> AsyncIterator[World]:
    """A launcher that has joined and was ordered nothing yet."""
    scheduler = ground.scheduler or RecordingScheduler()
    engines = HttpEngines()
    changes: list[Callable[[InstanceView], None]] = []
    tools = Tools(
        host=ground.host or LocalProcessHost(os.environ, marks=ground.marks),
        engines=engines,
        meter=ground.meter or MachineMemory({}),
        kv_folder=ground.kv_folder,
    )
    launcher = LauncherService(
        catalogue(*models, stop_grace_s=stop_grace_s),
        tools,
        link=scheduler,
        replicas=scheduler,
        on_change=lambda view: changes[0](view),
    )
    world = World(launcher, scheduler, engines)
    changes.append(world.note)
    launcher.start()
    try:
        yield world
    finally:
        await launcher.close()
        await engines.close()


def run(work: Coroutine[None, None, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(25):
            return await work

    return asyncio.run(bounded())


async def poll(holds: Callable[[], bool]) -> None:
    """Return once it holds, for what announces itself nowhere."""
    while True:
        if holds():
            return
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(shown.strip()) and not shown.strip().startswith("Z")
