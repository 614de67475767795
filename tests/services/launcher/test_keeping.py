"""Keeping processes: readiness is ours alone, faults stay where they are, nothing is left behind."""

import asyncio
import itertools
import logging
from collections.abc import Sequence

import pytest

from luftpause.adapters import process_table
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.ids import Instant
from luftpause.core.processes.actions import StopSignal
from luftpause.core.processes.decide import Decision, decide
from luftpause.core.processes.events import Event, ProbeFailed, ProbeSucceeded
from luftpause.core.processes.state import EngineProcess
from luftpause.core.scheduling.residency.events import LoadFailed, ModelDown, ModelUp
from luftpause.ports.processes import CouldNotStartError, Launch, LeftBehind, LogSlice, ProcessEnd
from luftpause.services.launcher import keeping as keeping_module
from luftpause.services.launcher import readiness
from services.launcher.launcher_world import Ground, engine, is_alive, launched, model, poll, run


class ScriptedProcess:
    """A process that is what the test says; it ends when it is signalled."""

    pid = 1

    def __init__(self, *, alive: bool, listens: bool | None) -> None:
        self.alive = alive
        self.listens = listens
        self.worked: float | None = None
        self.end = asyncio.Event()

    def listens_on(self, port: int) -> bool | None:
        return self.listens

    def worked_s(self) -> float | None:
        return self.worked

    def tail(self) -> tuple[str, ...]:
        return ()

    def signal(self, signal: StopSignal) -> None:
        self.end.set()

    async def ended(self) -> ProcessEnd:
        await self.end.wait()
        return ProcessEnd(code=1, tail=("address in use",))


class ScriptedHost:
    """Starts always the same process. `ports`: the free ones, in order; `taken`: how many starts find theirs taken."""

    def __init__(self, process: ScriptedProcess | None, ports: list[int], *, taken: int = 0) -> None:
        self.process = process
        self.ports = iter(ports)
        self.taken = taken
        self.launched: list[int] = []

    def free_port(self, host: str) -> int:
        return next(self.ports)

    def lines(self, name: str, after: int) -> LogSlice:
        return LogSlice(lines=(), next=0)

    def left_behind(self) -> Sequence[LeftBehind]:
        return ()

    def end_left_behind(self, grace_s: float) -> None:
        raise NotImplementedError

    def start(self, launch: Launch) -> ScriptedProcess:
        self.launched.append(launch.port)
        if self.taken:
            self.taken -= 1
            raise CouldNotStartError(f"port {launch.port} is taken", port_taken=True)
        if self.process is None:
            raise CouldNotStartError("no such program")
        return self.process


@pytest.mark.parametrize(("alive", "listens"), [(False, None), (True, False)])
def test_a_strangers_answer_does_not_make_an_engine_ready(alive: bool, listens: bool | None) -> None:
    """It answers while our process is dead, though nobody has heard of its end; or while ours listens nowhere."""

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

        async with await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
            host = ScriptedHost(ScriptedProcess(alive=alive, listens=listens), [server.sockets[0].getsockname()[1]])
            async with launched(model(engine()), ground=Ground(host=host)) as world:
                world.scheduler.load()
                await probed.wait()
            return world.states()

    assert run(story()) == ["starting", "stopping", "exited"]


def test_another_port_is_chosen_where_the_first_was_taken_meanwhile() -> None:
    async def story() -> tuple[list[int], str]:
        host = ScriptedHost(None, [1001, 1002, 1003, 1004], taken=2)
        async with launched(model(engine()), ground=Ground(host=host)) as world:
            world.scheduler.load()
            failed = await world.scheduler.until(LoadFailed)
        return host.launched, failed.cause

    assert run(story()) == ([1001, 1002, 1003], "could not be started: no such program")


def test_a_machine_whose_every_port_is_taken_is_given_up() -> None:
    async def story() -> str:
        host = ScriptedHost(None, list(range(1001, 1010)), taken=100)
        async with launched(model(engine()), ground=Ground(host=host)) as world:
            world.scheduler.load()
            return (await world.scheduler.until(LoadFailed)).cause

    assert run(story()) == "could not be started: port 1003 is taken"


