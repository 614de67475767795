import asyncio

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId, RunId
from luftpause.core.runs.events import Limits
from luftpause.core.runs.view import RunStatus
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.orders import RuntimeSettings, SpawnRefusedError, UnknownHandleError
from luftpause.services.runtime.spawning import STANDS_ALONE
from services.runtime.runtime_fakes import MemoryJournal, hold, in_time, order, runtime, text

ME = ANONYMOUS_PRINCIPAL
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


SAME: dict[str, object] = {"idempotency_key": "k", "budget": Limits(tokens=9), "output_schema": {"type": "object"}}
ELSEWHERE: dict[str, object] = {"caller": "somebody", "traceparent": TRACE}


def test_the_same_key_and_order_spawn_once_also_after_a_restart() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with runtime(journal=journal) as world:
            keyed = order(**SAME)
            first = await world.service.spawn(keyed)
            again = await asyncio.gather(
                *(world.service.spawn(order(**SAME, **changes)) for changes in ({}, ELSEWHERE))
            )
            assert {first, *again} == {first}
        async with runtime(journal=journal) as world:
            assert await world.service.spawn(keyed) == first
            assert len(journal.kept) == 1

    in_time(live())


def test_two_requests_under_one_key_that_come_at_once_spawn_once() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            world.journal.gate.clear()
            spawns = [asyncio.ensure_future(world.service.spawn(order(idempotency_key="k"))) for _ in range(3)]
            await world.journal.knocked.wait()
            spawns[0].cancel()
            with pytest.raises(SpawnRefusedError, match="'k' was used with other arguments"):
                await world.service.spawn(order("another task", idempotency_key="k"))
            world.journal.gate.set()
            first, second = await asyncio.gather(*spawns[1:])
            assert first == second
            assert list(world.journal.kept) == [first]

    in_time(live())


def test_the_same_key_with_another_order_is_refused_and_spawns_nothing() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            await world.service.spawn(order(idempotency_key="k"))
            for changes in ({"model": "other"}, {"budget": Limits(tokens=1)}, {"tools": ()}):
                with pytest.raises(SpawnRefusedError, match="take a new key"):
                    await world.service.spawn(order(idempotency_key="k", **changes))
            theirs = await world.service.spawn(order(idempotency_key="k", principal=PrincipalId("them")))
            assert len(world.journal.kept) == 2
            assert theirs in world.journal.kept

    in_time(live())


def test_a_spawn_that_was_refused_leaves_its_key_free() -> None:
    async def live() -> None:
        async with runtime() as world:
            with pytest.raises(SpawnRefusedError, match="no tool"):
                await world.service.spawn(order(idempotency_key="k", tools=("gaze",)))
            assert await world.service.spawn(order(idempotency_key="k"))

    in_time(live())


def test_a_runtime_that_closes_refuses_whoever_spawns_under_a_key() -> None:
    async def live() -> None:
        async with runtime() as world:
            world.journal.gate.clear()
            spawning = asyncio.ensure_future(world.service.spawn(order(idempotency_key="k")))
            await world.journal.knocked.wait()
            closing = asyncio.ensure_future(world.service.close())
            with pytest.raises(SpawnRefusedError, match="shutting down"):
                await spawning
            world.journal.gate.set()
            await closing

    in_time(live())


def test_a_family_grows_neither_deeper_nor_wider_than_allowed() -> None:
    async def live() -> None:
        settings = RuntimeSettings(max_depth=3, max_children=2)
        async with runtime(hold, settings=settings) as world:
            root = await world.service.spawn(order())
            child = await world.service.spawn(order(parent=root))
            deep = await world.service.spawn(order(parent=child))
            with pytest.raises(SpawnRefusedError, match="stands 3 runs deep, no deeper ones are allowed; spawn below"):
                await world.service.spawn(order(parent=deep))
            await world.service.spawn(order(parent=root))
            with pytest.raises(SpawnRefusedError, match=r"2 children of 'run_.*' are running, .* cancel some first"):
                await world.service.spawn(order(parent=root))
            await world.service.cancel(ME, child)
            await world.service.spawn(order(parent=root))

    in_time(live())


def test_children_that_arrive_at_once_do_not_slip_past_the_cap() -> None:
    async def live() -> None:
        async with runtime(hold, settings=RuntimeSettings(max_children=2)) as world:
            root = await world.service.spawn(order())
            spawns = await asyncio.gather(
                *(world.service.spawn(order(parent=root)) for _ in range(6)), return_exceptions=True
            )
            assert sum(isinstance(spawn, SpawnRefusedError) for spawn in spawns) == 4
            assert len(world.service.look(ME, [root])[0].children) == 2

    in_time(live())


def test_as_many_children_as_may_be_fit_whenever_each_of_them_comes() -> None:
    most = 20

    async def live() -> None:
        async with runtime(hold, settings=RuntimeSettings(max_children=most)) as world:
            root = await world.service.spawn(order())

            async def spawned_later(steps: int) -> None:
                for _ in range(steps):
                    await asyncio.sleep(0)
                await world.service.spawn(order(parent=root))

            await asyncio.gather(*map(spawned_later, range(most)))
            assert len(world.service.look(ME, [root])[0].children) == most

    in_time(live())


