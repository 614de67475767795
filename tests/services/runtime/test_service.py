import asyncio
from collections.abc import Mapping

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId, RunId
from luftpause.core.runs.events import RunCancelled, RunRecovered
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.orders import NotKeptError, RuntimeSettings, SpawnRefusedError, UnknownHandleError
from luftpause.telemetry.exposition import rendered
from services.runtime.runtime_fakes import (
    FakeTools,
    MemoryJournal,
    World,
    answers_of,
    calls,
    hold,
    in_time,
    look,
    look_once,
    order,
    runtime,
    text,
)

ME = ANONYMOUS_PRINCIPAL


async def over(world: World, *runs: RunId) -> list[RunView]:
    assert await world.service.wait(ME, runs, "all", 20)
    return world.service.look(ME, runs)


def test_a_run_asks_its_tool_and_answers_with_what_it_heard() -> None:
    async def live() -> None:
        async with runtime() as world:
            (run,) = await over(world, await world.service.spawn(order(system="be brief")))
            assert (run.status, run.result) == (RunStatus.FINISHED, "I heard: moon is there")
            assert (run.own.turns, run.own.tool_calls, run.own.failed_tool_calls) == (2, 1, 0)
            first = world.turns.asked[0]
            assert (first.model, [tool.name for tool in first.tools], first.caller) == ("served-model", ["look"], "c")
            assert run.spawn.run.startswith("run_")
            assert len(run.spawn.run) >= 26
        assert world.turns.ended == [run.spawn.run]

    in_time(live())


def test_runs_live_side_by_side_and_any_waits_for_the_first_only() -> None:
    async def say(request: TurnRequest) -> TurnReply:
        if request.messages[0].text == "slow":
            await asyncio.Event().wait()
        return text("done")

    async def live() -> None:
        async with runtime(say) as world:
            slow, fast = await world.service.spawn(order("slow")), await world.service.spawn(order("fast"))
            assert await world.service.wait(ME, [slow, fast], "any", 20)
            assert not await world.service.wait(ME, [slow, fast], "all", 0.01)
            assert [run.status for run in world.service.look(ME, [slow, fast])] == [
                RunStatus.RUNNING,
                RunStatus.FINISHED,
            ]

    in_time(live())


def test_several_calls_of_one_reply_run_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    async def meet(_arguments: Mapping[str, object]) -> ToolOutcome:
        await both.wait()
        return ToolOutcome(text="met")

    async def say(request: TurnRequest) -> TurnReply:
        return text("ok") if answers_of(request) else calls(("meet", '{"at":"a"}'), ("meet", '{"at":"b"}'))

    async def live() -> None:
        async with runtime(say, tools=FakeTools({"meet": meet})) as world:
            (run,) = await over(world, await world.service.spawn(order()))
            assert run.result == "ok"

    in_time(live())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("gaze", "{}"), "there is no tool 'gaze'. Tools: look."),
        (("look", "not json"), "the arguments are no JSON object."),
        (("look", '{"at": [5]}'), "at: [5] is not of type 'string'."),
    ],
)
def test_a_call_that_makes_no_sense_goes_back_to_the_model_and_never_to_a_tool(
    call: tuple[str, str], told: str
) -> None:
    async def say(request: TurnRequest) -> TurnReply:
        heard = answers_of(request)
        return text(heard[0]) if heard else calls(call)

    async def live() -> None:
        async with runtime(say) as world:
            (run,) = await over(world, await world.service.spawn(order()))
            assert run.result is not None
            assert run.result.startswith(f"Error: {told}")
            assert (run.own.tool_calls, run.own.failed_tool_calls, world.tools.made) == (1, 1, [])

    in_time(live())


def test_a_spent_tool_budget_ends_in_an_answer_without_tools() -> None:
    async def say(request: TurnRequest) -> TurnReply:
        return calls(("look", '{"at":"x"}')) if request.tools else text("enough")

    async def live() -> None:
        async with runtime(say) as world:
            (run,) = await over(world, await world.service.spawn(order(max_tool_calls=3)))
            assert (run.result, run.own.tool_calls, run.own.turns) == ("enough", 3, 4)

    in_time(live())


def test_a_turn_that_cannot_be_had_fails_the_run_with_the_reason() -> None:
    async def refuse(_request: TurnRequest) -> TurnReply:
        raise TurnFailedError("no Generative replica serves model 'x'")

    async def live() -> None:
        async with runtime(refuse) as world:
            (run,) = await over(world, await world.service.spawn(order()))
            assert (run.status, run.error) == (RunStatus.FAILED, "no Generative replica serves model 'x'")

    in_time(live())


