"""Workers that are real processes: started, missed, started again, drained, and counted together."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from adapters.engine_http.scripted_engine import eventually
from luftpause.adapters.crew import worker as worker_module
from luftpause.adapters.crew.foreman import CrewLostError, Foreman
from luftpause.adapters.crew.worker import WorkerFailedError, WorkerPlan
from luftpause.core.processes.state import Limits

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="several workers on one port need Linux")]
PROGRAM = str(Path(__file__).with_name("played_worker.py"))
WAIT_S = 30.0


def bounded(story: Coroutine[Any, Any, None]) -> None:
    async def within() -> None:
        async with asyncio.timeout(WAIT_S):
            await story

    asyncio.run(within())


async def there(path: Path) -> str:
    """Return a note once it is left."""
    await eventually(path.exists, WAIT_S)
    return text_of(path)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pid_of(folder: Path, number: int) -> int:
    return int(text_of(folder / f"{number}.pid"))


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def plans(folder: Path, *how: str, stop_grace_s: float = 20.0) -> list[WorkerPlan]:
    limits = Limits(readiness_timeout_s=WAIT_S, stop_grace_s=stop_grace_s, backoff_s=(0.0,))
    return [
        WorkerPlan(
            number=number,
            command=(sys.executable, PROGRAM),
            order=json.dumps({"folder": str(folder), "how": each}).encode(),
            limits=limits,
        )
        for number, each in enumerate(how, 1)
    ]


@contextlib.asynccontextmanager
async def working(plans: list[WorkerPlan]) -> AsyncIterator[Foreman]:
    """A crew whose workers are ready, stopped at the end of the block."""
    foreman = Foreman(plans)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(foreman.run())
        try:
            await foreman.ready()
            yield foreman
        finally:
            foreman.stop()


async def counted(foreman: Foreman) -> dict[str, float]:
    return {family.name: family.samples[0].value for family in await foreman.counts()}


async def counts_become(foreman: Foreman, expected: dict[str, float]) -> None:
    """Return once the workers counted so much together; the story's own limit bounds it."""
    pause = asyncio.Event()
    while await counted(foreman) != expected:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(pause.wait(), 0.01)


def test_all_workers_are_counted_whoever_asks_and_all_drain_at_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with working(plans(tmp_path, "serve", "serve")) as foreman:
            assert await counted(foreman) == {"answers": 3.0, "opened": 3.0}
            os.kill(int(await there(tmp_path / "2.pid")), signal.SIGUSR1)
            assert await there(tmp_path / "2.total") == "{'answers': 3.0, 'opened': 3.0}"
        assert (tmp_path / "1.drained").exists()
        assert (tmp_path / "2.drained").exists()

    bounded(story())


def test_a_killed_worker_comes_back_and_what_it_counted_is_not_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with working(plans(tmp_path, "serve", "serve")) as foreman:
            assert await counted(foreman) == {"answers": 3.0, "opened": 3.0}
            pid = tmp_path / "1.pid"
            killed = pid_of(tmp_path, 1)
            pid.unlink()
            os.kill(killed, signal.SIGKILL)
            assert int(await there(pid)) != killed
            await counts_become(foreman, {"answers": 4.0, "opened": 3.0})

    bounded(story())
    (failed,) = (record for record in caplog.records if record.message == "worker_failed")
    assert (vars(failed)["worker"], vars(failed)["why"]) == (1, "ended while it served (signal 9)")


def test_a_worker_that_does_not_answer_counts_as_it_last_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "TOLD_S", 0.2)

    async def story() -> None:
        async with working(plans(tmp_path, "serve", "serve")) as foreman:
            await counts_become(foreman, {"answers": 3.0, "opened": 3.0})
            pid = pid_of(tmp_path, 1)
            os.kill(pid, signal.SIGSTOP)
            assert await counted(foreman) == {"answers": 3.0, "opened": 3.0}
            os.kill(pid, signal.SIGCONT)

    bounded(story())


def test_a_worker_that_does_not_start_is_an_error_that_says_how_it_ended(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.RaisesGroup(
            pytest.RaisesExc(WorkerFailedError, match=r"^worker 2 ended before it was ready \(exit status 3\)$")
        ):
            async with working(plans(tmp_path, "serve", "never")):
                raise AssertionError("it was ready")
        if (tmp_path / "1.pid").exists():
            assert not is_there(pid_of(tmp_path, 1)), "the other one was left behind"

    bounded(story())


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async def story() -> None:
        missing = [
            WorkerPlan(number=1, command=("/no/such/program",), order=b"", limits=plans(tmp_path, "serve")[0].limits)
        ]
        with pytest.RaisesGroup(pytest.RaisesExc(WorkerFailedError, match="worker 1 ended before it was ready")):
            async with working(missing):
                raise AssertionError("it was ready")

    bounded(story())


def test_one_that_cannot_come_back_leaves_the_others_at_work_and_the_last_one_ends_the_crew(tmp_path: Path) -> None:
    async def story() -> None:
        foreman = Foreman(plans(tmp_path, "once", "once"))
        running = asyncio.create_task(foreman.run())
        await foreman.ready()
        assert await counted(foreman) == {"answers": 3.0, "opened": 3.0}
        os.kill(pid_of(tmp_path, 1), signal.SIGKILL)
        await counts_become(foreman, {"answers": 3.0, "opened": 2.0})
        assert not running.done()
        os.kill(pid_of(tmp_path, 2), signal.SIGKILL)
        with pytest.raises(CrewLostError, match="every worker failed too often"):
            await running

    bounded(story())


def test_one_that_does_not_heed_the_signal_is_killed(tmp_path: Path) -> None:
    async def story() -> None:
        async with working(plans(tmp_path, "stubborn", stop_grace_s=0.05)):
            pid = pid_of(tmp_path, 1)
        assert not is_there(pid)
        assert not (tmp_path / "1.drained").exists()

    bounded(story())


def test_a_foreman_that_is_cancelled_leaves_no_worker_behind(tmp_path: Path) -> None:
    async def story() -> None:
        foreman = Foreman(plans(tmp_path, "serve", "stubborn"))
        running = asyncio.create_task(foreman.run())
        await foreman.ready()
        pids = [pid_of(tmp_path, number) for number in (1, 2)]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not any(is_there(pid) for pid in pids)

    bounded(story())
