import asyncio

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId, RunId, ToolCallId
from luftpause.core.runs.events import ApprovalDecided, ApprovalScope, Limits
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.orders import NotKeptError, UnknownHandleError
from services.runtime.runtime_fakes import (
    FakeTools,
    MemoryJournal,
    World,
    answers_of,
    calls,
    in_time,
    look_once,
    order,
    runtime,
    text,
)
from testkit.virtual_time import let_pass, run_virtual

ME = ANONYMOUS_PRINCIPAL
C0 = ToolCallId("c0")


def dangerous() -> FakeTools:
    return FakeTools(destructive=frozenset({"look"}))


async def waiting(world: World, **changes: object) -> RunId:
    """A run whose call waits to be allowed."""
    run = await world.service.spawn(order(**changes))
    assert not await world.service.wait(ME, [run], "all", 20, or_approval=True)
    (seen,) = world.service.look(ME, [run])
    assert seen.status is RunStatus.AWAITING_APPROVAL
    return run


async def ended(world: World, run: RunId) -> RunView:
    assert await world.service.wait(ME, [run], "all", 20)
    return world.service.look(ME, [run])[0]


@pytest.mark.parametrize(
    ("allow", "result", "made"), [(True, "moon is there", 1), (False, "Error: the user declined this tool call", 0)]
)
def test_a_decision_lets_the_call_go_or_tells_the_model(allow: bool, result: str, made: int) -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run = await waiting(world)
            assert world.tools.made == []
            assert await world.service.approvals.approve(ME, run, None, allow=allow, by="me")
            assert world.service.look(ME, [run])[0].pending_approvals == (), "shown once it returns"
            seen = await ended(world, run)
            assert (seen.result, len(world.tools.made)) == (f"I heard: {result}", made)

    in_time(live())


def test_the_first_of_two_answers_counts_and_the_second_is_told_that_nothing_waits() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run = await waiting(world)
            approve = world.service.approvals.approve
            answers = await asyncio.gather(
                approve(ME, run, C0, allow=False, by="window 1"), approve(ME, run, C0, allow=True, by="window 2")
            )
            assert list(answers) == [True, False]
            assert not await approve(ME, run, C0, allow=True, by="late")
            assert not await approve(ME, run, ToolCallId("never"), allow=True, by="lost")
            assert (await ended(world, run)).result == "I heard: Error: the user declined this tool call"
            assert world.tools.made == []
            assert not await approve(ME, run, None, allow=True, by="after the end")

    in_time(live())


def test_an_answer_after_cancelling_is_ignored() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run = await waiting(world)
            cancelling = asyncio.ensure_future(world.service.cancel(ME, run))
            approving = asyncio.ensure_future(world.service.approvals.approve(ME, run, None, allow=True, by="me"))
            await asyncio.gather(cancelling, approving)
            assert not approving.result()
            assert world.tools.made == []

    in_time(live())


def test_an_answer_after_the_time_is_up_is_ignored() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run = await waiting(world, budget=Limits(seconds=30))
            await let_pass(31)
            assert not await world.service.approvals.approve(ME, run, None, allow=True, by="me")
            seen = await ended(world, run)
            assert seen.error == "budget exceeded: seconds 30/30"
            assert world.tools.made == []

    run_virtual(live())


def test_after_a_restart_what_was_answered_is_not_asked_and_what_was_not_is() -> None:
    async def live() -> None:
        journal, tools = MemoryJournal(), dangerous()
        async with runtime(tools=tools, journal=journal) as world:
            answered, open_one = await waiting(world), await waiting(world)
            journal.gate.clear()
            deciding = asyncio.ensure_future(world.service.approvals.approve(ME, answered, None, allow=False, by="me"))
            journal.knocked.clear()
            await journal.knocked.wait()
            assert world.service.look(ME, [answered])[0].pending_approvals, "not before it is durable"
            journal.gate.set()
            assert await deciding
        async with runtime(tools=tools, journal=journal) as world:
            assert (await ended(world, answered)).result == "I heard: Error: the user declined this tool call"
            (seen,) = world.service.look(ME, [open_one])
            assert [pending.call for pending in seen.pending_approvals] == [C0]
            assert await world.service.approvals.approve(ME, open_one, None, allow=True, by="me")
            assert (await ended(world, open_one)).result == "I heard: moon is there"

    in_time(live())


