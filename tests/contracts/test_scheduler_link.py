"""One suite for every way to hold the scheduler: in process, over TCP, and over TCP with trouble in the middle."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from contracts.offers import MODEL, PEER, PRINCIPAL, offer, spec
from contracts.relay import bounded
from contracts.worlds import RIGS, WORLDS, HastyWorld, NewRig, RemoteWorld, RestartedWorld, World
from luftpause.core.model.ids import PrincipalId, RunId, ToolCallId, TurnId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import (
    AnswerGrew,
    FirstTokenSeen,
    RunPhase,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
)
from luftpause.ports.scheduler import Ticket, TurnRefusedError

AnyWorld = TypeVar("AnyWorld", bound=World)
WorldTest = Callable[[World], Awaitable[None]]


@pytest.fixture(params=RIGS)
def new_rig(request: pytest.FixtureRequest) -> NewRig:
    name: str = request.param
    return RIGS[name]


@pytest.fixture(params=WORLDS)
def in_world(request: pytest.FixtureRequest, new_rig: NewRig) -> Callable[[WorldTest], None]:
    name: str = request.param
    return _runner(WORLDS[name], new_rig)


@pytest.fixture
def in_remote(new_rig: NewRig) -> Callable[[Callable[[RemoteWorld], Awaitable[None]]], None]:
    return _runner(RemoteWorld, new_rig)


def _runner(kind: type[AnyWorld], new_rig: NewRig) -> Callable[[Callable[[AnyWorld], Awaitable[None]]], None]:
    def run(test: Callable[[AnyWorld], Awaitable[None]]) -> None:
        async def inside() -> None:
            world = kind(new_rig)
            async with world.run():
                await test(world)

        bounded(inside, new_loop=kind.new_loop)

    return run


async def placed(ticket: Ticket) -> str:
    async with asyncio.timeout(10):
        return (await ticket.placement).replica


def test_an_accepted_turn_knows_its_run_before_its_place(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        world.rig.hold()
        ticket = await world.link.admit(offer(1))
        assert ticket.run
        assert not ticket.placement.done()

    in_world(story)


def test_a_turn_of_a_known_model_is_placed(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        first = await world.link.admit(offer(1, run="mine"))
        await world.disturb()
        second = await world.link.admit(offer(2, run="mine"))
        assert (first.run, second.run) == ("mine", "mine")
        assert [await placed(first), await placed(second)] == ["one", "one"]
        assert (await second.placement).endpoint == spec().endpoint

    in_world(story)


def test_a_turn_of_an_unknown_model_is_refused_at_once(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        await world.disturb()
        with pytest.raises(TurnRefusedError, match="nope") as refused:
            await world.link.admit(offer(1, model="nope"))
        assert refused.value.refusal.reason is RefusalReason.UNKNOWN_MODEL
        assert not world.rig.held() | world.rig.in_flight()

    in_world(story)


def test_a_held_turn_is_placed_later_under_the_run_it_was_promised(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        world.rig.hold()
        tickets = [await world.link.admit(offer(turn)) for turn in range(3)]
        await world.disturb()
        await world.desk.until(lambda: len(world.rig.held()) == 3)
        assert not any(ticket.placement.done() for ticket in tickets)
        world.rig.release()
        assert [await placed(ticket) for ticket in tickets] == ["one"] * 3
        assert world.rig.in_flight() == {TurnId(f"{PEER}.{turn}") for turn in range(3)}
        again = [await world.link.admit(offer(turn)) for turn in range(3)]
        assert [ticket.run for ticket in again] == [ticket.run for ticket in tickets]
        assert len({ticket.run for ticket in tickets}) == 3

    in_world(story)


def test_a_turn_id_admitted_twice_has_one_placement(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        world.rig.hold()
        first = await world.link.admit(offer(1))
        second = await world.link.admit(offer(1))
        await world.disturb()
        await world.desk.until(lambda: len(world.rig.held()) == 1)
        world.rig.release()
        await placed(first)
        third = await world.link.admit(offer(1))
        assert first.run == second.run == third.run
        assert await first.placement == await second.placement == await third.placement
        assert world.rig.in_flight() == {TurnId(f"{PEER}.1")}

    in_world(story)


def test_reports_arrive_in_their_order(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        told: list[TurnReport] = []
        for turn in range(20):
            ticket = await world.link.admit(offer(turn))
            await placed(ticket)
            ending = TurnFailed(turn=offer(turn).turn, cause="broke") if turn % 3 else _finished(turn)
            told += [FirstTokenSeen(turn=offer(turn).turn), ending]
        for report in told:
            world.link.report(report)
        world.link.report(TurnsRenewed(turns=(TurnId("long gone"),)))
        await world.desk.until(lambda: len(world.desk.reports()) == len(told) + 1)
        assert world.desk.reports()[:-1] == told
        assert not world.rig.in_flight()

    in_world(story)


def _finished(turn: int) -> TurnFinished:
    return TurnFinished(
        turn=offer(turn).turn,
        finish="tool_calls",
        usage=Usage(prompt_tokens=3, completion_tokens=4, cached_tokens=2),
        tool_calls=(ToolCallId(f"call-{turn}"),),
    )


def test_a_scheduler_that_forgot_everything_finds_a_run_by_a_tool_call_that_was_long_confirmed(
    in_world: Callable[[WorldTest], None],
) -> None:
    async def story(world: World) -> None:
        first = await world.link.admit(offer(1))
        await placed(first)
        world.link.report(_finished(1))
        await placed(await world.link.admit(offer(2)))  # answered after the report was
        await world.disturb()
        third = await world.link.admit(offer(3, tool_calls=("call-1",)))
        assert third.run == first.run
        assert await placed(third) == "one"

    in_world(story)


def test_a_run_is_found_again_by_the_tool_call_that_it_echoes(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        first = await world.link.admit(offer(1))
        await placed(first)
        await world.disturb()
        world.link.report(_finished(1))
        second = await world.link.admit(offer(2, tool_calls=("call-1",)))
        assert second.run == first.run

    in_world(story)


def test_a_run_ends_once_and_only_for_its_principal(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        ticket = await world.link.admit(offer(1))
        await placed(ticket)
        world.link.report(TurnFinished(turn=offer(1).turn))
        await world.desk.until(lambda: not world.rig.in_flight())
        await world.disturb()
        assert not await world.link.end_run(PrincipalId("eve"), ticket.run)
        assert await world.link.end_run(PRINCIPAL, ticket.run)
        assert not await world.link.end_run(PRINCIPAL, ticket.run)
        assert not await world.link.end_run(PRINCIPAL, RunId("never was"))

    in_world(story)


def test_models_are_those_of_the_declared_replicas(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        await world.link.add_replica(spec("two", "zebra", "alpha", MODEL))
        await world.disturb()
        await world.desk.until(lambda: len(world.rig.desk.models()) == 3)
        assert list(await world.link.models()) == ["alpha", MODEL, "zebra"]
        await world.link.remove_replica(spec("two").replica)
        await world.link.remove_replica(spec("nobody").replica)
        assert list(await world.link.models()) == [MODEL]

    in_world(story)


def test_an_abandoned_turn_leaves_the_queue(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        world.rig.hold()
        await world.link.admit(offer(1))
        stays = await world.link.admit(offer(2))
        await world.disturb()
        world.link.report(TurnAbandoned(turn=offer(1).turn))
        await world.desk.until(lambda: world.rig.held() == {offer(2).turn})
        world.rig.release()
        await placed(stays)
        assert world.rig.in_flight() == {offer(2).turn}

    in_world(story)


def test_hundreds_of_turns_at_once_all_find_their_place(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        world.rig.hold()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(world.link.admit(offer(turn))) for turn in range(400)]
        await world.disturb()
        await world.desk.until(lambda: len(world.rig.held()) == 400)
        world.rig.release()
        assert {await placed(task.result()) for task in tasks} == {"one"}
        assert len({task.result().run for task in tasks}) == 400

    in_world(story)


def test_turns_that_wait_while_the_scheduler_is_away_are_admitted_in_order_when_it_is_back(
    in_remote: Callable[[Callable[[RemoteWorld], Awaitable[None]]], None],
) -> None:
    async def story(world: RemoteWorld) -> None:
        await world.stop_server()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(world.link.admit(offer(turn))) for turn in range(10)]
            asked = group.create_task(world.link.models())
            await world.start_anew(hold=False)
        assert [await placed(task.result()) for task in tasks] == ["one"] * 10
        assert [call.turn for call in world.desk.offers()] == [offer(turn).turn for turn in range(10)]
        assert asked.result() == (MODEL,)

    in_remote(story)


def test_a_cancelled_admit_leaves_nothing_behind(
    in_remote: Callable[[Callable[[RemoteWorld], Awaitable[None]]], None],
) -> None:
    async def story(world: RemoteWorld) -> None:
        await world.stop_server()
        waits = asyncio.create_task(world.link.admit(offer(1)))
        abandoned = asyncio.create_task(world.link.admit(offer(2)))
        await asyncio.sleep(0)
        waits.cancel()
        world.link.report(TurnAbandoned(turn=offer(2).turn))
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(TurnRefusedError, match="withdrawn"):
            await abandoned
        await world.start_anew(hold=False)
        await placed(await world.link.admit(offer(3)))
        assert [call.turn for call in world.desk.offers()] == [offer(3).turn]
        assert world.rig.in_flight() == {offer(3).turn}

    in_remote(story)


def test_cancelling_one_of_two_that_wait_for_the_same_turn_leaves_the_other_its_place(
    in_remote: Callable[[Callable[[RemoteWorld], Awaitable[None]]], None],
) -> None:
    async def story(world: RemoteWorld) -> None:
        await world.stop_server()
        leaves = asyncio.create_task(world.link.admit(offer(1)))
        stays = asyncio.create_task(world.link.admit(offer(1)))
        await asyncio.sleep(0)
        leaves.cancel()
        await world.start_anew(hold=False)
        assert await placed(await stays) == "one"

    in_remote(story)


def test_a_scheduler_started_anew_is_told_everything_before_it_admits_anything(
    new_rig: NewRig,
) -> None:
    async def story(world: RestartedWorld) -> None:
        await world.link.add_replica(spec("mine", "mine"))
        tickets = [await world.link.admit(offer(turn)) for turn in range(3)]
        for ticket in tickets:
            await placed(ticket)
        world.link.report(_finished(0))
        await world.desk.until(lambda: len(world.rig.in_flight()) == 2)
        await world.link.models()  # its answer comes after the confirmation of the report
        world.rig.hold()
        held = await world.link.admit(offer(3))
        await world.stop_server()
        world.link.report(FirstTokenSeen(turn=offer(1).turn))
        world.link.report(_finished(1))
        late = asyncio.create_task(world.link.admit(offer(4)))
        await world.start_anew(hold=True)
        await late
        calls = world.desk.calls
        assert calls[0] == spec("mine", "mine")
        resync = world.desk.resyncs()[0]
        assert calls[1] == resync
        assert {turn.turn: turn.run for turn in resync.turns} == {
            offer(turn).turn: tickets[turn].run for turn in (1, 2)
        }
        assert {run.run: run.phase for run in resync.runs} == {
            tickets[0].run: RunPhase.PAUSED,
            tickets[1].run: RunPhase.GENERATING,
            tickets[2].run: RunPhase.GENERATING,
        }
        assert calls[2:4] == [FirstTokenSeen(turn=offer(1).turn), _finished(1)]
        again = world.desk.offers()
        assert [call.turn for call in again] == [offer(3).turn, offer(4).turn]
        assert again[0].keys.run == held.run
        assert again[0].age_s > 0
        assert world.rig.in_flight() == {offer(2).turn}

    _runner(RestartedWorld, new_rig)(story)


def test_a_place_that_was_lost_with_the_connection_is_given_again(
    in_remote: Callable[[Callable[[RemoteWorld], Awaitable[None]]], None],
) -> None:
    async def story(world: RemoteWorld) -> None:
        world.rig.hold()
        ticket = await world.link.admit(offer(1))
        world.relay.cut()
        world.rig.release()
        await world.desk.until(lambda: len(world.desk.offers()) == 2)
        await placed(ticket)
        assert world.rig.in_flight() == {offer(1).turn}
        world.link.report(TurnFinished(turn=offer(1).turn))
        await world.desk.until(lambda: not world.rig.in_flight())

    in_remote(story)


def test_a_report_that_was_lost_with_the_connection_is_made_again(
    in_remote: Callable[[Callable[[RemoteWorld], Awaitable[None]]], None],
) -> None:
    async def story(world: RemoteWorld) -> None:
        await placed(await world.link.admit(offer(1)))
        world.link.report(_finished(1))
        world.relay.cut()  # in the same turn of the loop: the report has left, and never arrives
        await world.desk.until(lambda: _finished(1) in world.desk.reports())
        await world.desk.until(lambda: not world.rig.in_flight())
        second = await world.link.admit(offer(2, tool_calls=("call-1",)))
        assert second.run == world.desk.resyncs()[-1].turns[0].run

    in_remote(story)


def test_the_turns_of_a_peer_that_died_end_after_the_grace(new_rig: NewRig) -> None:
    async def story(world: HastyWorld) -> None:
        await placed(await world.link.admit(offer(1)))
        world.rig.hold()
        await world.link.admit(offer(2))
        world.relay.target = None
        world.relay.cut()
        await world.desk.until(lambda: PEER in world.desk.calls)
        assert not world.rig.in_flight() | world.rig.held()

    _runner(HastyWorld, new_rig)(story)


def test_a_peer_that_comes_back_within_the_grace_keeps_its_turns(
    in_remote: Callable[[Callable[[RemoteWorld], Awaitable[None]]], None],
) -> None:
    async def story(world: RemoteWorld) -> None:
        await placed(await world.link.admit(offer(1)))
        await world.cut()
        assert PEER not in world.desk.calls
        assert world.rig.in_flight() == {offer(1).turn}

    in_remote(story)


def test_a_parent_is_found_by_the_tool_call_that_began_its_child(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        boss = await world.link.admit(offer(1))
        await placed(boss)
        world.link.report(_finished(1))
        await placed(await world.link.admit(offer(2)))  # answered after the report was
        await world.disturb()
        child = await world.link.admit(offer(3, run="child", parent_call="call-1"))
        orphan = await world.link.admit(offer(4, run="orphan", parent_call="nobody's"))
        assert (boss.parent, child.parent, orphan.parent) == (None, boss.run, None)

    in_world(story)


def test_a_placed_turn_is_asked_back_and_comes_again_as_another(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        recalled: asyncio.Queue[TurnId] = asyncio.Queue()
        world.link.attend(PEER, recalled.put_nowait)
        ticket = await world.link.admit(offer(1, run="mine"))
        await placed(ticket)
        await world.disturb()
        world.rig.recall(offer(1).turn)
        async with asyncio.timeout(10):
            assert await recalled.get() == offer(1).turn
        world.link.report(TurnReturned(turn=offer(1).turn))
        again = await world.link.admit(replace(offer(2, run="mine"), age_s=3.0, recalls=1, reply_max=9))
        assert again.run == "mine"
        await placed(again)
        assert world.rig.in_flight() == {offer(2).turn}
        assert (world.desk.offers()[-1].recalls, world.desk.offers()[-1].reply_max) == (1, 9)
        assert recalled.empty()

    in_world(story)


def test_an_answer_that_grew_is_told_of(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        await placed(await world.link.admit(offer(1)))
        await world.disturb()
        grew = AnswerGrew(turn=offer(1).turn, reply_bytes=90_000)
        world.link.report(grew)
        await world.desk.until(lambda: grew in world.desk.reports())
        assert world.rig.in_flight() == {offer(1).turn}

    in_world(story)


def test_a_turn_that_stays_is_where_it_was(in_world: Callable[[WorldTest], None]) -> None:
    async def story(world: World) -> None:
        world.link.attend(PEER, lambda turn: world.link.report(TurnStays(turn=turn)))
        await placed(await world.link.admit(offer(1)))
        await world.disturb()
        world.rig.recall(offer(1).turn)
        await world.desk.until(lambda: TurnStays(turn=offer(1).turn) in world.desk.reports())
        assert world.rig.in_flight() == {offer(1).turn}

    in_world(story)
