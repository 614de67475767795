"""The launcher over real processes: what it does when it is ordered, and what it tells of it."""

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from luftpause.core.model.ids import DeviceId, KvFile, ModelName, ReplicaId, RunId
from luftpause.core.model.models import EnginePhase, HeldEngine
from luftpause.core.scheduling.residency.actions import KvVerdict
from luftpause.core.scheduling.residency.events import LoadFailed, LoadProgressed, ModelDown, ModelUp
from luftpause.core.scheduling.residency.reasons import KvReason
from luftpause.ports.launcher import LauncherReport, LauncherSeat
from luftpause.services.launcher import planning
from luftpause.services.launcher.planning import EnginePlan
from services.launcher.launcher_world import (
    LOCAL,
    Ground,
    RecordingScheduler,
    catalogue,
    engine,
    is_alive,
    launched,
    model,
    poll,
    run,
)
from testkit.running import request

TOY = ModelName("toy")


def starts(count: Path) -> int:
    return len(count.read_text()) if count.exists() else 0


def test_nothing_starts_before_it_is_ordered_and_one_order_starts_one_engine(tmp_path: Path) -> None:
    count = tmp_path / "count"

    async def story() -> None:
        async with launched(model(engine("--count", str(count)))) as world:
            assert world.scheduler.joins == 1
            assert starts(count) == 0
            world.scheduler.load()
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            assert (up.model, up.replica.replica, up.replica.models) == ("toy", "toy-1", ("toy",))
            (view,) = world.launcher.snapshot()
            assert (view.state, view.url) == ("ready", up.replica.endpoint.url)
            world.scheduler.load()
            assert await world.scheduler.until(ModelUp, times=2) == up
            assert starts(count) == 1

    run(story())


class Eager(RecordingScheduler):
    """Orders a load as soon as it is joined, as one in the same process does for what is to be preloaded."""

    def join(self, seat: LauncherSeat) -> None:
        super().join(seat)
        self.load()


def test_an_order_that_comes_while_it_joins_is_one_like_any_other() -> None:
    async def story() -> None:
        engines = (engine(name="toy-1", instances=2), engine(name="toy-2", instances=2))
        async with launched(model(*engines), ground=Ground(scheduler=Eager())) as world:
            await world.scheduler.until(ModelUp)
            await poll(lambda: len(world.scheduler.specs) == 1)

    run(story())


def test_what_an_engine_holds_is_measured_and_told_with_its_readiness() -> None:
    async def story() -> None:
        async with launched(model(engine("--memory-mib", "64"))) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            assert up.memory > 64 * 2**20

    run(story())


def test_an_engine_behind_a_wrapper_is_ours_and_ends_with_it() -> None:
    async def story() -> None:
        async with launched(model(engine("--wrap", "--memory-mib", "64"))) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            assert up.memory > 64 * 2**20, "the wrapper's child is counted"
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)
            port = int(up.replica.endpoint.url.rpartition(":")[2])
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)

    run(story())


def test_a_broken_model_fails_once_with_its_last_words_and_can_be_tried_again(tmp_path: Path) -> None:
    count = tmp_path / "count"

    async def story() -> None:
        async with launched(model(engine("--fail", "no such tensor", "--count", str(count)))) as world:
            world.scheduler.load()
            failed = await world.scheduler.until(LoadFailed)
            assert failed.cause == "ended before it was ready (exit status 1): no such tensor"
            assert failed.tail == ("no such tensor",)
            assert not failed.out_of_memory
            assert starts(count) == 1
            world.scheduler.load()
            await world.scheduler.until(LoadFailed, times=2)
            assert starts(count) == 2

    run(story())


@pytest.mark.parametrize("words", ["CUDA error: out of memory", "ggml: failed to allocate buffer", "std::bad_alloc"])
def test_an_engine_that_ran_out_of_memory_says_so(words: str) -> None:
    async def story() -> bool:
        async with launched(model(engine("--fail", words))) as world:
            world.scheduler.load()
            return (await world.scheduler.until(LoadFailed)).out_of_memory

    assert run(story())


def test_an_engine_that_never_becomes_ready_fails_at_its_limit_and_its_group_is_gone() -> None:
    async def story() -> None:
        plan = engine("--load-s", "60", "--fork", readiness_timeout_s=0.5)
        async with launched(model(plan)) as world:
            world.scheduler.load()
            failed = await world.scheduler.until(LoadFailed)
            assert failed.cause.startswith("was not ready in time")
            assert not is_alive(world.changes[0].pid)

    run(story())


