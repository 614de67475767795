import asyncio
import time
from dataclasses import dataclass, field

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, RunId
from luftpause.core.runs.events import Limits, MessageSent, RunCancelled, RunFinished
from luftpause.core.runs.messages import AssistantMessage, UserMessage
from luftpause.core.runs.replay import History
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.ports.journal import JournalFailedError
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.actor import LONG_CHARS
from luftpause.services.runtime.orders import NotKeptError, RuntimeSettings, SendRefusedError
from services.runtime.runtime_fakes import (
    MemoryJournal,
    World,
    answers_of,
    calls,
    hold,
    in_time,
    look_once,
    order,
    runtime,
    text,
)
from testkit.virtual_time import VirtualLoop, let_pass, run_virtual

ME = ANONYMOUS_PRINCIPAL


async def ended(world: World, run: RunId) -> RunView:
    assert await world.service.wait(ME, [run], "all", 20)
    return world.service.look(ME, [run])[0]


def last_said(request: TurnRequest) -> str:
    return request.messages[-1].text


async def echo(request: TurnRequest) -> TurnReply:
    return text(f"re: {last_said(request)}")


# Budgets


def test_a_limit_of_seconds_ends_an_idle_subtree_by_itself() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            parent = await world.service.spawn(order(budget=Limits(seconds=60)))
            await let_pass(30)
            child = await world.service.spawn(order(parent=parent))
            await let_pass(29.5)
            assert world.service.look(ME, [child])[0].status is RunStatus.RUNNING
            await let_pass(1)
            for run in world.service.look(ME, [parent, child]):
                assert (run.status, run.error) == (RunStatus.CANCELLED, "budget exceeded: seconds 60/60")
            (seen,) = world.service.look(ME, [parent])
            assert seen.budget is not None
            assert (seen.budget.used.seconds, seen.budget.exceeded) == (60, "seconds")

    run_virtual(live())


def test_the_clock_of_a_budget_stands_still_while_no_runtime_is_up() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with runtime(hold, journal=journal) as world:
            run = await world.service.spawn(order(budget=Limits(seconds=60)))
            await let_pass(40)
            await world.service.send(ME, run, "still there?")
        await let_pass(3600)
        async with runtime(hold, journal=journal) as world:
            (seen,) = world.service.look(ME, [run])
            assert seen.budget is not None
            assert seen.budget.used.seconds == 40
            await let_pass(19)
            assert world.service.look(ME, [run])[0].status is RunStatus.RUNNING
            await let_pass(2)
            assert world.service.look(ME, [run])[0].error == "budget exceeded: seconds 60/60"

    run_virtual(live())


@pytest.mark.parametrize("jump_s", [-10 * 365 * 86_400, 10 * 365 * 86_400])
def test_a_wall_clock_that_jumps_moves_no_deadline(monkeypatch: pytest.MonkeyPatch, jump_s: float) -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            run = await world.service.spawn(order(budget=Limits(seconds=60)))
            await let_pass(30)
            wall = time.time() + jump_s
            monkeypatch.setattr(time, "time", lambda: wall)
            child = await world.service.spawn(order(parent=run))
            assert not await world.service.wait(ME, [child], "all", 29)
            assert await world.service.wait(ME, [child], "all", 2)
            assert world.service.look(ME, [run])[0].error == "budget exceeded: seconds 60/60"

    run_virtual(live())


def test_what_is_overdue_after_a_suspension_happens_once() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            family = [await world.service.spawn(order(budget=Limits(seconds=60)))]
            family += [await world.service.spawn(order(parent=family[0], budget=Limits(seconds=90))) for _ in range(2)]
            free = await world.service.spawn(order())
            waiting = asyncio.create_task(world.service.wait(ME, [free], "all", 300))
            await let_pass(1)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.now += 3600  # no timer in between got its turn
            for run in family:
                error = (await ended(world, run)).error
                assert error in ("budget exceeded: seconds 3601/60", "budget exceeded: seconds 3601/90")
            assert await waiting is False
            await let_pass(3600)
            for run in family:
                ends = [entry for entry in world.journal.kept[run] if isinstance(entry.event, RunCancelled)]
                assert len(ends) == 1
            assert world.service.look(ME, [free])[0].status is RunStatus.RUNNING

    run_virtual(live())


def test_an_engine_that_answers_nobody_for_long_does_not_stop_the_clock() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            first = await world.service.spawn(order(budget=Limits(seconds=20)))
            second = await world.service.spawn(order(parent=first, budget=Limits(seconds=5)))
            await let_pass(6)
            assert [run.status for run in world.service.look(ME, [first, second])] == [
                RunStatus.RUNNING,
                RunStatus.CANCELLED,
            ]
            await let_pass(15)
            assert world.service.look(ME, [first])[0].error == "budget exceeded: seconds 20/20"

    run_virtual(live())


