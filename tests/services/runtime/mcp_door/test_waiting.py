"""Waits that ask people on the way, in both eras."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, ElicitResult, InputRequiredResult, InputResponse

from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.mcp_door import door as door_module
from luftpause.services.runtime.orders import RuntimeSettings
from services.runtime.mcp_door.doors import (
    ASKS,
    Mode,
    allow,
    both_eras,
    complaint,
    content,
    decline,
    door,
    look_twice,
    run_of,
    spawn,
    until_asked,
)
from services.runtime.runtime_fakes import MemoryJournal, answers_of, in_time, look_once, text

DECLINED = "Error: the user declined this tool call"
QUICK = RuntimeSettings(progress_every_s=0.05)


class Person:
    """Answers forms one way, and counts them; with `gate` only once that is set."""

    def __init__(self, answer: Callable[[str], Awaitable[ElicitResult]], gate: asyncio.Event | None = None) -> None:
        self._answer = answer
        self._gate = gate
        self.asked: list[str] = []
        self.reached = asyncio.Event()

    async def __call__(self, message: str) -> ElicitResult:
        self.asked.append(message)
        self.reached.set()
        if self._gate is not None:
            await self._gate.wait()
        return await self._answer(message)


@both_eras
@pytest.mark.parametrize(("answer", "heard"), [(allow, "moon is there"), (decline, DECLINED)])
def test_a_person_is_asked_while_the_client_waits(
    mode: Mode, answer: Callable[[str], Awaitable[ElicitResult]], heard: str
) -> None:
    async def live() -> None:
        person = Person(answer)
        async with door() as it, it.client(mode, answer=person) as client:
            handle = await spawn(client, **ASKS)
            (run,) = content(await client.call_tool("await", {"handles": [handle]}))["runs"]
            assert (run["status"], run["result"]) == ("Finished", f"I heard: {heard}")
            assert len(person.asked) == 1
            assert 'wants to call look with {"at": "moon"}' in person.asked[0]
            assert "Its task: find the moon" in person.asked[0]
            assert len(it.world.tools.made) == (1 if answer is allow else 0)

    in_time(live())


@both_eras
def test_run_asks_on_its_way_too(mode: Mode) -> None:
    async def live() -> None:
        person = Person(allow)
        async with door() as it, it.client(mode, answer=person) as client:
            run = content(await client.call_tool("run", {"task": "find the moon", **ASKS}))
            assert (run["status"], run["result"], len(person.asked)) == ("Finished", "I heard: moon is there", 1)
            assert len(it.world.turns.ended) <= 1
            assert len(it.world.service.glance().views()) == 1

    in_time(live())


@both_eras
def test_several_calls_are_asked_about_one_by_one_and_each_once(mode: Mode) -> None:
    async def live() -> None:
        person = Person(allow)
        async with door(look_twice) as it, it.client(mode, answer=person) as client:
            handles = [await spawn(client, parallelToolCalls=True, **ASKS) for _ in range(2)]
            runs = content(await client.call_tool("await", {"handles": handles}))["runs"]
            assert [run["result"] for run in runs] == ["moon is there / sun is there"] * 2
            assert len(person.asked) == 4
            assert len(it.world.tools.made) == 4

    in_time(live())


@both_eras
def test_a_client_that_shows_no_forms_is_told_what_waits_and_can_answer_for_its_user(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            handle = await spawn(client, **ASKS)
            (run,) = content(await client.call_tool("await", {"handles": [handle]}))["runs"]
            assert run["status"] == "AwaitingApproval"
            pending = run["pendingApproval"]
            assert (pending["tool"], pending["arguments"]) == ("look", {"at": "moon"})
            assert pending["reason"]
            answer = content(await client.call_tool("approve", {"handle": handle, "allow": False}))
            assert (answer["decided"], answer["pendingApproval"]) == (True, None)
            again = content(await client.call_tool("approve", {"handle": handle, "allow": True}))
            assert again["decided"] is False
            (run,) = content(await client.call_tool("await", {"handles": [handle]}))["runs"]
            assert run["result"] == f"I heard: {DECLINED}"
            assert it.world.tools.made == []

    in_time(live())


@both_eras
def test_run_comes_back_with_what_waits_when_nobody_can_be_asked(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            run = content(await client.call_tool("run", {"task": "x", **ASKS}))
            assert run["status"] == "AwaitingApproval"
            await client.call_tool("approve", {"handle": run["handle"], "allow": True, "scope": "run"})
            (run,) = content(await client.call_tool("await", {"handles": [run["handle"]]}))["runs"]
            assert run["status"] == "Finished"

    in_time(live())


def test_in_a_session_one_waiter_asks_and_all_get_the_result() -> None:
    async def live() -> None:
        gate = asyncio.Event()
        people = [Person(allow, gate) for _ in range(3)]
        async with (
            door(settings=QUICK) as it,
            it.client("legacy", answer=people[0]) as one,
            it.client("legacy", answer=people[1]) as two,
            it.client("legacy", answer=people[2]) as three,
        ):
            handle = await spawn(one, **ASKS)
            waits = [
                asyncio.create_task(client.call_tool("await", {"handles": [handle]})) for client in (one, two, three)
            ]
            await until_asked(it, handle)
            reached = [asyncio.create_task(person.reached.wait()) for person in people]
            await asyncio.wait(reached, return_when=asyncio.FIRST_COMPLETED)
            shown = content(await two.call_tool("await", {"handles": [handle], "timeout": 0.1}))["runs"][0]
            assert shown["status"] == "AwaitingApproval"
            gate.set()
            answers = [content(await wait)["runs"][0] for wait in waits]
            assert {answer["result"] for answer in answers} == {"I heard: moon is there"}
            assert sum(len(person.asked) for person in people) == 1

    in_time(live())


def test_in_a_session_an_answer_from_elsewhere_ends_the_question() -> None:
    async def live() -> None:
        person = Person(allow, asyncio.Event())
        async with door() as it, it.client("legacy", answer=person) as one, it.client("legacy") as other:
            handle = await spawn(one, **ASKS)
            wait = asyncio.create_task(one.call_tool("await", {"handles": [handle]}))
            await person.reached.wait()
            assert content(await other.call_tool("approve", {"handle": handle, "allow": False}))["decided"]
            (run,) = content(await wait)["runs"]
            assert run["result"] == f"I heard: {DECLINED}"

    in_time(live())


def test_in_a_session_the_question_outlasts_the_timeout_but_not_the_longest_wait() -> None:
    async def live() -> None:
        gate = asyncio.Event()
        person = Person(allow, gate)
        settings = RuntimeSettings(progress_every_s=0.05, await_max_s=0.5)
        async with door(settings=settings) as it, it.client("legacy", answer=person) as client:
            handle = await spawn(client, **ASKS)
            (run,) = content(await client.call_tool("await", {"handles": [handle], "timeout": 0.2}))["runs"]
            assert (run["status"], len(person.asked)) == ("AwaitingApproval", 1)
            gate.set()
            (run,) = content(await client.call_tool("await", {"handles": [handle], "timeout": 0.4}))["runs"]
            assert run["result"] == "I heard: moon is there"
            assert len(person.asked) == 2

    in_time(live())


def test_in_a_session_the_time_that_a_person_takes_is_not_the_runs() -> None:
    async def live() -> None:
        answered, finish, late = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def answer(_message: str) -> ElicitResult:
            await late.wait()
            answered.set()
            return ElicitResult(action="accept", content={"allow": True})

        async def say(request: TurnRequest) -> TurnReply:
            if answers_of(request):
                await finish.wait()
            return await look_once(request)

        async with door(say, settings=QUICK) as it, it.client("legacy", answer=answer) as client:
            handle = await spawn(client, **ASKS)
            heard: list[float] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                assert total is not None
                assert progress <= total
                heard.append(progress)
                if progress > 0.5:
                    late.set()
                if progress > 0.7:
                    finish.set()

            arguments = {"handles": [handle], "timeout": 0.5}
            wait = client.call_tool("await", arguments, progress_callback=hear)
            (run,) = content(await wait)["runs"]
            assert run["status"] == "Finished"
            assert answered.is_set()
            assert heard == sorted(heard)

    in_time(live())


def test_in_a_session_a_client_that_left_does_not_keep_the_question() -> None:
    async def live() -> None:
        stuck, person = Person(allow, asyncio.Event()), Person(allow)
        async with door() as it, it.client("legacy", answer=person) as client:
            handle = await spawn(client, **ASKS)

            async def leave() -> None:
                async with it.client("legacy", answer=stuck) as leaver:
                    await leaver.call_tool("await", {"handles": [handle]})

            leaving = asyncio.create_task(leave())
            await stuck.reached.wait()
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            (run,) = content(await client.call_tool("await", {"handles": [handle]}))["runs"]
            assert (run["status"], len(person.asked)) == ("Finished", 1)

    in_time(live())


def test_in_a_session_a_client_that_cannot_ask_after_all_is_told_what_waits() -> None:
    async def broken(_message: str) -> ElicitResult:
        raise MCPError(code=-32601, message="no forms today")

    async def live() -> None:
        async with door() as it, it.client("legacy", answer=broken) as client:
            handle = await spawn(client, **ASKS)
            (run,) = content(await client.call_tool("await", {"handles": [handle]}))["runs"]
            assert run["status"] == "AwaitingApproval"

    in_time(live())


async def ask(
    client: Client,
    tool: str,
    arguments: dict[str, Any],
    answers: Mapping[str, InputResponse] | None = None,
    state: str | None = None,
) -> CallToolResult | InputRequiredResult:
    """Call a tool in the sessionless era without answering what it asks."""
    return await client.session.call_tool(
        tool, arguments, allow_input_required=True, input_responses=dict(answers or {}) or None, request_state=state
    )


def restarted(journal: MemoryJournal) -> MemoryJournal:
    return MemoryJournal(kept=journal.kept, epoch=journal.epoch)


ALLOWED = ElicitResult(action="accept", content={"allow": True})


def test_without_a_session_all_that_waits_is_asked_at_once_and_partly_answered_asked_again() -> None:
    async def live() -> None:
        async with door(look_twice) as it, it.client(answer=allow) as client:
            handles = [await spawn(client, parallelToolCalls=True, **ASKS) for _ in range(2)]
            for handle in handles:
                await until_asked(it, handle)
            asked = await ask(client, "await", {"handles": handles})
            assert isinstance(asked, InputRequiredResult)
            assert asked.request_state is None
            keys = sorted(asked.input_requests or {})
            assert len(keys) == 4
            rest = await ask(client, "await", {"handles": handles}, answers={keys[0]: ALLOWED, "x": ALLOWED})
            assert isinstance(rest, InputRequiredResult)
            assert sorted(rest.input_requests or {}) == keys[1:]
            done = await ask(client, "await", {"handles": handles}, answers=dict.fromkeys(keys, ALLOWED))
            assert isinstance(done, CallToolResult)
            assert {run["status"] for run in content(done)["runs"]} == {"Finished"}
            assert len(it.world.tools.made) == 4

    in_time(live())


def test_without_a_session_a_call_can_only_answer_for_the_runs_that_it_names() -> None:
    async def live() -> None:
        async with door() as it, it.client(answer=allow) as client:
            first, second = [await spawn(client, **ASKS) for _ in range(2)]
            await until_asked(it, second)
            asked = await ask(client, "await", {"handles": [second]})
            assert isinstance(asked, InputRequiredResult)
            await until_asked(it, first)
            await ask(
                client,
                "await",
                {"handles": [first]},
                answers=dict.fromkeys(asked.input_requests or {}, ALLOWED),
            )
            assert (await run_of(client, second))["status"] == "AwaitingApproval"
            assert it.world.tools.made == []

    in_time(live())


def test_without_a_session_the_state_of_run_is_bound_and_outlives_a_restart() -> None:
    async def live() -> None:
        journal, arguments = MemoryJournal(), {"task": "find the moon", **ASKS}
        async with door(journal=journal) as it, it.client(answer=allow) as client:
            asked = await ask(client, "run", arguments)
            assert isinstance(asked, InputRequiredResult)
            state = asked.request_state
            assert state is not None
            for wrong in ({"task": "another", **ASKS}, arguments):
                told = state if wrong is not arguments else state[:-4] + "AAAA"
                with pytest.raises(MCPError, match="requestState"):
                    await ask(client, "run", wrong, state=told)
        answers = dict.fromkeys(asked.input_requests or {}, ALLOWED)
        async with door(journal=restarted(journal)) as it, it.client(answer=allow) as client:
            done = await ask(client, "run", arguments, answers=answers, state=state)
            assert isinstance(done, CallToolResult)
            assert content(done)["result"] == "I heard: moon is there"
            assert len(it.world.service.glance().views()) == 1

    in_time(live())


def test_without_a_session_state_that_is_too_old_is_refused_and_the_key_finds_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door_module, "STATE_TTL_S", 1e-6)

    async def live() -> None:
        async with door() as it, it.client(answer=allow) as client:
            for key, runs in (({"idempotencyKey": "moon"}, 1), ({}, 3)):
                arguments = {"task": "find the moon", **ASKS, **key}
                asked = await ask(client, "run", arguments)
                assert isinstance(asked, InputRequiredResult)
                answers = dict.fromkeys(asked.input_requests or {}, ALLOWED)
                with pytest.raises(MCPError, match="requestState") as refused:
                    await ask(client, "run", arguments, answers=answers, state=asked.request_state)
                assert refused.value.error.code == INVALID_PARAMS
                again = await ask(client, "run", arguments)
                assert isinstance(again, InputRequiredResult)
                assert (again.input_requests == asked.input_requests) is bool(key)
                assert len(it.world.service.glance().views()) == runs
            assert it.world.tools.made == [], "nothing was allowed"

    in_time(live())


@both_eras
def test_what_was_answered_before_a_restart_is_not_asked_again_and_what_was_not_is(mode: Mode) -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with door(look_twice, journal=journal) as it, it.client(mode) as client:
            handle = await spawn(client, parallelToolCalls=True, **ASKS)
            await until_asked(it, handle)
            assert content(await client.call_tool("approve", {"handle": handle, "allow": False}))["decided"]
        person = Person(allow)
        async with door(look_twice, journal=restarted(journal)) as it, it.client(mode, answer=person) as client:
            (run,) = content(await client.call_tool("await", {"handles": [handle]}))["runs"]
            assert run["result"] == f"{DECLINED} / sun is there"
            assert len(person.asked) == 1
            assert len(it.world.tools.made) == 1

    in_time(live())


@both_eras
def test_an_answer_that_comes_after_the_end_changes_nothing(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            handle = await spawn(client, **ASKS)
            await until_asked(it, handle)
            await client.call_tool("cancel", {"handle": handle})
            late = content(await client.call_tool("approve", {"handle": handle, "allow": True}))
            assert (late["decided"], late["status"]) == (False, "Cancelled")
            assert it.world.tools.made == []

    in_time(live())


@both_eras
def test_a_broken_journal_is_told_to_whoever_answers(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            handle = await spawn(client, **ASKS)
            await until_asked(it, handle)
            it.world.journal.broken = True
            assert "the disk is full" in complaint(await client.call_tool("approve", {"handle": handle, "allow": True}))
            assert it.world.tools.made == []

    in_time(live())


def test_run_tells_its_handle_while_it_waits() -> None:
    async def live() -> None:
        heard: list[str | None] = []
        finish = asyncio.Event()

        async def say(_request: TurnRequest) -> TurnReply:
            await finish.wait()
            return text("done")

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message)
            finish.set()

        async with door(say, settings=QUICK) as it, it.client() as client:
            run = content(await client.call_tool("run", {"task": "x"}, progress_callback=hear))
            assert heard[0] == f"{run['handle']}: generating"

    in_time(live())