def test_progress_extends_the_limit_of_a_load_and_is_told() -> None:
    async def story() -> None:
        # Three looks at its progress fit into its load, which alone takes twice its limit.
        plan = engine("--talks", "--load-s", "3", readiness_timeout_s=1.5)
        async with launched(model(plan)) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            told = [report.fraction for report in world.scheduler.reports if isinstance(report, LoadProgressed)]
            assert told == sorted(told)
            assert 0 < told[0] < told[-1] < 1

    run(story())


def test_a_load_is_cut_short_by_an_order_to_unload() -> None:
    async def story() -> None:
        async with launched(model(engine("--load-s", "60"))) as world:
            world.scheduler.load()
            view = await world.until_state("starting")
            world.scheduler.unload(firmly=True)
            down = await world.scheduler.until(ModelDown)
            assert down.why == "stopped as asked"
            assert not is_alive(view.pid)
            assert [type(report) for report in world.scheduler.reports] == [ModelDown]

    run(story())


def test_an_order_to_unload_what_does_not_run_is_answered_at_once() -> None:
    async def story() -> None:
        async with launched(model(engine())) as world:
            world.scheduler.unload()
            assert world.scheduler.reports == [ModelDown(model=TOY, why="nothing of it runs")]

    run(story())


def test_orders_that_make_no_sense_are_answered_so_that_nothing_waits_for_ever() -> None:
    async def story() -> None:
        async with launched(model(engine("--ignore-term")), stop_grace_s=0.3) as world:
            world.scheduler.load("unheard-of")
            assert isinstance(world.scheduler.reports[-1], LoadFailed)
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            world.scheduler.unload()
            world.scheduler.load()
            assert world.scheduler.reports[-1] == LoadFailed(model=TOY, cause="its last engine is still being stopped")
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)

    run(story())


def test_a_stuck_engine_and_its_children_are_killed_at_the_grace_and_the_port_is_free() -> None:
    async def story() -> None:
        async with launched(model(engine("--ignore-term", "--fork")), stop_grace_s=0.3) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)
            with socket.create_server(("127.0.0.1", int(up.replica.endpoint.url.rpartition(":")[2]))):
                pass

    run(story())


@pytest.mark.parametrize("command", ["exit 3", "sleep 60", ""])
def test_a_stop_command_that_fails_is_followed_by_signals(command: str) -> None:
    async def story() -> None:
        argv = ("sh", "-c", command) if command else ("/no/such/program",)
        async with launched(model(engine(stop_argv=argv)), stop_grace_s=0.5) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            pid = world.launcher.snapshot()[0].pid
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)
            assert not is_alive(pid)

    run(story())


def test_a_stop_command_ends_its_engine_well_within_the_grace(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    async def story() -> list[str]:
        plan = engine("--pid-file", str(pid_file), stop_argv=("sh", "-c", f"kill -9 $(cat {pid_file})"))
        async with launched(model(plan), stop_grace_s=60.0) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)
            return world.states()

    assert run(story()) == ["starting", "ready", "stopping", "exited"]


def test_a_fixed_port_that_somebody_has_is_refused_before_anything_starts(tmp_path: Path) -> None:
    count = tmp_path / "count"

    async def story(port: int) -> None:
        async with launched(model(engine("--count", str(count), port=port))) as world:
            world.scheduler.load()
            failed = await world.scheduler.until(LoadFailed)
            assert failed.cause == f"could not be started: port {port} on 127.0.0.1 is taken by another program"
            assert starts(count) == 0

    with socket.create_server(("127.0.0.1", 0)) as squatter:
        run(story(squatter.getsockname()[1]))


def test_a_crash_is_told_and_nothing_comes_back_by_itself(tmp_path: Path) -> None:
    count = tmp_path / "count"

    async def story() -> None:
        async with launched(model(engine("--count", str(count)), auto_restart=True)) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            os.kill(world.launcher.snapshot()[0].pid, signal.SIGKILL)
            down = await world.scheduler.until(ModelDown)
            assert down.why == "ended while it served (signal 9)"
            assert starts(count) == 1, "whether it comes back is the scheduler's to say"
            world.scheduler.load()
            await world.scheduler.until(ModelUp, times=2)

    run(story())


def test_a_model_of_several_engines_is_up_with_the_first_and_stays_while_one_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "BACKOFF_S", (0.02, 0.04, 0.08))

    async def story() -> None:
        engines = (engine(name="toy-1"), engine(name="toy-2"))
        async with launched(model(*engines, auto_restart=True)) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            await poll(lambda: len(world.scheduler.specs) == 1)
            assert {up.replica.replica, *world.scheduler.specs} == {"toy-1", "toy-2"}
            first = next(view for view in world.launcher.snapshot() if view.replica == up.replica.replica)
            os.kill(first.pid, signal.SIGKILL)
            back = await world.scheduler.until(ModelUp, times=2)
            assert back.replica.replica == up.replica.replica
            assert back.replica.endpoint != up.replica.endpoint
            assert not any(isinstance(report, ModelDown) for report in world.scheduler.reports)
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)
            await poll(lambda: not world.scheduler.specs)
            assert len([report for report in world.scheduler.reports if isinstance(report, ModelDown)]) == 1

    run(story())