def test_parallel_children_overshoot_a_budget_by_no_more_than_their_turns_in_flight() -> None:
    go = asyncio.Event()

    all_asked = asyncio.Event()
    asked: list[RunId] = []

    async def say(request: TurnRequest) -> TurnReply:
        asked.append(request.run)
        if len(asked) == 7:
            all_asked.set()
        if request.parent is None:
            return await hold(request)
        await go.wait()
        return calls(("look", '{"at":"x"}')) if not answers_of(request) else text("done")

    async def live() -> None:
        async with runtime(say) as world:
            parent = await world.service.spawn(order(budget=Limits(tool_calls=2)))
            children = [await world.service.spawn(order(parent=parent)) for _ in range(6)]
            await all_asked.wait()
            go.set()
            seen = await ended(world, parent)
            assert seen.error is not None
            assert seen.error.startswith("budget exceeded: toolCalls ")
            assert seen.subtree.tool_calls <= 6
            assert len(world.turns.asked) <= 7 + 2, "only those within the limit could go on"
            for child in children:
                assert (await ended(world, child)).error == seen.error

    in_time(live())


def test_a_budget_that_is_nearly_spent_gives_one_last_turn() -> None:
    async def say(request: TurnRequest) -> TurnReply:
        return calls(("look", '{"at":"x"}')) if request.tools else text(f"so far ({last_said(request)[:10]})")

    async def live() -> None:
        async with runtime(say) as world:
            run = await world.service.spawn(order(budget=Limits(tool_calls=2)))
            seen = await ended(world, run)
            assert (seen.status, seen.result, seen.own.tool_calls) == (RunStatus.FINISHED, "so far (The budget)", 2)

    in_time(live())


# Messages


def test_a_message_makes_a_finished_run_go_on_with_its_whole_conversation() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with runtime(echo, journal=journal) as world:
            run = await world.service.spawn(order("one"))
            assert (await ended(world, run)).result == "re: one"
            seen = await world.service.send(ME, run, "two")
            assert seen.status is RunStatus.RUNNING
            assert (await ended(world, run)).result == "re: two"
        async with runtime(echo, journal=journal) as world:
            await world.service.send(ME, run, "three")
            assert (await ended(world, run)).result == "re: three"
            assert world.turns.asked[-1].messages == (
                UserMessage(text="one"),
                AssistantMessage(text="re: one"),
                UserMessage(text="two"),
                AssistantMessage(text="re: two"),
                UserMessage(text="three"),
            )
            assert (await ended(world, run)).own.turns == 3
        assert world.turns.ended == [run]

    in_time(live())


def test_a_run_that_went_on_is_taken_up_again_after_a_restart() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with runtime(echo, journal=journal) as world:
            run = await world.service.spawn(order("one"))
            await ended(world, run)
            world.turns.say = hold
            world.turns.reached.clear()
            await world.service.send(ME, run, "two")
            await world.turns.reached.wait()
        async with runtime(echo, journal=journal) as world:
            assert (await ended(world, run)).result == "re: two"
            assert world.turns.asked[0].messages[0] == UserMessage(text="one")

    in_time(live())


def test_a_running_run_hears_a_message_before_its_next_turn() -> None:
    answer = asyncio.Event()

    async def say(request: TurnRequest) -> TurnReply:
        if len(world_turns) == 0:
            world_turns.append(request)
            await answer.wait()
            return text("first")
        return await echo(request)

    world_turns: list[TurnRequest] = []

    async def live() -> None:
        async with runtime(say) as world:
            run = await world.service.spawn(order("one"))
            await world.turns.reached.wait()
            await world.service.send(ME, run, "and two")
            answer.set()
            assert (await ended(world, run)).result == "re: and two"

    in_time(live())


def test_messages_that_race_with_the_end_are_all_heard() -> None:
    async def live() -> None:
        async with runtime(echo) as world:
            run = await world.service.spawn(order("0"))
            for number in range(1, 30):
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                await world.service.send(ME, run, f"{number}")
            seen = await ended(world, run)
            assert seen.result == "re: 29"
            whole = await world.service.transcript(ME, run, 0, 1000)
            said = [message.text for message in whole.messages if isinstance(message, UserMessage)]
            assert said == [f"{number}" for number in range(30)]
            events = [entry.event for entry in world.journal.kept[run]]
            assert isinstance(events[-1], RunFinished), "an end that was overtaken is not on record"
            assert sum(isinstance(event, MessageSent) for event in events) == 29

    in_time(live())