@pytest.mark.parametrize(("scope", "asked"), [(ApprovalScope.ONCE, 2), (ApprovalScope.RUN, 1), (ApprovalScope.TREE, 1)])
def test_a_grant_for_the_run_asks_once_for_all_its_calls(scope: ApprovalScope, asked: int) -> None:
    async def say(request: TurnRequest) -> TurnReply:
        heard = answers_of(request)
        return text(f"{len(heard)}") if len(heard) == 2 else calls(("look", '{"at": "moon"}'))

    async def live() -> None:
        async with runtime(say, tools=dangerous()) as world:
            run = await waiting(world)
            questions = 0
            while not await world.service.wait(ME, [run], "all", 20, or_approval=True):
                questions += 1
                assert await world.service.approvals.approve(ME, run, None, allow=True, by="me", scope=scope)
            assert (questions, len(world.tools.made)) == (asked, 2)

    in_time(live())


def test_a_grant_for_the_tree_frees_who_waits_in_it_and_nobody_else() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            parent = await waiting(world)
            child = await waiting(world, parent=parent)
            stranger = await waiting(world)
            assert await world.service.approvals.approve(ME, child, None, allow=True, by="me", scope=ApprovalScope.TREE)
            assert world.service.look(ME, [parent])[0].pending_approvals == ()
            for run in (parent, child):
                assert (await ended(world, run)).result == "I heard: moon is there"
            assert world.service.look(ME, [stranger])[0].status is RunStatus.AWAITING_APPROVAL
            decisions = [
                entry.event for entry in world.journal.kept[parent] if isinstance(entry.event, ApprovalDecided)
            ]
            assert [(decided.allow, decided.by) for decided in decisions] == [(True, "me")]

    in_time(live())


def test_a_tool_that_the_spawn_names_is_asked_about_too() -> None:
    async def live() -> None:
        async with runtime() as world:
            run = await waiting(world, approve_tools=("look",))
            assert await world.service.approvals.approve(ME, run, None, allow=True, by="me")
            assert (await ended(world, run)).result == "I heard: moon is there"

    in_time(live())


def test_one_waiter_asks_the_person_and_another_takes_over_when_it_gives_up() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run, approvals = await waiting(world), world.service.approvals
            assert approvals.claim(ME, run, C0)
            assert not approvals.claim(ME, run, C0)
            assert not approvals.claim(ME, run, ToolCallId("never"))
            other = asyncio.ensure_future(world.service.wait(ME, [run], "all", 20, or_approval=True))
            await asyncio.sleep(0)
            assert not other.done(), "what somebody asks about already is nothing to wake others for"
            approvals.release(ME, run, C0)
            assert not await other
            assert approvals.claim(ME, run, C0)
            assert await approvals.approve(ME, run, C0, allow=True, by="me")
            assert (await ended(world, run)).status is RunStatus.FINISHED
            assert not approvals.claim(ME, run, C0)

    in_time(live())


def test_all_waiters_of_one_run_get_the_same_end() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run = await waiting(world)
            waiters = [asyncio.ensure_future(world.service.wait(ME, [run], "all", 20)) for _ in range(5)]
            waiters[0].cancel()
            await world.service.approvals.approve(ME, run, None, allow=True, by="me")
            assert await asyncio.gather(*waiters[1:]) == [True] * 4
            assert world.service.look(ME, [run])[0].status is RunStatus.FINISHED

    in_time(live())


def test_a_decision_that_cannot_be_recorded_is_refused_and_the_call_does_not_go() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run = await waiting(world)
            world.journal.broken = True
            with pytest.raises(NotKeptError, match="the disk is full"):
                await world.service.approvals.approve(ME, run, None, allow=True, by="me")
            assert world.tools.made == []

    in_time(live())


def test_the_calls_of_others_are_nobodys_business() -> None:
    async def live() -> None:
        async with runtime(look_once, tools=dangerous()) as world:
            run, them, approvals = await waiting(world), PrincipalId("them"), world.service.approvals
            with pytest.raises(UnknownHandleError):
                await approvals.approve(them, run, None, allow=True, by="them")
            for attempt in (approvals.claim, approvals.release):
                with pytest.raises(UnknownHandleError):
                    attempt(them, run, C0)

    in_time(live())


def test_turns_name_the_tools_that_must_still_be_allowed() -> None:
    async def live() -> None:
        async with runtime(tools=dangerous()) as world:
            run = await waiting(world)
            assert await world.service.approvals.approve(ME, run, None, allow=True, by="me", scope=ApprovalScope.RUN)
            await ended(world, run)
            first, second = world.turns.asked
            assert (list(first.approve_tools), list(second.approve_tools)) == (["look"], [])

    in_time(live())
