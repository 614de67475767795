"""The launcher over real processes: what it starts, declares, restarts and stops."""

import asyncio
import itertools
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.process_host import LocalProcessHost
from luftpause.core.model.ids import Instant, ModelName, PrincipalId, ReplicaId, RunId
from luftpause.core.model.replicas import Endpoint, EngineKind, ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.processes.actions import StopSignal
from luftpause.core.processes.decide import Decision, decide
from luftpause.core.processes.events import Event, ProbeFailed, ProbeSucceeded
from luftpause.core.processes.state import EngineProcess, Limits
from luftpause.core.scheduling.events import TurnReport
from luftpause.ports.engines import EngineRequest
from luftpause.ports.processes import Launch, ProcessEnd
from luftpause.ports.scheduler import Ticket
from luftpause.services.launcher import service as service_module
from luftpause.services.launcher.instance import InstanceView
from luftpause.services.launcher.planning import EnginePlan, LauncherPlan
from luftpause.services.launcher.service import LauncherService

T = TypeVar("T")
TOY = str(Path(__file__).with_name("toy_engine.py"))


@dataclass
class RecordingLink:
    """A scheduler that only remembers what it was told. `fails`: declarations raise."""

    told: list[str] = field(default_factory=list)
    specs: dict[ReplicaId, ReplicaSpec] = field(default_factory=dict)
    fails: bool = False

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

    async def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        raise NotImplementedError

    async def models(self) -> Sequence[ModelName]:
        raise NotImplementedError