def test_the_inventory_names_all_that_runs_with_the_settings_of_its_start() -> None:
    async def story() -> None:
        slow, quick = model(engine("--load-s", "60", name="slow-1")), model(engine(name="quick-1"))
        async with launched(slow, quick) as world:
            assert world.launcher.inventory().engines == ()
            world.scheduler.load("slow")
            world.scheduler.load("quick")
            up = await world.scheduler.until(ModelUp)
            world.launcher.reload(catalogue(replace(quick, spec=replace(quick.spec, build="2"))))
            assert world.scheduler.joins == 2
            inventory = world.launcher.inventory()
            assert [spec.build for spec in inventory.catalogue] == ["2"]
            assert inventory.engines == (
                HeldEngine(model=ModelName("slow"), phase=EnginePhase.LOADING, build="1"),
                HeldEngine(
                    model=ModelName("quick"), phase=EnginePhase.UP, replica=up.replica, memory=up.memory, build="1"
                ),
            )
            world.scheduler.unload("slow")
            assert world.launcher.inventory().engines[0].phase is EnginePhase.STOPPING

    run(story())


def test_a_grace_that_is_read_anew_holds_for_what_is_started_then() -> None:
    """The story is over well before the first grace is."""

    async def story() -> None:
        stubborn = model(engine("--ignore-term"))
        async with launched(stubborn, stop_grace_s=60.0) as world:
            world.launcher.reload(catalogue(stubborn, stop_grace_s=0.3))
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)

    run(story())


def test_a_launcher_that_leaves_has_its_models_go_idle_first() -> None:
    async def story() -> None:
        async with launched(model(engine())) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            closing = asyncio.create_task(world.launcher.close(drain_s=20.0))
            await poll(lambda: world.scheduler.joins == 2)
            assert world.launcher.inventory().catalogue == ()
            assert world.launcher.inventory().is_ending
            assert len(world.launcher.inventory().engines) == 1
            assert not closing.done()
            world.scheduler.unload()
            await closing
            assert isinstance(world.scheduler.reports[-1], ModelDown)

    run(story())


def test_a_launcher_that_waited_long_enough_ends_what_is_left_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with launched(model(engine())) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            pid = world.launcher.snapshot()[0].pid
            await world.launcher.close(drain_s=0.05)
            assert not is_alive(pid)
            assert isinstance(world.scheduler.reports[-1], ModelDown)

    run(story())
    assert "launcher_drain_overdue" in [record.message for record in caplog.records]


def test_what_an_engine_wrote_can_be_read_from_any_line_on() -> None:
    async def story() -> None:
        async with launched(model(engine("--talks"))) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            whole = await world.launcher.log(TOY, 0)
            assert whole.lines[0] == "loading weights: 0% done"
            rest = await world.launcher.log(TOY, whole.next - 1)
            assert rest.lines == ("loading weights: 100% done",)
            assert (await world.launcher.log(TOY, whole.next)).lines == ()
            assert (await world.launcher.log(ModelName("unheard-of"), 0)).lines == ()

    run(story())


def test_a_thousand_orders_of_unload_and_load_leave_nothing_more_than_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with launched(model(engine("--fail", "x", argv=("/no/such/program",)))) as world:
            for nth in range(1, 1001):
                world.scheduler.load()
                await world.scheduler.until(LoadFailed, times=nth)
                world.scheduler.unload()
            assert len(world.launcher.snapshot()) == 1
            assert world.launcher.inventory().engines == ()

    run(story())


class SlowlyFreed:
    """An accelerator whose memory comes back some looks after its engine is gone."""

    def __init__(self) -> None:
        self.looks = 0

    def taken(self, pid: int, device: DeviceId) -> int:
        return 1000

    def free(self, device: DeviceId) -> int | None:
        self.looks += 1
        return 5000 + (1000 if self.looks > 4 else 0)


def test_a_model_is_down_only_when_its_memory_is_back() -> None:
    meter = SlowlyFreed()

    async def story() -> None:
        async with launched(model(engine()), ground=Ground(meter=meter)) as world:
            world.scheduler.load()
            assert (await world.scheduler.until(ModelUp)).memory == 1000
            world.scheduler.unload()
            await world.scheduler.until(ModelDown)
            assert meter.looks == 5

    run(story())