def test_a_fault_in_one_decision_keeps_the_old_state_and_the_other_engines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults = ["once"]

    def faulty(state: EngineProcess, event: Event, now: Instant) -> Decision:
        if isinstance(event, ProbeFailed | ProbeSucceeded) and faults:
            faults.pop()
            raise ValueError("a bug")
        return decide(state, event, now)

    monkeypatch.setattr(keeping_module, "decide", faulty)

    async def story() -> None:
        async with launched(model(engine(name="a-1")), model(engine(name="b-1"))) as world:
            world.scheduler.load("a")
            world.scheduler.load("b")
            await world.scheduler.until(ModelUp)

    run(story())
    assert "launcher_decision_failed" in [record.message for record in caplog.records]


def test_a_watcher_that_fails_stops_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with launched(model(engine())) as world:

            def broken(view: object) -> None:
                raise OSError("broken pipe")

            monkeypatch.setattr(world.launcher._keeper, "_on_change", broken)
            world.scheduler.load()
            await world.scheduler.until(ModelUp)

    run(story())
    assert "launcher_watcher_failed" in [record.message for record in caplog.records]


def test_closing_right_after_an_order_leaves_nothing_behind() -> None:
    async def story() -> None:
        async with launched(model(engine())) as world:
            world.scheduler.load()
        assert {view.state for view in world.launcher.snapshot()} <= {"exited"}
        await world.launcher.close()

    run(story())


def test_a_cancelled_launcher_leaves_no_process_behind(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> None:
        async with launched(model(engine()), stop_grace_s=0.1) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            (owner,) = (task for task in asyncio.all_tasks() if task.get_name() == "launcher")
            owner.cancel()
            await asyncio.gather(owner, return_exceptions=True)
            pid = world.launcher.snapshot()[0].pid
            await poll(lambda: not is_alive(pid))
            world.launcher._residents.clear()

    run(story())


def test_engines_can_be_asked_where_the_machine_does_not_tell_who_listens() -> None:
    async def story() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.readline() not in (b"", b"\r\n"):
                pass
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()

        engines = HttpEngines()
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host = ScriptedHost(ScriptedProcess(alive=True, listens=None), [server.sockets[0].getsockname()[1]])
            async with launched(model(engine()), ground=Ground(host=host)) as world:
                world.scheduler.load()
                await world.scheduler.until(ModelUp)
        await engines.close()

    run(story())


tells_of_work = pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells who works here")


async def ask_a_turn(url: str) -> bytes:
    """Return what a request gets that an engine hangs in: nothing, until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"GET /turn HTTP/1.0\r\n\r\n")
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@tells_of_work
def test_an_engine_that_hangs_under_a_turn_is_ended_as_crashed_and_can_be_loaded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "PROBE_S_MAX", 0.5)

    async def story() -> tuple[bytes, ModelDown, list[str]]:
        async with launched(model(engine("--hangs-in-turns", "idle", silent_s=1.5))) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            answer = await ask_a_turn(up.replica.endpoint.url)
            down = await world.scheduler.until(ModelDown)
            states = world.states()
            world.scheduler.load()
            await world.scheduler.until(ModelUp, times=2)
            return answer, down, states

    answer, down, states = run(story())
    assert answer == b""
    assert down.why.startswith("hung: it answered no probe any more, did nothing, and was ended")
    assert states == ["starting", "ready", "stopping", "exited"]


@tells_of_work
def test_an_engine_that_answers_no_probe_because_it_works_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PROBE_S_MAX", 0.5)
    failed: list[float] = []
    enough = asyncio.Event()

    def watched(state: EngineProcess, event: Event, now: Instant) -> Decision:
        if isinstance(event, ProbeFailed) and event.worked_s is not None:
            failed.append(event.worked_s)
            if len(failed) == 4:  # a probe takes almost as long as a silence
                enough.set()
        return decide(state, event, now)

    monkeypatch.setattr(keeping_module, "decide", watched)

    async def story() -> list[str]:
        async with launched(model(engine("--hangs-in-turns", "busy", silent_s=0.6))) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            turn = asyncio.ensure_future(ask_a_turn(up.replica.endpoint.url))
            await enough.wait()
            assert not turn.done()
            states = world.states()
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
            return states

    assert run(story()) == ["starting", "ready"]
    assert failed == sorted(failed)


def test_of_an_engine_that_something_else_runs_nobody_can_tell_whether_it_works() -> None:
    process = ScriptedProcess(alive=True, listens=None)
    assert keeping_module._worked_s(engine(), process, 1) is None
    process.listens = True
    process.worked = 5.0
    assert keeping_module._worked_s(engine(), process, 1) == 5.0
    assert keeping_module._worked_s(engine(stop_argv=("docker", "stop")), process, 1) is None