@pytest.mark.parametrize("how", ["failed", "cancelled", "spent"])
def test_a_run_that_cannot_go_on_takes_no_message(how: str) -> None:
    async def say(request: TurnRequest) -> TurnReply:
        if how == "failed":
            raise TurnFailedError("engine gone")
        return await hold(request) if how == "cancelled" else text("dear")

    async def live() -> None:
        async with runtime(say) as world:
            run = await world.service.spawn(order(budget=Limits(tokens=11)))
            if how == "cancelled":
                await world.service.cancel(ME, run)
            await ended(world, run)
            told = {"failed": "engine gone", "cancelled": "was cancelled", "spent": "tokens 11/11"}[how]
            with pytest.raises(SendRefusedError, match=told):
                await world.service.send(ME, run, "more")

    in_time(live())


def test_messages_do_not_pile_up_without_end_nor_pass_the_cap_on_runs() -> None:
    async def live() -> None:
        async with runtime(echo, settings=RuntimeSettings(max_running=1)) as world:
            over = await world.service.spawn(order("one"))
            await ended(world, over)
            world.turns.say = hold
            busy = await world.service.spawn(order("two"))
            with pytest.raises(SendRefusedError, match="1 runs are running"):
                await world.service.send(ME, over, "more")
            for number in range(100):
                await world.service.send(ME, busy, f"{number}")
            with pytest.raises(SendRefusedError, match="100 messages waiting"):
                await world.service.send(ME, busy, "too much")

    in_time(live())


class ForgetfulJournal(MemoryJournal):
    async def history(self, run: RunId) -> History:
        raise JournalFailedError("the archive is gone")


def test_a_conversation_that_cannot_be_read_back_refuses_the_message_and_breaks_nothing() -> None:
    async def live() -> None:
        async with runtime(echo, journal=ForgetfulJournal()) as world:
            run = await world.service.spawn(order("one"))
            await ended(world, run)
            with pytest.raises(NotKeptError, match="the archive is gone"):
                await world.service.send(ME, run, "two")
            with pytest.raises(NotKeptError, match="the archive is gone"):
                await world.service.transcript(ME, run, 0, 10)
            assert world.service.journal_failure == ""
            assert (await ended(world, await world.service.spawn(order("other")))).result == "re: other"
            assert (await ended(world, run)).result == "re: one"

    in_time(live())


@dataclass
class DamagedJournal(MemoryJournal):
    sound: slice = field(default_factory=lambda: slice(0))

    async def history(self, run: RunId) -> History:
        entries = tuple(self.kept[run][self.sound])
        return History(run=run, entries=entries, damage="its archive is damaged")


@pytest.mark.parametrize(("sound", "said"), [((0,), None), ((1, None), None), ((1,), 1), ((-1, None), None)])
def test_a_conversation_that_is_damaged_is_not_gone_on_with_and_its_result_stays(
    sound: tuple[int | None, ...], said: int | None
) -> None:
    async def live() -> None:
        async with runtime(echo, journal=DamagedJournal(sound=slice(*sound))) as world:
            run = await world.service.spawn(order("one"))
            await ended(world, run)
            with pytest.raises(NotKeptError, match="its archive is damaged"):
                await world.service.send(ME, run, "two")
            if said is None:
                with pytest.raises(NotKeptError, match="its archive is damaged"):
                    await world.service.transcript(ME, run, 0, 10)
            else:
                assert (await world.service.transcript(ME, run, 0, 10)).total == said
            assert (await ended(world, run)).result == "re: one"
            assert world.service.journal_failure == ""

    in_time(live())


class SlowJournal(MemoryJournal):
    async def history(self, run: RunId) -> History:
        self.read_back.append(run)
        self.knocked.set()
        await asyncio.Event().wait()
        raise JournalFailedError("never")


def test_a_runtime_that_closes_leaves_nobody_waiting_for_a_message() -> None:
    async def live() -> None:
        async with runtime(echo, journal=SlowJournal()) as world:
            run = await world.service.spawn(order("one"))
            await ended(world, run)
            world.journal.knocked.clear()
            sending = asyncio.ensure_future(world.service.send(ME, run, "two"))
            await world.journal.knocked.wait()
            await world.service.close()
            with pytest.raises(NotKeptError, match="shutting down"):
                await sending

    in_time(live())


# Runs after others, shapes, models


def test_a_run_after_others_begins_with_their_results_also_after_a_restart() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with runtime(hold, journal=journal) as world:
            first, second = await world.service.spawn(order("a")), await world.service.spawn(order("b"))
            later = await world.service.spawn(order("c", after=(first, second)))
            await world.service.cancel(ME, second)
            assert world.service.look(ME, [later])[0].phase == "waiting_for_runs"
        async with runtime(echo, journal=journal) as world:
            seen = await ended(world, later)
            assert seen.result is not None
            assert f"Result of {first}:\nre: a" in seen.result
            assert f"{second} gave no result: cancelled: on request" in seen.result

    in_time(live())


