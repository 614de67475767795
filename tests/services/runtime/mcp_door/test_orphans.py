"""What becomes of a run whose client leaves in the middle of `run`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.orders import RuntimeSettings
from services.runtime.mcp_door.doors import Door, Mode, content, door
from services.runtime.runtime_fakes import MemoryJournal, hold, in_time, text

SHORT = RuntimeSettings(orphan_grace_s=0.05)


@asynccontextmanager
async def one_that_leaves(it: Door, mode: Mode, **arguments: object) -> AsyncIterator[RunView]:
    """Begin `run`, give the run once its model has the word, and leave at the end of the block."""

    async def run() -> None:
        async with it.client(mode) as client:
            await client.call_tool("run", {"task": "x", **arguments})

    running = asyncio.create_task(run())
    await it.world.turns.reached.wait()
    (view,) = it.world.service.glance().views()
    yield view
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def leave_a_run(it: Door, mode: Mode, **arguments: object) -> RunView:
    """Begin `run`, leave while its model has the word, and return the run."""
    async with one_that_leaves(it, mode, **arguments) as view:
        return view


async def until_over(it: Door, run: str) -> RunView:
    async with aclosing(it.world.service.changes(ANONYMOUS_PRINCIPAL, [run])) as changes:
        async for view in changes:
            if view.status.is_over:
                return view
    raise AssertionError


def test_a_run_that_its_client_cancelled_by_leaving_is_cancelled_after_the_grace() -> None:
    async def live() -> None:
        async with door(hold, settings=SHORT) as it:
            view = await leave_a_run(it, "auto")
            assert (await until_over(it, view.run)).status is RunStatus.CANCELLED

    in_time(live())


@pytest.mark.parametrize(("mode", "arguments"), [("auto", {"idempotencyKey": "k"}), ("legacy", {})])
def test_with_a_key_or_in_a_session_the_run_goes_on(mode: Mode, arguments: dict[str, object]) -> None:
    async def live() -> None:
        finish = asyncio.Event()

        async def say(_request: TurnRequest) -> TurnReply:
            await finish.wait()
            return text("done")

        async with door(say, settings=RuntimeSettings(orphan_grace_s=0.0)) as it:
            view = await leave_a_run(it, mode, **arguments)
            async with it.client(mode) as client:
                # By then an orphan would be gone: its watch is older than this call.
                await client.call_tool("status", {})
                finish.set()
                if arguments:
                    again = content(await client.call_tool("run", {"task": "x", **arguments}))
                    assert (again["handle"], again["result"]) == (view.run, "done")
            assert (await until_over(it, view.run)).status is RunStatus.FINISHED

    in_time(live())


def test_a_run_that_somebody_waits_for_by_then_goes_on() -> None:
    async def live() -> None:
        finish = asyncio.Event()

        async def say(_request: TurnRequest) -> TurnReply:
            await finish.wait()
            return text("done")

        is_waited_for = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            is_waited_for.set()

        settings = replace(SHORT, progress_every_s=0.05)
        async with door(say, settings=settings) as it, it.client() as client:
            async with one_that_leaves(it, "auto") as view:
                asked = client.call_tool("await", {"handles": [view.run], "timeout": 30}, progress_callback=hear)
                wait = asyncio.create_task(asked)
                await is_waited_for.wait()
            loop = asyncio.get_running_loop()
            passed = loop.create_future()
            loop.call_later(5 * settings.orphan_grace_s, passed.set_result, None)
            await passed
            finish.set()
            assert content(await wait)["runs"][0]["result"] == "done"

    in_time(live())


def test_a_client_that_leaves_before_its_run_began_leaves_an_orphan_too() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with door(hold, settings=SHORT, journal=journal) as it:
            journal.gate.clear()

            async def run() -> None:
                async with it.client() as client:
                    await client.call_tool("run", {"task": "x"})

            running = asyncio.create_task(run())
            await journal.knocked.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            journal.gate.set()
            await it.world.turns.reached.wait()
            (view,) = it.world.service.glance().views()
            assert (await until_over(it, view.run)).status is RunStatus.CANCELLED

    in_time(live())


def test_a_door_that_closes_cancels_nobody() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with door(hold, journal=journal, settings=RuntimeSettings(orphan_grace_s=3600)) as it:
            view = await leave_a_run(it, "auto")
        async with door(hold, journal=MemoryJournal(kept=journal.kept, epoch=journal.epoch)) as it:
            (again,) = it.world.service.look(ANONYMOUS_PRINCIPAL, [view.run])
            assert again.status is RunStatus.RUNNING

    in_time(live())