def test_a_link_that_breaks_on_a_declaration_does_not_stop_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        ground = Ground(scheduler=RecordingScheduler(fails=True))
        async with launched(model(engine(name="toy-1"), engine(name="toy-2")), ground=ground) as world:
            world.scheduler.load()
            await world.until_state("ready", times=2)
            await poll(lambda: bool(world.scheduler.told))

    run(story())
    assert "declaration_failed" in [record.message for record in caplog.records]


def test_names_that_lead_nowhere_start_nothing() -> None:
    async def story() -> None:
        async with launched(model(engine())) as world:
            for name in ("../../etc/passwd", "toy\0", "TOY", "x" * 10_000, "toy-alias"):
                world.scheduler.load(name)
                assert isinstance(world.scheduler.reports[-1], LoadFailed)
            assert world.launcher.snapshot() == ()
            assert ReplicaId("toy-1") not in world.scheduler.specs
            assert world.launcher.inventory().launcher == LOCAL

    run(story())


SLOTS = ("--slot-save-path", "{folder}", "--slot-bytes", "10", "--metrics-style", "llama.cpp")


def parking_engine(folder: Path) -> EnginePlan:
    argv = (sys.executable, "-m", "luftpause", "fake-engine", "--port", "${port}", "--model", "toy", "--ttft-ms", "0")
    return replace(engine(), argv=(*argv, *(word.replace("{folder}", str(folder)) for word in SLOTS)), parks=True)


async def talk(url: str) -> None:
    """Have a conversation in the second slot."""
    task = {"role": "user", "content": "hello " * 50 + "[tools:0] [tokens:2]"}
    body = json.dumps({"model": "toy", "id_slot": 1, "messages": [task]}).encode()
    status, _, _ = await request(f"{url}/v1/chat/completions", method="POST", body=body)
    assert status == 200


def verdict(slot: int, file: int) -> KvVerdict:
    return KvVerdict(slot=slot, run=RunId("r"), tokens=70, why=KvReason.EXPECTED, file=KvFile(file))


def test_the_kv_of_runs_is_saved_before_the_stop_and_deleted_when_ordered(tmp_path: Path) -> None:
    (tmp_path / "run-3.kv").touch()

    async def story() -> ModelDown:
        planned = model(parking_engine(tmp_path))
        async with launched(planned, ground=Ground(kv_folder=tmp_path)) as world:
            assert world.launcher.inventory().parking == 1 << 20
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            assert up.slots == 8
            assert world.launcher.inventory().engines[0].slots == 8
            await talk(up.replica.endpoint.url)
            world.scheduler.unload(kv=(verdict(1, 7), verdict(2, 8)))
            down = await world.scheduler.until(ModelDown)
            assert world.launcher.inventory().kv == down.kv
            world.scheduler.drop(7)
            await poll(lambda: not world.launcher.inventory().kv)
        return down

    down = run(story())
    assert [(saved.file, saved.size) for saved in down.kv] == [(7, down.kv[0].tokens * 10)]
    assert down.prefill_s > 0
    assert list(tmp_path.iterdir()) == []


class CannotTellKv(RecordingScheduler):
    """A link that cannot carry what an engine said of its slots."""

    def tell(self, report: LauncherReport) -> None:
        if isinstance(report, ModelDown) and report.kv:
            raise OverflowError("can't serialize integers of more than 64 bits")
        super().tell(report)


def test_a_model_is_told_down_even_where_its_kv_cannot_be_told(tmp_path: Path) -> None:
    async def story() -> None:
        planned = model(parking_engine(tmp_path))
        async with launched(planned, ground=Ground(kv_folder=tmp_path, scheduler=CannotTellKv())) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            await talk(up.replica.endpoint.url)
            world.scheduler.unload(kv=(verdict(1, 7),))
            assert await world.scheduler.until(ModelDown) == ModelDown(model=TOY, why="stopped as asked")
            await poll(lambda: not world.launcher.inventory().kv)

    run(story())
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_saved_and_the_stop_comes_all_the_same() -> None:
    async def story() -> None:
        async with launched(model(engine())) as world:
            world.scheduler.load()
            assert (await world.scheduler.until(ModelUp)).slots == 0
            world.scheduler.unload(kv=(verdict(0, 7),))
            assert (await world.scheduler.until(ModelDown)).kv == ()
            world.scheduler.drop(7)

    run(story())


def test_an_engine_that_cannot_say_its_slots_is_up_with_none(tmp_path: Path) -> None:
    async def story() -> None:
        planned = model(replace(engine(), parks=True))
        async with launched(planned, ground=Ground(kv_folder=tmp_path)) as world:
            world.scheduler.load()
            assert (await world.scheduler.until(ModelUp)).slots == 0

    run(story())