def test_an_answer_with_a_shape_is_mended_once_and_given_as_a_value() -> None:
    schema = {"type": "object", "required": ["n"]}

    async def say(request: TurnRequest) -> TurnReply:
        return text('{"n": 4}' if "does not fit" in last_said(request) else "four")

    async def live() -> None:
        async with runtime(say) as world:
            seen = await ended(world, await world.service.spawn(order(output_schema=schema)))
            assert (seen.result, seen.structured, seen.own.turns) == ('{"n": 4}', {"n": 4}, 2)
            assert [request.answer_schema for request in world.turns.asked] == [None, schema]
            world.turns.say = echo
            failed = await ended(world, await world.service.spawn(order(output_schema=schema)))
            assert failed.status is RunStatus.FAILED
            assert failed.error is not None
            assert failed.error.startswith("The answer does not fit: it is not JSON")

    in_time(live())


def test_a_model_that_cannot_be_had_is_followed_by_the_next_of_the_list() -> None:
    async def say(request: TurnRequest) -> TurnReply:
        if request.model == "good":
            return await look_once(request)
        raise TurnFailedError(f"no {request.model}")

    async def live() -> None:
        async with runtime(say) as world:
            spawn = order(model="bad", fallback_models=("worse", "good"))
            seen = await ended(world, await world.service.spawn(spawn))
            assert (seen.result, seen.model) == ("I heard: moon is there", "good")
            assert [request.model for request in world.turns.asked] == ["bad", "worse", "good", "good"]
            failed = await ended(world, await world.service.spawn(order(model="bad", fallback_models=("worse",))))
            assert (failed.status, failed.error) == (RunStatus.FAILED, "no worse")

    in_time(live())


# Seeing


def test_a_transcript_is_read_page_by_page_while_a_run_lives_and_afterwards() -> None:
    async def live() -> None:
        async with runtime(look_once) as world:
            run = await world.service.spawn(order("one"))
            await ended(world, run)
            whole = await world.service.transcript(ME, run, 0, 100)
            assert (whole.first, whole.total) == (0, 4)
            assert whole.messages[-1] == AssistantMessage(text="I heard: moon is there")
            page = await world.service.transcript(ME, run, 1, 2)
            assert (page.first, page.total, page.messages) == (1, 4, whole.messages[1:3])
            world.turns.say = hold
            living = await world.service.spawn(order("two"))
            assert (await world.service.transcript(ME, living, 0, 9)).messages == (UserMessage(text="two"),)
            assert world.journal.read_back == [run, run]

    in_time(live())


def test_whoever_follows_runs_hears_of_every_standing_and_of_the_last_at_least() -> None:
    async def live() -> None:
        async with runtime(echo) as world:
            run, other = await world.service.spawn(order("one")), await world.service.spawn(order("two"))
            following = world.service.changes(ME, [run, other])
            seen: dict[RunId, list[RunView]] = {run: [], other: []}
            async for view in following:
                seen[view.run].append(view)
                if all(views and views[-1].status.is_over for views in seen.values()):
                    break
            await world.service.send(ME, run, "more")
            went_on = await anext(following)
            assert (went_on.run, went_on.status) == (run, RunStatus.RUNNING)
            await following.aclose()

    in_time(live())


def test_the_overview_shows_the_newest_and_before_them_what_still_runs() -> None:
    async def live() -> None:
        journal = MemoryJournal()

        async def hold_one(request: TurnRequest) -> TurnReply:
            return await (hold if last_said(request) == "runs" else echo)(request)

        async with runtime(hold_one, journal=journal) as world:
            running = await world.service.spawn(order("runs"))
            over = [await world.service.spawn(order(f"{number}")) for number in range(4)]
            await world.service.wait(ME, over, "all", 20)
            for look in (world.service.glance, lambda _, limit: world.service.glance(None, limit)):
                some = look(ME, 3)
                assert [view.run for view in some.views()] == [running, over[3], over[2]]
                assert some.left_out == 2
        async with runtime(hold, journal=journal) as world:
            everything = world.service.glance(ME)
            assert [view.run for view in everything.views()] == [running, *reversed(over)]
            assert everything.left_out == 0

    in_time(live())


def test_long_arguments_are_judged_and_passed_on_like_short_ones() -> None:
    long = "x" * (LONG_CHARS + 1)

    async def say(request: TurnRequest) -> TurnReply:
        heard = answers_of(request)
        return (
            text(heard[0] + heard[1])
            if heard
            else calls(("look", f'{{"at": "{long}"}}'), ("look", f'{{"on": "{long}"}}'))
        )

    async def live() -> None:
        async with runtime(say) as world:
            handle = await world.service.spawn(order(parallel_tool_calls=True))
            await world.service.wait(ME, [handle], "all", 30)
            (view,) = world.service.look(ME, [handle])
            assert view.result is not None
            assert view.result.startswith(f"{long} is thereError: 'at' is a required property")

    in_time(live())
