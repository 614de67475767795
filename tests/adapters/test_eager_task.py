"""An eager task goes the way of an `asyncio.Task`, only sooner: both are put through the same."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.adapters.eager_task import Arrival, Tasks
from luftpause.ports.asgi import Running

NAME: ContextVar[str] = ContextVar("name", default="nobody")


def begun(tasks: Tasks, coroutine: Coroutine[Any, Any, None], *, eager: bool) -> Running:
    """Return a task of either kind that has begun or is about to."""
    if not eager:
        return tasks.make(coroutine)
    task = tasks.make_eager(coroutine)
    task.step()
    return task


async def rounds() -> None:
    """Let the loop go round a few times."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture(params=[True, False], ids=["eager", "asyncio"])
def eager(request: pytest.FixtureRequest) -> bool:
    """Which kind."""
    return bool(request.param)


def test_it_waits_for_whatever_can_be_awaited(eager: bool) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        seen: list[object] = []
        future: asyncio.Future[str] = loop.create_future()
        failing: asyncio.Future[str] = loop.create_future()
        arrival, event = Arrival(loop), asyncio.Event()

        async def work() -> None:
            seen.append(await future)
            await arrival
            await asyncio.sleep(0)
            with pytest.raises(ValueError, match="bad"):
                await failing
            await event.wait()
            async with asyncio.TaskGroup() as group:
                group.create_task(event.wait())
            seen.append(await asyncio.to_thread(str, 5))

        tasks = Tasks(loop)
        begun(tasks, work(), eager=eager)
        loop.call_soon(future.set_result, "f")
        loop.call_soon(failing.set_exception, ValueError("bad"))
        loop.call_later(0.01, arrival.come)
        loop.call_later(0.02, event.set)
        assert await tasks.ended_within(5)
        assert seen == ["f", "5"]

    run_bounded(main())


def test_what_has_come_is_not_waited_for(eager: bool) -> None:
    async def main() -> None:
        async def work() -> None:
            await arrival

        arrival = Arrival(asyncio.get_running_loop())
        arrival.come()
        assert not arrival.cancel()
        tasks = Tasks(asyncio.get_running_loop())
        begun(tasks, work(), eager=eager)
        assert await tasks.ended_within(5)

    run_bounded(main())


@pytest.mark.parametrize("waits", ["arrival", "future", "timeout"])
def test_cancelling_it_ends_what_it_waits_for(eager: bool, waits: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        told: list[object] = []
        future: asyncio.Future[None] = loop.create_future()
        waiting: dict[str, Callable[[], Any]] = {
            "arrival": lambda: Arrival(loop),
            "future": lambda: future,
            "timeout": lambda: asyncio.wait_for(asyncio.Event().wait(), 60),
        }

        async def work() -> None:
            try:
                await waiting[waits]()
            except asyncio.CancelledError:
                current: Running | None = asyncio.current_task()
                assert current is task
                told.append(task.cancelling())
                told.append(task.uncancel())
                await asyncio.sleep(0)
                told.append("went on")
                raise

        tasks = Tasks(loop)
        task = begun(tasks, work(), eager=eager)
        await rounds()
        assert told == []
        assert task.cancel()
        assert told == []  # who cancels is not run into
        assert await tasks.ended_within(5)
        assert told == [1, 0, "went on"]
        assert not task.cancel()

    run_bounded(main())


def test_one_that_is_cancelled_while_it_runs_learns_of_it_where_it_waits_next(eager: bool) -> None:
    async def main() -> None:
        told: list[str] = []

        async def work() -> None:
            current: Running | None = asyncio.current_task()
            assert current is not None
            current.cancel()
            told.append("runs")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.append("cancelled")

        tasks = Tasks(asyncio.get_running_loop())
        begun(tasks, work(), eager=eager)
        assert await tasks.ended_within(5)
        assert told == ["runs", "cancelled"]

    run_bounded(main())


def test_limits_of_time_hold_in_it(eager: bool) -> None:
    async def main() -> None:
        told: list[object] = []

        async def work() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await Arrival(asyncio.get_running_loop())
            current: Running | None = asyncio.current_task()
            assert current is not None
            told.append(current.cancelling())

        tasks = Tasks(asyncio.get_running_loop())
        begun(tasks, work(), eager=eager)
        assert await tasks.ended_within(5)
        assert told == [0]

    run_bounded(main())


def test_what_it_sets_in_its_context_stays_there(eager: bool) -> None:
    async def main() -> None:
        async def work(name: str) -> None:
            assert NAME.get() == "outside"
            NAME.set(name)
            await asyncio.sleep(0)
            assert NAME.get() == name
            seen.append(name)

        seen: list[str] = []
        NAME.set("outside")
        tasks = Tasks(asyncio.get_running_loop())
        for name in ("a", "b"):
            begun(tasks, work(name), eager=eager)
            assert NAME.get() == "outside"
        assert await tasks.ended_within(5)
        assert sorted(seen) == ["a", "b"]

    run_bounded(main())


def test_all_are_cancelled_and_waited_for() -> None:
    async def main() -> None:
        async def work() -> None:
            await asyncio.Event().wait()

        tasks = Tasks(asyncio.get_running_loop())
        for eager in (True, False):
            begun(tasks, work(), eager=eager)
        assert len(tasks) == 2
        assert not await tasks.ended_within(0.01)
        await tasks.cancel()
        assert len(tasks) == 0

    run_bounded(main())


def test_an_eager_one_goes_on_within_what_lets_it() -> None:
    async def main() -> None:
        told: list[str] = []
        arrival = Arrival(asyncio.get_running_loop())

        async def work() -> None:
            told.append("begun")
            await arrival
            told.append("went on")

        def read() -> None:
            task = tasks.make_eager(work())
            task.step()
            told.append("begins")
            arrival.come()
            told.append("comes")

        tasks = Tasks(asyncio.get_running_loop())
        asyncio.get_running_loop().call_soon(read)
        await rounds()
        assert told == ["begun", "begins", "went on", "comes"]
        assert len(tasks) == 0

    run_bounded(main())


def test_a_fault_in_it_is_logged_and_does_not_reach_who_lets_it_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def work() -> None:
            await arrival
            raise ValueError("a fault")

        loop = asyncio.get_running_loop()
        arrival, tasks = Arrival(loop), Tasks(loop)
        loop.call_soon(tasks.make_eager(work()).step)
        await rounds()
        loop.call_soon(arrival.come)
        assert await tasks.ended_within(5)
        assert [record.message for record in caplog.records] == ["task_failed"]

    run_bounded(main())