@dataclass
class World:
    """A launcher under test, and every change of state that it told."""

    launcher: LauncherService
    link: RecordingLink
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
    plan = EnginePlan(
        replica=ReplicaId(name),
        models=(ModelName("toy"), ModelName("alias")),
        instance=int(name.rpartition("-")[2]),
        instances=1,
        argv=(sys.executable, TOY, "--port", "${port}", *args),
        port=0,
        env={},
        health="/health",
        engine=EngineKind.AUTO,
        readiness_timeout_s=10.0,
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def launched(*plans: EnginePlan, stop_grace_s: float = 5.0, fails: bool = False) -> AsyncIterator[World]:
    link = RecordingLink(fails=fails)
    engines = HttpEngines()
    changes: list[Callable[[InstanceView], None]] = []
    launcher = LauncherService(
        LauncherPlan(engines=plans, stop_grace_s=stop_grace_s),
        LocalProcessHost(os.environ),
        engines=engines,
        link=link,
        on_change=lambda view: changes[0](view),
    )
    world = World(launcher, link, engines)
    changes.append(world.note)
    await launcher.start()
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


@pytest.fixture
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pauses in milliseconds."""
    monkeypatch.setattr(
        service_module,
        "Limits",
        lambda *, readiness_timeout_s, stop_grace_s: Limits(
            readiness_timeout_s=readiness_timeout_s, stop_grace_s=stop_grace_s, backoff_s=(0.02, 0.04, 0.08)
        ),
    )


async def status(world: World, url: str) -> int:
    request = EngineRequest(method=b"GET", path=b"/health", headers=(), body=b"")
    exchange = await world.engines.send(Endpoint(url=url), request)
    exchange.close()
    return exchange.status


def is_alive(pid: int) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(shown.strip()) and not shown.strip().startswith("Z")


def test_every_instance_is_started_declared_and_told_ready() -> None:
    async def story() -> None:
        plans = (engine(name="toy-1"), engine(name="toy-2"))
        async with launched(*plans) as world:
            await world.until_state("ready", times=2)
            views = world.launcher.snapshot()
            assert [(view.model, view.replica, view.state) for view in views] == [
                ("toy", "toy-1", "ready"),
                ("toy", "toy-2", "ready"),
            ]
            assert [await status(world, view.url) for view in views] == [200, 200]
            assert sorted(world.link.specs) == ["toy-1", "toy-2"]
            spec = world.link.specs[ReplicaId("toy-2")]
            assert spec.endpoint == Endpoint(url=views[1].url)
            assert spec.models == ("toy", "alias")
            pids = [view.pid for view in views]
            assert all(map(is_alive, pids))
        assert not any(map(is_alive, pids))
        assert sorted(world.link.told) == ["+toy-1", "+toy-2", "-toy-1", "-toy-2"]
        assert [view.state for view in world.launcher.snapshot()] == ["exited", "exited"]
        assert world.launcher.snapshot()[0].pid == 0

    run(story())


def test_a_loading_engine_is_declared_before_it_is_ready() -> None:
    async def story() -> None:
        async with launched(engine("--load-s", "60")) as world:
            await world.until_state("starting")
            await poll(lambda: bool(world.link.told))
            assert world.link.told == ["+toy-1"]
            assert world.states() == ["starting"]
        assert world.states() == ["starting", "stopping", "exited"]

    run(story())


@pytest.mark.usefixtures("quick_restarts")
def test_an_engine_that_always_fails_is_given_up_with_its_last_words_and_taken_away() -> None:
    async def story() -> None:
        async with launched(engine("--fail", "no such model")) as world:
            await world.until_state("exited")
            assert world.states() == ["starting", "backing-off"] * 3 + ["starting", "exited"]
            (view,) = world.launcher.snapshot()
            assert "ended before it was ready (exit status 1): no such model" in view.why
        assert world.link.told == ["+toy-1"] * 4 + ["-toy-1"]

    run(story())


@pytest.mark.usefixtures("quick_restarts")
def test_an_engine_whose_cause_of_failure_goes_away_comes_up(tmp_path: Path) -> None:
    async def story() -> None:
        flag = tmp_path / "flag"
        async with launched(engine("--fail-unless", str(flag))) as world:
            await world.until_state("backing-off")
            flag.touch()
            await world.until_state("ready")
            assert world.link.specs

    run(story())


@pytest.mark.usefixtures("quick_restarts")
def test_a_crash_while_ready_is_followed_by_a_new_process_under_the_same_name() -> None:
    async def story() -> None:
        async with launched(engine()) as world:
            first = await world.until_state("ready")
            os.kill(first.pid, signal.SIGKILL)
            second = await world.until_state("ready", times=2)
            assert second.pid != first.pid
            assert world.states() == ["starting", "ready", "backing-off", "starting", "ready"]
            assert world.link.told == ["+toy-1", "+toy-1"]
            assert await status(world, world.link.specs[ReplicaId("toy-1")].endpoint.url) == 200

    run(story())


def test_an_engine_that_never_becomes_ready_is_stopped_with_all_its_children() -> None:
    async def story() -> None:
        async with launched(engine("--load-s", "60", "--fork", readiness_timeout_s=0.5)) as world:
            view = await world.until_state("backing-off")
            assert view.why.startswith("was not ready in time")
            assert not is_alive(world.changes[0].pid)

    run(story())


def test_an_engine_that_ignores_the_friendly_signal_is_killed_at_the_end_of_the_grace() -> None:
    async def story() -> None:
        async with launched(engine("--ignore-term", "--fork"), stop_grace_s=0.3) as world:
            view = await world.until_state("ready")
        assert not is_alive(view.pid)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", int(view.url.rpartition(":")[2]))

    run(story())


@pytest.mark.usefixtures("quick_restarts")
def test_a_port_that_answers_for_a_stranger_is_never_taken_for_ours() -> None:
    async def story(port: int) -> None:
        async with launched(engine(port=port)) as world:
            view = await world.until_state("exited")
            assert f"port {port} on 127.0.0.1 is taken by another program" in view.why
        assert world.link.told == []

    with socket.create_server(("127.0.0.1", 0)) as squatter:
        run(story(squatter.getsockname()[1]))


class DyingHost:
    """Starts a process that is dead already, though nobody has heard of its end; a stranger answers on its port."""

    pid = 1
    alive = False

    def __init__(self, port: int) -> None:
        self.port = port
        self.end = asyncio.Event()

    def free_port(self) -> int:
        return self.port

    def start(self, launch: Launch) -> "DyingHost":
        return self

    def tail(self) -> tuple[str, ...]:
        return ()

    def signal(self, signal: StopSignal) -> None:
        self.end.set()

    async def ended(self) -> ProcessEnd:
        await self.end.wait()
        return ProcessEnd(code=1, tail=("address in use",))


def test_a_strangers_answer_does_not_make_a_dying_process_ready() -> None:
    async def story() -> list[str]:
        probed = asyncio.Event()
        requests = itertools.count(1)

        async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.readline() not in (b"", b"\r\n"):
                pass
            # The second probe shows that the first answer was taken in, and not believed.
            if next(requests) == 2:
                probed.set()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()

        engines, states = HttpEngines(), list[str]()
        async with await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
            host = DyingHost(server.sockets[0].getsockname()[1])
            plan = LauncherPlan(engines=(engine(),), stop_grace_s=5.0)
            launcher = LauncherService(
                plan, host, engines=engines, link=RecordingLink(), on_change=lambda view: states.append(view.state)
            )
            await launcher.start()
            await probed.wait()
            await launcher.close()
            await engines.close()
        return states

    assert run(story()) == ["starting", "stopping", "exited"]


def test_a_stop_during_the_pause_before_a_restart_wins() -> None:
    async def story() -> None:
        async with launched(engine("--fail", "broken")) as world:
            await world.until_state("backing-off")
        assert world.states() == ["starting", "backing-off", "exited"]
        assert world.launcher.snapshot()[0].why == "stopped as asked"

    run(story())


def test_closing_right_after_the_start_leaves_nothing_behind() -> None:
    async def story() -> None:
        async with launched(engine(name="toy-1"), engine(name="toy-2")) as world:
            pass
        assert world.link.specs == {}
        assert {view.state for view in world.launcher.snapshot()} == {"exited"}
        await world.launcher.close()

    run(story())


def test_a_launcher_without_engines_has_nothing_to_wait_for_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with launched(stop_grace_s=-5.0) as world:  # whatever is waited for is overdue at once
            assert world.launcher.snapshot() == ()

    run(story())
    assert caplog.records == []


def test_a_link_that_breaks_on_a_declaration_does_not_stop_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with launched(engine(), fails=True) as world:
            await world.until_state("ready")

    run(story())
    assert "declaration_failed" in [record.message for record in caplog.records]


def test_a_watcher_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(view: InstanceView) -> None:
        raise OSError("broken pipe")

    async def story() -> None:
        engines = HttpEngines()
        plan = LauncherPlan(engines=(engine(),), stop_grace_s=5.0)
        host = LocalProcessHost(os.environ)
        launcher = LauncherService(plan, host, engines=engines, link=RecordingLink(), on_change=broken)
        await launcher.start()
        await poll(lambda: launcher.snapshot()[0].state == "ready")
        await launcher.close()
        await engines.close()

    run(story())
    assert "launcher_watcher_failed" in [record.message for record in caplog.records]


def test_a_fault_in_one_decision_keeps_the_old_state_and_the_other_engines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults = ["once"]

    def faulty(state: EngineProcess, event: Event, now: Instant) -> Decision:
        if isinstance(event, ProbeFailed | ProbeSucceeded) and faults:
            faults.pop()
            raise ValueError("a bug")
        return decide(state, event, now)

    monkeypatch.setattr(service_module, "decide", faulty)

    async def story() -> None:
        async with launched(engine(name="toy-1"), engine(name="toy-2")) as world:
            await world.until_state("ready")

    run(story())
    assert "launcher_decision_failed" in [record.message for record in caplog.records]


def test_a_cancelled_launcher_leaves_no_process_behind(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> int:
        engines = HttpEngines()
        plan = LauncherPlan(engines=(engine(),), stop_grace_s=5.0)
        launcher = LauncherService(plan, LocalProcessHost(os.environ), engines=engines, link=RecordingLink())
        await launcher.start()
        await poll(lambda: launcher.snapshot()[0].state == "ready")
        (owner,) = (task for task in asyncio.all_tasks() if task.get_name() == "launcher")
        owner.cancel()
        await asyncio.gather(owner, return_exceptions=True)
        await engines.close()
        pid = launcher.snapshot()[0].pid
        await poll(lambda: not is_alive(pid))
        return pid

    assert run(story())