def test_a_fault_of_ours_fails_that_run_alone() -> None:
    async def say(request: TurnRequest) -> TurnReply:
        if len(answers_of(request)) == 0 and request.messages[0].text == "bad":
            raise ZeroDivisionError("oops")
        return text("fine")

    async def live() -> None:
        async with runtime(say) as world:
            bad, good = await over(
                world, await world.service.spawn(order("bad")), await world.service.spawn(order("good"))
            )
            assert (bad.status, bad.error) == (RunStatus.FAILED, "internal error: oops")
            assert good.result == "fine"

    in_time(live())


def test_cancelling_drops_the_turn_and_everything_below() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            parent = await world.service.spawn(order())
            child = await world.service.spawn(order(parent=parent))
            other = await world.service.spawn(order())
            cancelled = await world.service.cancel(ME, parent)
            assert (cancelled.status, cancelled.error) == (RunStatus.CANCELLED, "cancelled: on request")
            (below,) = await over(world, child)
            assert below.status is RunStatus.CANCELLED
            assert world.service.look(ME, [other])[0].status is RunStatus.RUNNING
            assert (await world.service.cancel(ME, parent)).status is RunStatus.CANCELLED
            with pytest.raises(SpawnRefusedError, match="was cancelled"):
                await world.service.spawn(order(parent=parent))

    in_time(live())


def test_handles_of_others_do_not_exist() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            theirs = await world.service.spawn(order(principal=PrincipalId("them")))
            for attempt in (
                world.service.wait(ME, [theirs], "all", 1),
                world.service.cancel(ME, theirs),
                world.service.spawn(order(parent=theirs)),
            ):
                with pytest.raises(UnknownHandleError, match=theirs):
                    await attempt
            assert world.service.glance(ME).views() == ()
            assert len(world.service.glance().views()) == 1

    in_time(live())


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        (("look", "gaze"), "there is no tool 'gaze'; tools: look"),
        (("fake__gaze",), "there is no tool 'fake__gaze'"),
    ],
)
def test_a_spawn_with_a_tool_that_is_not_there_spawns_nothing(tools: tuple[str, ...], told: str) -> None:
    async def live() -> None:
        async with runtime() as world:
            with pytest.raises(SpawnRefusedError, match=told):
                await world.service.spawn(order(tools=tools))
            assert world.journal.kept == {}

    in_time(live())


def test_tools_can_be_named_either_way_and_are_offered_once() -> None:
    async def live() -> None:
        async with runtime() as world:
            await over(world, await world.service.spawn(order(tools=("fake__look", "look"))))
            await over(world, await world.service.spawn(order(tools=())))
            offered = [[tool.name for tool in request.tools] for request in world.turns.asked]
            assert offered[0] == ["look"]
            assert offered[2] == []

    in_time(live())


def test_the_model_is_the_named_one_else_the_default_else_the_first_served() -> None:
    async def model(settings: RuntimeSettings, wanted: str | None) -> str:
        async with runtime(settings=settings) as world:
            return world.service.look(ME, [await world.service.spawn(order(model=wanted))])[0].spawn.model

    default = RuntimeSettings(default_model="default-model")  # type: ignore[arg-type]
    assert in_time(model(default, "named")) == "named"
    assert in_time(model(default, None)) == "default-model"
    assert in_time(model(RuntimeSettings(), None)) == "served-model"

    async def none_served() -> None:
        async with runtime(models=()) as world:
            with pytest.raises(SpawnRefusedError, match="name a model"):
                await world.service.spawn(order())

    in_time(none_served())


def test_more_runs_than_allowed_are_refused_until_one_ends() -> None:
    async def live() -> None:
        async with runtime(hold, settings=RuntimeSettings(max_running=2)) as world:
            first = await world.service.spawn(order())
            await world.service.spawn(order())
            with pytest.raises(SpawnRefusedError, match="2 runs are running"):
                await world.service.spawn(order())
            await world.service.cancel(ME, first)
            await world.service.spawn(order())

    in_time(live())


def test_a_client_that_leaves_while_spawning_leaves_a_run_that_lives() -> None:
    async def live() -> None:
        async with runtime() as world:
            world.journal.gate.clear()
            spawning = asyncio.ensure_future(world.service.spawn(order()))
            await world.journal.knocked.wait()
            spawning.cancel()
            with pytest.raises(asyncio.CancelledError):
                await spawning
            world.journal.gate.set()
            await world.turns.reached.wait()
            (run,) = world.service.glance(ME).views()
            assert (await over(world, run.spawn.run))[0].status is RunStatus.FINISHED

    in_time(live())


def test_a_broken_journal_refuses_spawns_and_acknowledges_nothing() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            before = await world.service.spawn(order())
            world.journal.broken = True
            for _ in range(2):
                with pytest.raises(SpawnRefusedError, match="the disk is full"):
                    await world.service.spawn(order())
            assert world.service.journal_failure == "the disk is full"
            for hopeless in (world.service.cancel(ME, before), world.service.wait(ME, [before], "all", 600)):
                with pytest.raises(NotKeptError, match="the disk is full"):
                    await hopeless
            assert len(world.service.glance(ME).views()) == 1

    in_time(live())


