"""The launcher: does what the scheduler orders, and tells what became of it. It decides nothing.

A model is up when the first of its engines is ready, and down when nothing of any of them is left.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from luftpause.core.model.ids import KvFile, LauncherId, ModelName
from luftpause.core.model.replicas import Endpoint, ReplicaSpec
from luftpause.core.processes.reasons import Failure, explain
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherJoined, LoadFailed, LoadProgressed, ModelDown, ModelUp
from luftpause.ports.engines import Engines
from luftpause.ports.launcher import LauncherLink, LauncherReport, ModelOrder
from luftpause.ports.processes import LogSlice, MemoryMeter, ProcessHost
from luftpause.ports.scheduler import SchedulerLink
from luftpause.services.launcher.adopting import worth_keeping
from luftpause.services.launcher.instance import Instance, InstanceView
from luftpause.services.launcher.keeping import EngineKeeper
from luftpause.services.launcher.kv_files import KvFiles
from luftpause.services.launcher.kv_saving import KvSaving
from luftpause.services.launcher.memory import memory_back
from luftpause.services.launcher.ollama import OllamaError, OllamaModels
from luftpause.services.launcher.planning import LauncherPlan, ModelPlan
from luftpause.services.launcher.residents import Resident, looks_out_of_memory, says_out_of_memory

_LOG = logging.getLogger("luftpause.launcher")
_CLOSE_MARGIN_S: Final = 1.0
"""Past the wait for memory: the rest takes milliseconds."""
_TOLD_STEP: Final = 0.05
"""A load that got further by less is not told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a launcher works with.

    Attributes:
        meter: what engines take of the machine's memories.
        kv_folder: where engines write the KV of runs; None: nowhere.
    """

    host: ProcessHost
    engines: Engines
    meter: MemoryMeter
    kv_folder: Path | None = None


class LauncherService:
    """A `LauncherSeat`, and who is told by its keeper.

    Args:
        plan: what it can start.
        tools: what it works with.
        link: the scheduler, as launchers hold it.
        replicas: the scheduler, as it is told of the further engines of a model.
        on_change: called in the event loop whenever an engine goes from one state to another.
    """

    def __init__(
        self,
        plan: LauncherPlan,
        tools: Tools,
        *,
        link: LauncherLink,
        replicas: SchedulerLink,
        on_change: Callable[[InstanceView], None] | None = None,
    ) -> None:
        self._launcher: LauncherId = plan.launcher
        self._tools = tools
        self._link = link
        self._replicas = replicas
        self._keeper = EngineKeeper(
            tools.host, tools.engines, tools.meter, stop_grace_s=plan.stop_grace_s, on_change=on_change
        )
        self._ollama = OllamaModels(tools.engines)
        self.kv_folder: Final = tools.kv_folder
        self._kv_files = None if self.kv_folder is None else KvFiles(self.kv_folder, plan.parking)
        self._kv = None if self._kv_files is None else KvSaving(tools.engines, self._kv_files)
        self._plan = plan
        self._plans: Mapping[ModelName, ModelPlan] = {each.spec.model: each for each in plan.models}
        self._residents: dict[ModelName, Resident] = {}
        self._declarations: asyncio.Queue[Coroutine[None, None, None]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._is_started = self._is_ending = False

    async def take_over(self, *, adopt: bool) -> None:
        """Keep the engines that a launcher before us left where they are those we would start; end the rest.

        Before the start only. `adopt`: False ends all of them.
        """
        host = self._tools.host
        left = await asyncio.to_thread(host.left_behind)
        if not left:
            return
        kept = await worth_keeping(self._plans.values(), left, self._tools.engines) if adopt else ()
        for heirloom in kept:
            plan = heirloom.model
            resident = self._residents[plan.spec.model] = Resident(plan=plan)
            for engine, behind in heirloom.engines:
                instance = self._keeper.adopt(engine, behind, backoff_s=plan.backoff_s)
                resident.alive[engine.replica] = instance
            self._note_file(plan)
            first = next(iter(resident.alive.values()))
            await self._look(resident, first)
            resident.replica = first.spec()
        await asyncio.to_thread(host.end_left_behind, self._plan.stop_grace_s)

    def start(self) -> None:
        """Begin to take orders. Once only. Files of KV that are there are nobody's."""
        self._is_started = True
        if self._kv_files is not None:
            self._kv_files.clear()
        self._keeper.start(self)
        self._spawn(self._declare())
        # Of what was adopted, each first engine is told with the inventory. Joining may bring orders at once.
        further = [each for resident in self._residents.values() for each in tuple(resident.alive.values())[1:]]
        self._link.join(self)
        for instance in further:
            self.engine_ready(instance)

    async def close(self, *, drain_s: float = 0.0) -> None:
        """Declare nothing any more, so that the scheduler has each model go once it is idle; then end what is left.

        Args:
            drain_s: how long turns may take to end, seconds; 0 where no door is open any more.
        """
        if drain_s:
            self._plans, self._is_ending = {}, True
            self._link.join(self)
            try:
                async with asyncio.timeout(drain_s):
                    await self._until_all_down()
            except TimeoutError:
                _LOG.warning("launcher_drain_overdue", extra={"models": sorted(self._residents)})
        if self._residents and not self._is_started:
            self._keeper.start(self)  # so that somebody ends what was adopted
        await self._keeper.close()
        try:
            async with asyncio.timeout(self._plan.memory_wait_s + _CLOSE_MARGIN_S):
                await self._until_all_down()  # what waits for memory must still be told gone
        except TimeoutError:
            _LOG.warning("launcher_left_models", extra={"models": sorted(self._residents)})
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._kv_files is not None:
            await asyncio.to_thread(self._kv_files.clear)
        while not self._declarations.empty():
            self._declarations.get_nowait().close()

    def reload(self, plan: LauncherPlan) -> None:
        """Take another catalogue. What did not change goes on; the scheduler has the rest go once it is idle."""
        self._plan = plan
        self._plans = {each.spec.model: each for each in plan.models}
        self._keeper.give_grace(plan.stop_grace_s)
        if self._kv_files is not None:
            self._kv_files.resize(plan.parking)
        self._link.join(self)

    def snapshot(self) -> tuple[InstanceView, ...]:
        """Return every engine that was ever wanted as it is now."""
        return self._keeper.snapshot()

    def inventory(self) -> LauncherJoined:
        """See `LauncherSeat`."""
        return LauncherJoined(
            launcher=self._launcher,
            devices=self._plan.devices,
            catalogue=tuple(each.spec for each in self._plans.values()),
            engines=tuple(each.held() for each in self._residents.values()),
            parking=0 if self._kv_files is None else self._plan.parking,
            kv=() if self._kv_files is None else self._kv_files.kept(),
            is_ending=self._is_ending,
        )

    def ordered(self, order: ModelOrder) -> None:
        """See `LauncherSeat`."""
        match order:
            case LoadModel(model=model):
                self._load(model)
            case UnloadModel(model=model, kv=kv):
                self._unload(model, kv)
            case DropKv(files=files):
                self._spawn(self._drop_kv(files))
            case _:
                assert_never(order)

    async def log(self, model: ModelName, after: int) -> LogSlice:
        """See `LauncherSeat`. Of several engines, the first one's."""
        plan = self._plans.get(model)
        if plan is None or not plan.engines:
            return LogSlice(lines=(), next=0)
        return self._tools.host.lines(plan.engines[0].replica, after)

    def _load(self, model: ModelName) -> None:
        plan, resident = self._plans.get(model), self._residents.get(model)
        if resident is not None and resident.leaving:
            self._tell(LoadFailed(model=model, cause="its last engine is still being stopped"))
        elif resident is not None and resident.replica is not None:
            told = ModelUp(model=model, replica=resident.replica, memory=resident.memory, slots=resident.slots)
            self._tell(told)
        elif resident is None and plan is None:
            self._tell(LoadFailed(model=model, cause="this launcher knows no such model"))
        elif resident is None and plan is not None:
            resident = self._residents[model] = Resident(plan=plan)
            self._note_file(plan)
            if plan.ollama_url:
                self._spawn(self._load_ollama(resident))
                return
            for engine in plan.engines:
                resident.alive[engine.replica] = self._keeper.want(engine, backoff_s=plan.backoff_s)

    def _unload(self, model: ModelName, kv: Sequence[KvVerdict]) -> None:
        resident = self._residents.get(model)
        if resident is None:
            self._tell(ModelDown(model=model, why="nothing of it runs"))
        elif not resident.leaving:
            resident.leaving = True
            if resident.plan.ollama_url:
                self._spawn(self._unload_ollama(resident))
            resident.free_before = self._tools.meter.free(resident.plan.spec.device)
            if any(each.file is not None for each in kv) and resident.replica is not None:
                self._spawn(self._stop_saved(resident, resident.replica.endpoint, kv))
            else:
                self._stop(resident)

    async def _stop_saved(self, resident: Resident, endpoint: Endpoint, kv: Sequence[KvVerdict]) -> None:
        """Stop a model once its runs' KV is saved, or cannot be."""
        try:
            if self._kv is not None:
                resident.prefill_s = await self._kv.prefill_s(endpoint)
                resident.kv_asked = tuple(each.file for each in kv if each.file is not None)
                resident.kv = await self._kv.save(endpoint, kv)
        finally:
            self._stop(resident)

    async def _drop_kv(self, files: Sequence[KvFile]) -> None:
        if self._kv_files is not None and files:
            await asyncio.to_thread(self._kv_files.drop, files)

    def _stop(self, resident: Resident) -> None:
        for instance in tuple(resident.alive.values()):
            self._keeper.unwant(instance)

    def engine_ready(self, instance: Instance) -> None:
        """See `EngineWatcher`."""
        resident = self._resident_of(instance)
        if resident is not None:
            self._spawn(self._up(resident, instance, instance.spec()))

    def engine_progressed(self, instance: Instance) -> None:
        """See `EngineWatcher`."""
        resident = self._resident_of(instance)
        fraction = instance.progress.fraction
        if resident is not None and resident.replica is None and fraction >= resident.told + _TOLD_STEP:
            resident.told = fraction
            self._tell(LoadProgressed(model=resident.plan.spec.model, fraction=fraction))

    def engine_ended(self, instance: Instance, failure: Failure | None, retry_in_s: float | None) -> None:
        """See `EngineWatcher`."""
        if failure is not None:
            fields = {"replica": instance.plan.replica, "retry_in_s": retry_in_s, "tail": failure.tail}
            _LOG.warning("engine_failed", extra={"why": explain(failure), **fields})
        if retry_in_s is None:
            self._gone(instance, failure)

    def engine_withdrawn(self, instance: Instance) -> None:
        """See `EngineWatcher`. The first replica of a model goes with the model, as the scheduler knows it."""
        resident = self._resident_of(instance)
        if resident is not None and instance.plan.replica in resident.further:
            resident.further.discard(instance.plan.replica)
            self._declarations.put_nowait(self._replicas.remove_replica(instance.plan.replica))

    async def _up(self, resident: Resident, instance: Instance, spec: ReplicaSpec) -> None:
        if resident.replica is None:
            await self._look(resident, instance)
        if resident.leaving or instance.plan.replica not in resident.alive:
            return  # it went while it was measured
        if resident.replica is None or spec.replica == resident.replica.replica:
            resident.replica = spec  # or it came back by itself, on another port
            told = ModelUp(model=resident.plan.spec.model, replica=spec, memory=resident.memory, slots=resident.slots)
            self._tell(told)
        else:
            resident.further.add(spec.replica)
            self._declarations.put_nowait(self._replicas.add_replica(spec))

    async def _look(self, resident: Resident, instance: Instance) -> None:
        """See what a model's first engine took, and how many slots it has."""
        running, endpoint = instance.running, instance.endpoint
        if running is not None:
            taken = await asyncio.to_thread(self._tools.meter.taken, running.pid, instance.plan.device)
            resident.memory = taken * len(resident.plan.engines)
            if self._kv is not None and instance.plan.parks:
                resident.slots = await self._kv.slots(endpoint)

    def _note_file(self, plan: ModelPlan) -> None:
        if self._kv_files is not None and plan.engines:
            self._kv_files.is_for(plan.spec.model, plan.stamp())

    def _gone(self, instance: Instance, failure: Failure | None) -> None:
        resident = self._resident_of(instance)
        if resident is None:
            return
        del resident.alive[instance.plan.replica]
        resident.failure = failure or resident.failure
        if not resident.alive:
            self._spawn(self._down(resident))

    async def _down(self, resident: Resident) -> None:
        """Tell that nothing of a model is left, once its memory is back too."""
        device, taken = resident.plan.spec.device, resident.memory
        wait_s = self._plan.memory_wait_s
        await memory_back(self._tools.meter, device, taken, before=resident.free_before, wait_s=wait_s)
        model, failure = resident.plan.spec.model, resident.failure
        kept = {each.file for each in resident.kv}
        await self._drop_kv([file for file in resident.kv_asked if file not in kept])
        self._forget(model)
        if resident.leaving or failure is None:
            self._tell_down(
                ModelDown(model=model, why="stopped as asked", kv=resident.kv, prefill_s=resident.prefill_s)
            )
        elif resident.replica is not None:
            self._tell(ModelDown(model=model, why=explain(failure)))
        else:
            short = looks_out_of_memory(failure)
            self._tell(LoadFailed(model=model, cause=explain(failure), tail=failure.tail, out_of_memory=short))

    async def _load_ollama(self, resident: Resident) -> None:
        model = resident.plan.spec.model
        try:
            resident.memory = await self._ollama.load(resident.plan.ollama_url, model)
        except OllamaError as error:
            if not resident.leaving:
                self._forget(model)
                short = says_out_of_memory(str(error))
                self._tell(LoadFailed(model=model, cause=str(error), out_of_memory=short))
            return
        if not resident.leaving:
            resident.replica = self._ollama.replica(resident.plan)
            self._tell(ModelUp(model=model, replica=resident.replica, memory=resident.memory))

    async def _unload_ollama(self, resident: Resident) -> None:
        model, why = resident.plan.spec.model, "unloaded as asked"
        try:
            await self._ollama.unload(resident.plan.ollama_url, model)
        except OllamaError as error:
            why = str(error)
        self._forget(model)
        self._tell(ModelDown(model=model, why=why))

    def _forget(self, model: ModelName) -> None:
        del self._residents[model]
        self._changed.set()

    def _resident_of(self, instance: Instance) -> Resident | None:
        resident = self._residents.get(instance.plan.models[0])
        return resident if resident is not None and resident.alive.get(instance.plan.replica) is instance else None

    async def _until_all_down(self) -> None:
        while self._residents:
            self._changed.clear()
            await self._changed.wait()

    def _tell_down(self, told: ModelDown) -> None:
        """Tell that a model is down: without its KV, where what its engine said of it cannot be told."""
        try:
            self._tell(told)
        except (ValueError, TypeError, OverflowError):
            _LOG.exception("kv_not_told", extra={"model": told.model})
            self._spawn(self._drop_kv([each.file for each in told.kv]))
            self._tell(ModelDown(model=told.model, why=told.why))

    def _tell(self, report: LauncherReport) -> None:
        self._link.tell(report)

    async def _declare(self) -> None:
        """Tell the scheduler of further engines, one at a time and in order; a link that is away holds up nothing."""
        while True:
            declaration = await self._declarations.get()
            try:
                await declaration
            except Exception:  # noqa: BLE001 - the link's own faults are for people; the engines run on
                _LOG.exception("declaration_failed")

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("launcher_task_failed", exc_info=error)