def test_nothing_is_spawned_below_what_was_cancelled_or_has_spent_its_budget() -> None:
    async def say(request: TurnRequest) -> TurnReply:
        return await hold(request) if request.parent is None else text("dear")

    async def live() -> None:
        async with runtime(say) as world:
            top = await world.service.spawn(order())
            middle = await world.service.spawn(order(parent=top, budget=Limits(tokens=11)))
            await world.service.wait(ME, [middle], "all", 20)
            assert world.service.look(ME, [middle])[0].status is RunStatus.FINISHED
            with pytest.raises(SpawnRefusedError, match="budget exceeded: tokens 11/11"):
                await world.service.spawn(order(parent=middle))
            await world.service.cancel(ME, top)
            with pytest.raises(SpawnRefusedError, match="was cancelled"):
                await world.service.spawn(order(parent=middle))

    in_time(live())


def test_a_run_comes_only_after_runs_that_are_its_principals() -> None:
    async def live() -> None:
        async with runtime() as world:
            theirs = await world.service.spawn(order(principal=PrincipalId("them")))
            for handle in (theirs, RunId("run_nobody")):
                with pytest.raises(UnknownHandleError, match=handle):
                    await world.service.spawn(order(after=(handle,)))

    in_time(live())


def test_a_tool_to_be_approved_that_is_not_there_is_a_mistake() -> None:
    async def live() -> None:
        async with runtime() as world:
            with pytest.raises(SpawnRefusedError, match="no tool 'delet' to approve; tools: look"):
                await world.service.spawn(order(approve_tools=("delet",)))
            assert await world.service.spawn(order(approve_tools=("fake__look",)))

    in_time(live())


def test_what_was_ordered_is_what_the_run_is_given() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            run = await world.service.spawn(
                order(
                    fallback_models=("second",),
                    traceparent=TRACE,
                    output_schema={"type": "object"},
                    system="be brief",
                )
            )
            await world.turns.reached.wait()
            spawn = world.service.look(ME, [run])[0].spawn
            assert (spawn.fallback_models, spawn.traceparent) == (("second",), TRACE)
            assert spawn.system is not None
            assert spawn.system.startswith("be brief\n\nYour final answer must be JSON alone")
            assert world.turns.asked[0].traceparent == TRACE

    in_time(live())


@pytest.mark.parametrize("written", ["00-1-1-01", f"{TRACE}\r\nx-luftpause-class: batch", f"{TRACE}\n"])
def test_a_trace_context_that_is_none_is_left_out(written: str) -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            run = await world.service.spawn(order(traceparent=written))
            assert world.service.look(ME, [run])[0].spawn.traceparent == ""

    in_time(live())


def test_what_a_sub_agent_orders_stands_below_it() -> None:
    async def live() -> None:
        async with runtime(hold, settings=RuntimeSettings(max_depth=3)) as world:
            top = await world.service.spawn(order())
            above = top
            for _ in range(2):
                child = await world.service.spawn(order(spawner=above))
                (view,) = world.service.look(ME, [child])
                assert view.spawn.parent == above
                above = child
            with pytest.raises(SpawnRefusedError, match="stands 3 runs deep"):
                await world.service.spawn(order(spawner=above))
            await world.service.cancel(ME, top)
            (view,) = world.service.look(ME, [above])
            assert view.status is RunStatus.CANCELLED
            with pytest.raises(SpawnRefusedError, match="was cancelled"):
                await world.service.spawn(order(spawner=above))

    in_time(live())


def test_a_sub_agent_cannot_get_out_of_its_tree_by_naming_another_parent() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            top, other = await world.service.spawn(order()), await world.service.spawn(order())
            child = await world.service.spawn(order(spawner=top))
            for elsewhere in (top, other):
                with pytest.raises(SpawnRefusedError, match="spawns below itself only"):
                    await world.service.spawn(order(spawner=child, parent=elsewhere))
            for below in (top, child):
                handle = await world.service.spawn(order(spawner=top, parent=below))
                (view,) = world.service.look(ME, [handle])
                assert view.spawn.parent == below

    in_time(live())


def test_a_key_of_nobody_known_here_places_no_run_and_tells_no_key_apart() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            foreign = await world.service.spawn(order(principal=PrincipalId("zoe")))
            for spawner in (foreign, RunId("run_of_another_runtime")):
                handle = await world.service.spawn(order(spawner=spawner))
                (view,) = world.service.look(ME, [handle])
                assert view.spawn.parent is None
                assert world.service.note_on(order(spawner=spawner)) == STANDS_ALONE
            for placed in (order(), order(spawner=handle), order(spawner=foreign, parent=handle)):
                assert world.service.note_on(placed) == ""
            keyed = [await world.service.spawn(order(idempotency_key="k", spawner=each)) for each in (handle, None)]
            assert keyed[0] == keyed[1]

    in_time(live())


def test_a_schema_that_would_let_anything_through_is_refused() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            with pytest.raises(SpawnRefusedError, match="by this outputSchema: there is no type 'text'"):
                await world.service.spawn(order(output_schema={"type": "text"}))
            await world.service.spawn(order(output_schema={"type": "string"}))

    in_time(live())