def test_a_journal_that_breaks_while_somebody_waits_is_told_at_once() -> None:
    async def live() -> None:
        async with runtime(hold) as world:
            run = await world.service.spawn(order())
            waiting = asyncio.ensure_future(world.service.wait(ME, [run], "any", 600))
            cancelling = asyncio.ensure_future(world.service.cancel(ME, run))
            world.journal.broken = True
            for told in (waiting, cancelling):
                with pytest.raises(NotKeptError, match="the disk is full"):
                    await told

    in_time(live())


def test_runs_that_ended_before_the_journal_broke_are_still_answered_for() -> None:
    async def live() -> None:
        async with runtime() as world:
            done = await world.service.spawn(order())
            await over(world, done)
            world.journal.broken = True
            with pytest.raises(SpawnRefusedError):
                await world.service.spawn(order())
            assert (await over(world, done))[0].status is RunStatus.FINISHED
            assert (await world.service.cancel(ME, done)).status is RunStatus.FINISHED

    in_time(live())


def test_cancelling_a_finished_parent_ends_what_runs_below_it_before_it_returns() -> None:
    async def say(request: TurnRequest) -> TurnReply:
        return text("done") if request.messages[0].text == "short" else await hold(request)

    async def live() -> None:
        async with runtime(say) as world:
            parent = await world.service.spawn(order("short"))
            child = await world.service.spawn(order(parent=parent))
            grandchild = await world.service.spawn(order(parent=child))
            await over(world, parent)
            assert (await world.service.cancel(ME, parent)).status is RunStatus.FINISHED
            statuses = [run.status for run in world.service.look(ME, [child, grandchild])]
            assert statuses == [RunStatus.CANCELLED, RunStatus.CANCELLED]

    in_time(live())


def test_a_run_keeps_the_tools_of_its_spawn_whatever_is_listed_later() -> None:
    async def live() -> None:
        journal, tools = MemoryJournal(), FakeTools()
        answer = asyncio.Event()

        async def say(request: TurnRequest) -> TurnReply:
            await answer.wait()
            return await look_once(request)

        async with runtime(say, journal=journal, tools=tools) as world:
            run = await world.service.spawn(order())
            await world.turns.reached.wait()
            granted = world.turns.asked[0].tools
        later = FakeTools({"gaze": look, "look": look}, unsafe=frozenset({"look"}))
        answer.set()
        async with runtime(say, journal=journal, tools=later) as world:
            (seen,) = await over(world, run)
            assert seen.result == "I heard: moon is there"
            assert [[tool.name for tool in request.tools] for request in world.turns.asked] == [["look"], ["look"]]
            assert all(request.tools == granted for request in world.turns.asked)
            assert later.asked == [], "a run that has its tools asks no server for them"

    in_time(live())


def test_a_spawn_asks_for_the_tools_that_it_names_and_for_none_when_it_wants_none() -> None:
    async def live() -> None:
        async with runtime() as world:
            for wanted in ((), ("look",), None):
                await over(world, await world.service.spawn(order(tools=wanted)))
            assert world.tools.asked == [("look",), None]

    in_time(live())


def test_closing_leaves_runs_unfinished_and_the_next_start_takes_them_up() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with runtime(hold, journal=journal) as world:
            done = await world.service.spawn(order())
            await world.service.cancel(ME, done)
            run = await world.service.spawn(order())
            await world.turns.reached.wait()
        assert journal.closed
        assert not any(isinstance(entry.event, RunCancelled) for entry in journal.kept[run])
        async with runtime(look_once, journal=journal) as world:
            (finished,) = await over(world, run)
            assert finished.result == "I heard: moon is there"
            assert [type(entry.event) for entry in journal.kept[run]].count(RunRecovered) == 1
            assert world.service.look(ME, [done])[0].status is RunStatus.CANCELLED
            await world.service.close()
            with pytest.raises(SpawnRefusedError, match="shutting down"):
                await world.service.spawn(order())

    in_time(live())


def test_metrics_count_what_happened() -> None:
    async def live() -> str:
        async with runtime() as world:
            await over(world, await world.service.spawn(order()))
            return rendered(world.service.counts()).decode()

    page = in_time(live())
    for line in (
        "luftpause_runtime_runs_spawned_total 1.0",
        'luftpause_runtime_runs_ended_total{how="finished"} 1.0',
        "luftpause_runtime_turns_total 2.0",
        'luftpause_runtime_tool_calls_total{how="answered"} 1.0',
        'luftpause_runtime_tokens_total{kind="prompt"} 9.0',
        "luftpause_runtime_running_runs 0.0",
        "luftpause_runtime_journal_failed 0.0",
    ):
        assert line in page.splitlines()
