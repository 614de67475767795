import asyncio
from dataclasses import replace
from typing import Any, cast

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParamsMeta

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.call_keys import key_of
from luftpause.core.runs.events import Limits, Origin
from luftpause.ports.tools import KEY_FIELD
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.mcp_door.tool_list import TOOLS
from luftpause.services.runtime.orders import RuntimeSettings
from luftpause.services.runtime.spawning import STANDS_ALONE
from services.runtime.mcp_door.doors import Door, Mode, both_eras, complaint, content, door, run_of, spawn
from services.runtime.mcp_door.wire import Wire, messages_in
from services.runtime.runtime_fakes import FakeTools, hold, in_time, look, look_once, order, text

META = {"luftpause/caller": "by-meta"}


@both_eras
def test_a_sub_agent_is_spawned_awaited_and_looked_at(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            first, second = await spawn(client), await spawn(client)
            runs = content(await client.call_tool("await", {"handles": [first, second]}))["runs"]
            expected: dict[str, Any] = {
                "handle": first,
                "status": "Finished",
                "result": "I heard: moon is there",
                "structured": None,
                "error": None,
                "parent": None,
                "children": [],
                "origin": None,
                "toolCalls": 1,
                "failedToolCalls": 0,
                "pendingApproval": None,
                "budget": None,
            }
            assert runs == [expected, {**expected, "handle": second}]
            assert content(await client.call_tool("status", {"handles": [second, first]}))["runs"] == runs[::-1]
            everything = content(await client.call_tool("status", {}))["runs"]
            assert {run["handle"] for run in everything} == {first, second}

    in_time(live())


@both_eras
def test_every_argument_of_spawn_reaches_the_run(mode: Mode) -> None:
    async def live() -> TurnRequest:
        async with door(hold) as it, it.client(mode) as client:
            parent = await spawn(client)
            await spawn(
                client,
                "do",
                model="big",
                serviceClass="batch",
                system="be brief",
                maxToolCalls=1,
                tools=["fake__look"],
                maxTokens=0,
                parallelToolCalls=True,
                parent=parent,
            )
            while len(it.world.turns.asked) < 2:
                it.world.turns.reached.clear()
                await it.world.turns.reached.wait()
            assert content(await client.call_tool("status", {"handles": [parent]}))["runs"][0]["children"]
            return it.world.turns.asked[1]

    asked = in_time(live())
    assert (asked.model, asked.service_class.value, asked.max_tokens, asked.parallel_tool_calls) == (
        "big",
        "batch",
        0,
        True,
    )
    assert [message.text for message in asked.messages] == ["be brief", "do"]
    assert [tool.name for tool in asked.tools] == ["look"]
    assert asked.parent is not None


@both_eras
def test_handles_work_across_sessions_and_from_several_clients(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it:
            async with it.client(mode) as client:
                handle = await spawn(client)
            async with it.client(mode) as one, it.client("auto") as other:
                answers = await asyncio.gather(
                    *(client.call_tool("await", {"handles": [handle]}) for client in (one, other, one))
                )
                assert {content(answer)["runs"][0]["result"] for answer in answers} == {"I heard: moon is there"}

    in_time(live())


@both_eras
def test_awaiting_any_returns_with_the_first_and_says_who_still_runs(mode: Mode) -> None:
    async def say(request: TurnRequest) -> TurnReply:
        return await hold(request) if request.messages[0].text == "slow" else text("fast")

    async def live() -> None:
        async with door(say) as it, it.client(mode) as client:
            handles = [await spawn(client, "slow"), await spawn(client, "fast")]
            runs = content(await client.call_tool("await", {"handles": handles, "mode": "any"}))["runs"]
            assert [run["status"] for run in runs] == ["Running", "Finished"]
            runs = content(await client.call_tool("await", {"handles": handles, "timeout": 0}))["runs"]
            assert [run["status"] for run in runs] == ["Running", "Finished"]

    in_time(live())


@both_eras
def test_a_long_await_reports_progress(mode: Mode) -> None:
    async def live() -> list[str | None]:
        heard: list[str | None] = []
        enough = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            assert total == 60
            assert 0 <= progress < total
            heard.append(message)
            if len(heard) >= 3:
                enough.set()

        async def say(_request: TurnRequest) -> TurnReply:
            await enough.wait()
            return text("done")

        async with door(say, settings=RuntimeSettings(progress_every_s=0.05)) as it, it.client(mode) as client:
            handle = await spawn(client)
            await client.call_tool("await", {"handles": [handle]}, progress_callback=hear)
        return heard

    assert in_time(live())[:2] == ["0 of 1 runs are over"] * 2


@pytest.mark.parametrize("tool", ["await", "run"])
def test_a_client_that_wants_no_progress_sees_at_once_that_it_is_waited(tool: str) -> None:
    async def live() -> None:
        may_end = asyncio.Event()

        async def say(_request: TurnRequest) -> TurnReply:
            await may_end.wait()
            return text("done")

        async with door(say) as it, it.client("auto") as client, httpx2.AsyncClient(timeout=30) as http:
            given = {"handles": [await spawn(client)]} if tool == "await" else {"task": "x"}
            asked, headers = Wire(http, {}).request("tools/call", {"name": tool, "arguments": given}, tool)
            async with http.stream("POST", f"{it.url}/mcp", json=asked, headers=headers) as answer:
                assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
                assert not may_end.is_set()
                may_end.set()
                (told,) = messages_in((await answer.aread()).decode())
                assert "done" in told["result"]["content"][0]["text"]

    in_time(live())


@both_eras
@pytest.mark.parametrize("tool", ["spawn", "run"])
def test_what_a_sub_agent_begins_through_this_door_ends_with_it(mode: Mode, tool: str) -> None:
    async def live() -> None:
        async with door(hold) as it, it.client(mode) as client, it.client(mode) as of_sub_agent:
            top = await spawn(client)
            meta = cast("RequestParamsMeta", {KEY_FIELD: key_of(RunId(top), 1, ToolCallId("c1"))})
            begun = asyncio.create_task(of_sub_agent.call_tool(tool, {"task": "more"}, meta=meta))
            while len(it.world.turns.asked) < 2:
                it.world.turns.reached.clear()
                await it.world.turns.reached.wait()
            (child,) = content(await client.call_tool("status", {"handles": [top]}))["runs"][0]["children"]
            await client.call_tool("cancel", {"handle": top})
            (ended,) = content(await client.call_tool("await", {"handles": [child]}))["runs"]
            assert (ended["status"], ended["parent"]) == ("Cancelled", top)
            told = (await begun).structured_content
            assert told is not None
            assert told["handle"] == child

    in_time(live())


@both_eras
def test_what_no_sub_agent_of_the_same_token_begins_stands_alone_and_says_so(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            foreign = await it.world.service.spawn(order(principal=PrincipalId("zoe")))
            for run in (foreign, RunId("run_elsewhere")):
                meta = cast("RequestParamsMeta", {KEY_FIELD: key_of(run, 1, ToolCallId("c1"))})
                spawned = content(await client.call_tool("spawn", {"task": "more"}, meta=meta))
                ran = content(await client.call_tool("run", {"task": "more"}, meta=meta))
                assert spawned["note"] == ran["note"] == STANDS_ALONE
                assert ran["parent"] is None
            assert "note" not in content(await client.call_tool("run", {"task": "more"}))

    in_time(live())


@both_eras
def test_a_client_that_leaves_while_it_waits_ends_nothing_but_its_wait(mode: Mode) -> None:
    async def live() -> None:
        finish = asyncio.Event()

        async def say(_request: TurnRequest) -> TurnReply:
            await finish.wait()
            return text("done anyway")

        async with door(say) as it:
            waiting = asyncio.ensure_future(self_waiting(it, mode))
            await it.world.turns.reached.wait()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            finish.set()
            async with it.client(mode) as client:
                (run,) = content(await client.call_tool("status", {}))["runs"]
                answer = content(await client.call_tool("await", {"handles": [run["handle"]]}))
                assert answer["runs"][0]["result"] == "done anyway"

    async def self_waiting(it: Door, mode: Mode) -> None:
        async with it.client(mode) as client:
            await client.call_tool("await", {"handles": [await spawn(client)]})

    in_time(live())


@both_eras
def test_cancel_ends_a_run_and_its_children(mode: Mode) -> None:
    async def live() -> None:
        async with door(hold) as it, it.client(mode) as client:
            parent = await spawn(client)
            child = await spawn(client, parent=parent)
            answer = content(await client.call_tool("cancel", {"handle": parent}))
            assert (answer["status"], answer["error"], answer["children"]) == (
                "Cancelled",
                "cancelled: on request",
                [child],
            )
            runs = content(await client.call_tool("await", {"handles": [child]}))["runs"]
            assert (runs[0]["status"], runs[0]["parent"]) == ("Cancelled", parent)

    in_time(live())


@both_eras
def test_the_tools_of_sub_agents_are_listed_with_their_hints(mode: Mode) -> None:
    async def live() -> list[dict[str, Any]]:
        async with door() as it, it.client(mode) as client:
            tools: list[dict[str, Any]] = content(await client.call_tool("tools", {}))["tools"]
            return tools

    (tool,) = in_time(live())
    assert (tool["name"], tool["server"], tool["readOnly"], tool["destructive"]) == ("look", "fake", True, False)
    assert tool["inputSchema"]["required"] == ["at"]


WRONG: list[tuple[str, dict[str, object], str]] = [
    ("spawn", {}, "'task' is a required property"),
    ("spawn", {"task": 5}, "task: 5 is not of type 'string'"),
    ("spawn", {"task": ""}, "task"),
    ("spawn", {"task": "x", "budget": 5}, "there is no parameter 'budget'; did you mean 'budgetTokens'?"),
    (
        "spawn",
        {"task": "x", "max_tool_calls": 5},
        "no parameter 'max_tool_calls'; did you mean 'maxToolCalls'",
    ),
    (
        "run",
        {"task": "x", "idempotency-key": 5},
        "there is no parameter 'idempotency-key'; did you mean 'idempotencyKey'",
    ),
    ("run", {}, "'task' is a required property"),
    ("spawn", {"task": "x", "budgetTokens": 0}, "budgetTokens: 0 is less than the minimum of 1"),
    ("spawn", {"task": "x", "after": ["run_x"]}, "there is no run 'run_x'"),
    ("approve", {"handle": "run_x", "allow": True}, "there is no run 'run_x'"),
    ("approve", {"handle": "run_x", "allow": "yes"}, "allow: 'yes' is not of type 'boolean'"),
    ("send", {"handle": "run_x", "message": "x"}, "there is no run 'run_x'"),
    ("transcript", {"handle": "run_x"}, "there is no run 'run_x'"),
    ("decide", {"input": "x", "labels": ["one"]}, "labels: ['one'] is too short (minItems: 2)"),
    ("decide", {"input": "x", "labels": [str(n) for n in range(21)]}, "21 items are too many (maxItems: 20)"),
    ("decide", {"labels": ["a", "b"]}, "'input' is a required property"),
    ("spawn", {"task": "x", "serviceClass": "urgent"}, "'urgent' is not one of ['interactive', 'batch']"),
    ("spawn", {"task": "x", "maxToolCalls": -1}, "maxToolCalls: -1 is less than the minimum of 0"),
    ("spawn", {"task": "x", "maxToolCalls": "8"}, "maxToolCalls: '8' is not of type 'integer'"),
    ("spawn", {"task": "x", "tools": ["gaze"]}, "there is no tool 'gaze'; tools: look"),
    ("spawn", {"task": "x", "parent": "run_x"}, "there is no run 'run_x'"),
    ("await", {"handles": []}, "handles"),
    ("await", {"handles": "run_x"}, "handles: 'run_x' is not of type 'array'"),
    ("await", {"handles": ["run_x"]}, "there is no run 'run_x'"),
    ("await", {"handles": ["run_x"], "mode": "some"}, "'some' is not one of ['all', 'any']"),
    ("await", {"handles": ["run_x"], "timeout": 601}, "timeout: 601 is greater than the maximum of 600"),
    ("status", {"handles": ["run_x"]}, "there is no run 'run_x'"),
    ("cancel", {"handle": "run_x"}, "there is no run 'run_x'"),
    ("cancel", {}, "'handle' is a required property"),
    ("tools", {"all": True}, "there is no parameter 'all'; there are none"),
]


@both_eras
def test_what_a_client_gets_wrong_is_told_in_words_and_spawns_nothing(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            for tool, arguments, told in WRONG:
                said = complaint(await client.call_tool(tool, arguments))
                assert said.startswith(f"{tool}: ")
                assert told in said
            assert it.world.journal.kept == {}
            with pytest.raises(MCPError, match="there is no tool 'summon'"):
                await client.call_tool("summon", {})

    in_time(live())


@both_eras
def test_a_broken_journal_is_told_as_a_tool_error(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            it.world.journal.broken = True
            assert "nothing was spawned: the disk is full" in complaint(await client.call_tool("spawn", {"task": "x"}))
            async with httpx2.AsyncClient() as http:
                health = await http.get(f"{it.url}/health")
            assert (health.status_code, health.json()["error"]) == (503, "the disk is full")

    in_time(live())


@both_eras
def test_the_tool_list_is_complete_and_always_the_same(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client, it.client(mode) as other:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == [
                "spawn",
                "await",
                "run",
                "status",
                "cancel",
                "approve",
                "tools",
                "decide",
                "send",
                "transcript",
            ]
            assert tools == (await other.list_tools()).tools
            for tool in tools:
                assert tool.description
                assert tool.output_schema
                assert tool.input_schema["additionalProperties"] is False

    in_time(live())


@both_eras
def test_the_caller_comes_from_header_or_meta_or_session(mode: Mode) -> None:
    async def live() -> list[str]:
        async with door(hold) as it:
            async with it.client(mode, headers={"x-luftpause-caller": "by-header"}) as client:
                await spawn(client)
            async with it.client(mode) as client:
                await client.call_tool("spawn", {"task": "x"}, meta=cast("RequestParamsMeta", META))
                await spawn(client)
            return [run.spawn.caller for run in it.world.service.glance().views()]

    callers = set(in_time(live()))
    assert {"by-header", "by-meta"} < callers
    (third,) = callers - {"by-header", "by-meta"}
    assert third == "anonymous" if mode == "auto" else len(third) == 32


@both_eras
def test_a_run_tells_which_run_of_the_other_door_it_comes_from(mode: Mode) -> None:
    meta = cast("RequestParamsMeta", {"callId": "call_1", "threadId": "t-1"})

    async def say(request: TurnRequest) -> TurnReply:
        return replace(await look_once(request), parent=RunId("boss"))

    async def live() -> None:
        async with door(say) as it, it.client(mode) as client, httpx2.AsyncClient() as http:
            begun = content(await client.call_tool("spawn", {"task": "find the moon"}, meta=meta))
            (run,) = content(await client.call_tool("await", {"handles": [begun["handle"]]}))["runs"]
            assert run["origin"] == {"door": "llm", "run": "boss", "toolCall": "call_1", "thread": "t-1"}
            (other,) = content(await client.call_tool("await", {"handles": [await spawn(client)]}))["runs"]
            assert other["origin"] is None, "it named nothing, whatever the door says"
            seen = (await http.get(f"{it.url}/status")).json()
            assert seen["origins"] == [{"door": "llm", "run": "boss", "children": [begun["handle"]]}]
            shown = {run["handle"]: run["origin"] for run in seen["runs"]}
            assert shown[begun["handle"]] == {"door": "llm", "run": "boss", "tool_call": "call_1", "thread": "t-1"}

    in_time(live())


def test_the_run_tree_is_served_as_json() -> None:
    async def live() -> None:
        async with door() as it, it.client() as client, httpx2.AsyncClient() as http:
            parent = await spawn(client)
            child = await spawn(client, parent=parent, serviceClass="batch")
            await client.call_tool("await", {"handles": [parent, child]})
            runs = {run["handle"]: run for run in (await http.get(f"{it.url}/status")).json()["runs"]}
            assert runs[parent]["children"] == [child]
            assert (runs[child]["parent"], runs[child]["class"], runs[child]["status"]) == (parent, "batch", "Finished")
            assert (runs[parent]["own"]["turns"], runs[parent]["subtree"]["turns"]) == (2, 4)
            assert sorted(runs[parent]["own"]) == [
                "completion_tokens",
                "failed_tool_calls",
                "prompt_tokens",
                "tool_calls",
                "tool_seconds",
                "turn_seconds",
                "turns",
            ]
            assert (await http.get(f"{it.url}/health")).json() == {"status": "ok"}
            assert "luftpause_runtime_runs_spawned_total 2.0" in (await http.get(f"{it.url}/metrics")).text

    in_time(live())


@both_eras
def test_a_broken_journal_is_told_to_whoever_cancels_or_waits(mode: Mode) -> None:
    async def live() -> None:
        async with door(hold) as it, it.client(mode) as client:
            handle = await spawn(client)
            it.world.journal.broken = True
            assert "the disk is full" in complaint(await client.call_tool("cancel", {"handle": handle}))
            assert "the disk is full" in complaint(await client.call_tool("await", {"handles": [handle]}))

    in_time(live())


@both_eras
def test_whole_numbers_may_be_written_with_a_point(mode: Mode) -> None:
    async def live() -> None:
        async with door(hold) as it, it.client(mode) as client:
            handle = await spawn(client, maxToolCalls=2.0, maxTokens=7.0)
            (run,) = it.world.service.glance().views()
            assert (run.spawn.run, run.spawn.max_tool_calls, run.spawn.max_tokens) == (handle, 2, 7)

    in_time(live())


@both_eras
def test_what_is_optional_may_be_null_for_left_out_and_what_is_required_may_not(mode: Mode) -> None:
    required: dict[str, object] = {"task": "x", "input": "x", "message": "y", "allow": True}

    async def say(_request: TurnRequest) -> TurnReply:
        return text("done")

    async def live() -> None:
        async with door(say) as it, it.client(mode) as client:
            handle = await spawn(client)
            required.update({"handle": handle, "handles": [handle]})
            for tool in TOOLS:
                names, needed = tool.input_schema["properties"], tool.input_schema.get("required", [])
                nulls = dict.fromkeys(names) | {name: required[name] for name in needed}
                answered = await client.call_tool(tool.name, nulls)
                assert "is not of type" not in str(answered.content), tool.name
                for name in needed:
                    refused = await client.call_tool(tool.name, {**nulls, name: None})
                    assert f"'{name}' is a required property" in complaint(refused)

    in_time(live())


@both_eras
def test_arguments_too_many_to_be_judged_are_refused_too(mode: Mode) -> None:
    async def live() -> str:
        async with door() as it, it.client(mode) as client:
            return complaint(await client.call_tool("spawn", {"task": 5} | {f"x{n}": n for n in range(20_000)}))

    assert "there is no parameter 'x0'" in in_time(live())


@both_eras
def test_a_refusal_repeats_little_of_what_it_refuses(mode: Mode) -> None:
    long = "x" * 100_000

    async def live() -> None:
        many = FakeTools({f"tool{number}": look for number in range(1000)})
        async with door(tools=many) as it, it.client(mode) as client:
            for tool, arguments in (
                ("spawn", {"task": [long]}),
                ("spawn", {"task": "x", long: 1}),
                ("spawn", {"task": "x", "tools": [long]}),
                ("spawn", {"task": "x", "parent": long}),
                ("spawn", {"task": "x", "serviceClass": long}),
                ("cancel", {"handle": long}),
            ):
                assert len(complaint(await client.call_tool(tool, arguments))) < 500
            with pytest.raises(MCPError) as unknown:
                await client.call_tool(long, {})
            assert len(unknown.value.message) < 200

    in_time(live())


@both_eras
def test_a_client_at_the_wrong_path_is_told_the_right_one(mode: Mode) -> None:
    async def live(path: str) -> None:
        async with door() as it, Client(f"{it.url}{path}", mode=mode):
            raise AssertionError("there is nothing to connect to")

    for path in ("/", "/sse"):
        told = pytest.RaisesExc(MCPError, match=f"no route '{path}' here: the MCP door speaks MCP at /mcp")
        with pytest.RaisesGroup(told, flatten_subgroups=True):
            in_time(live(path))


@pytest.mark.parametrize("place", ["", "5", "nowhere"])
def test_a_client_that_takes_its_stream_up_again_gets_one_and_what_it_waits_for_when_it_asks_again(place: str) -> None:
    async def live() -> None:
        async with door() as it, httpx2.AsyncClient(timeout=30) as http:
            url, kinds = f"{it.url}/mcp", {"accept": "application/json, text/event-stream"}
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            begun = await http.post(url, json=asked, headers=kinds)
            again = {**kinds, "mcp-session-id": begun.headers["mcp-session-id"], "last-event-id": place}
            await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=again)
            async with http.stream("GET", url, headers=again) as stream:
                assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream")
                call = {"name": "run", "arguments": {"task": "x"}}
                asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
                (told,) = messages_in((await http.post(url, json=asked, headers=again)).text)
                assert told["result"]["structuredContent"]["status"] == "Finished"

    in_time(live())


def test_other_routes_and_methods_are_named() -> None:
    async def live() -> list[httpx2.Response]:
        async with door() as it, httpx2.AsyncClient() as http:
            return [
                await http.get(f"{it.url}/"),
                await http.post(f"{it.url}/v1/chat/completions", json={}),
                await http.get(f"{it.url}/{'x' * 3000}"),
                await http.post(f"{it.url}/status", json={}),
            ]

    *missing, barred = in_time(live())
    for response in missing:
        text = response.json()["error"]["message"]
        assert response.status_code == 404
        assert response.request.url.path[:100] in text
        assert len(text) < 300
        assert text.endswith("/mcp")
    assert (barred.status_code, sorted(barred.headers["allow"].split(", "))) == (405, ["GET", "HEAD"])
    assert barred.json()["error"]["message"] == "POST is not allowed on '/status'"


def test_defaults_and_limits_that_are_set_stand_in_the_schemas_and_act() -> None:
    settings = RuntimeSettings(max_tool_calls=3, max_tokens=77, await_default_s=0.05, await_max_s=9.0, caller_bytes=4)

    async def live() -> TurnRequest:
        async with (
            door(hold, settings=settings) as it,
            it.client("auto", headers={"x-luftpause-caller": "abcdefgh"}) as client,
        ):
            tools = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
            assert tools["spawn"]["maxToolCalls"]["default"] == 3
            assert tools["spawn"]["maxTokens"]["default"] == 77
            assert (tools["await"]["timeout"]["default"], tools["await"]["timeout"]["maximum"]) == (0.05, 9.0)
            handle = await spawn(client)
            waiting = await client.call_tool("await", {"handles": [handle]})
            assert content(waiting)["runs"][0]["status"] == "Running"
            too_long = await client.call_tool("await", {"handles": [handle], "timeout": 9.5})
            assert "timeout" in complaint(too_long)
            (view,) = it.world.service.glance().views()
            assert (view.spawn.max_tool_calls, view.spawn.max_tokens, view.spawn.caller) == (3, 77, "abcd")
            return it.world.turns.asked[0]

    assert in_time(live()).max_tokens == 77


@both_eras
@pytest.mark.parametrize("tool", ["spawn", "run"])
def test_the_other_arguments_reach_the_run_too_and_where_it_came_from(mode: Mode, tool: str) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
    meta = {"claudecode/toolUseId": "toolu_1", "traceparent": trace}

    async def live() -> None:
        async with door() as it, it.client(mode, headers={"traceparent": "00-of-the-request"}) as client:
            before = await spawn(client)
            arguments = {
                "task": "do",
                "models": ["small", "tiny"],
                "budgetTokens": 1000.0,
                "budgetToolCalls": 10,
                "budgetSeconds": 100,
                "after": [before],
                "idempotencyKey": "k",
            }
            answer = content(await client.call_tool(tool, arguments, meta=cast("RequestParamsMeta", meta)))
            (view,) = it.world.service.look(ANONYMOUS_PRINCIPAL, [answer["handle"]])
            spawned = view.spawn
            assert (spawned.model, spawned.fallback_models) == ("small", ("tiny",))
            assert spawned.budget == Limits(tokens=1000, tool_calls=10, seconds=100)
            assert (spawned.after, spawned.idempotency_key) == ((before,), "k")
            assert spawned.origin == Origin(tool_call=ToolCallId("toolu_1"))
            # The SDK tells its own trace where there is one.
            assert spawned.traceparent in (trace, "00-of-the-request")
            run = await run_of(client, view.run)
            assert run["budget"]["limits"] == {"tokens": 1000, "toolCalls": 10, "seconds": 100}
            assert run["budget"]["exceeded"] is None
            again = content(await client.call_tool(tool, arguments))
            assert again["handle"] == view.run
            other = complaint(await client.call_tool(tool, {**arguments, "task": "other"}))
            assert "k" in other

    in_time(live())


@both_eras
def test_an_answer_with_a_shape_comes_back_as_a_value(mode: Mode) -> None:
    async def say(_request: TurnRequest) -> TurnReply:
        return text('{"moon": true}')

    async def live() -> None:
        schema = {"type": "object", "properties": {"moon": {"type": "boolean"}}, "required": ["moon"]}
        async with door(say) as it, it.client(mode) as client:
            run = content(await client.call_tool("run", {"task": "x", "outputSchema": schema}))
            assert (run["structured"], run["result"]) == ({"moon": True}, '{"moon": true}')

    in_time(live())


@both_eras
def test_a_finished_run_is_sent_another_message_and_its_conversation_can_be_read(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            handle = await spawn(client)
            await client.call_tool("await", {"handles": [handle]})
            sent = content(await client.call_tool("send", {"handle": handle, "message": "and the sun?"}))
            assert sent["handle"] == handle
            (run,) = content(await client.call_tool("await", {"handles": [handle]}))["runs"]
            assert run["status"] == "Finished"
            whole = content(await client.call_tool("transcript", {"handle": handle}))
            assert [each["role"] for each in whole["messages"]] == (
                ["user", "assistant", "tool", "assistant", "user", "assistant"]
            )
            assert whole["messages"][4]["text"] == "and the sun?"
            assert whole["total"] == 6
            last = content(await client.call_tool("transcript", {"handle": handle, "limit": 1}))
            assert last["messages"] == whole["messages"][5:]
            middle = content(await client.call_tool("transcript", {"handle": handle, "start": 1, "limit": 2.0}))
            assert middle["messages"] == whole["messages"][1:3]
            await client.call_tool("cancel", {"handle": await spawn(client)})

    in_time(live())


@both_eras
def test_decide_asks_the_llm_door_in_the_name_of_the_caller(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode, headers={"x-luftpause-caller": "me"}) as client:
            answer = content(await client.call_tool("decide", {"input": "x", "labels": ["a", "b"], "model": "m"}))
            assert answer == {"label": "a", "probabilities": {"a": 0.75}, "unscored": ["b"], "model": "m"}
            assert content(await client.call_tool("decide", {"input": "x"}))["label"] == "spam"
            first, second = it.decisions.asked
            assert (first.input, first.labels, first.model, first.caller) == ("x", ("a", "b"), "m", "me")
            assert (second.labels, second.model, second.service_class) == (None, None, ServiceClass.INTERACTIVE)

    in_time(live())


@both_eras
def test_status_without_handles_is_bounded_and_says_how_many_it_left_out(mode: Mode) -> None:
    async def live() -> None:
        async with door() as it, it.client(mode) as client:
            handles = [await spawn(client) for _ in range(3)]
            await client.call_tool("await", {"handles": handles})
            answer = content(await client.call_tool("status", {"limit": 2}))
            assert ([run["handle"] for run in answer["runs"]], answer["omitted"]) == (handles[:0:-1], 1)
            async with httpx2.AsyncClient(base_url=it.url) as http:
                tree = (await http.get("/status", params={"limit": 2})).json()
                assert ([run["handle"] for run in tree["runs"]], tree["omitted"]) == (handles[:0:-1], 1)
                for wrong in ("0", "1001", "x", "", "-1", "9" * 30, "²"):
                    refused = await http.get("/status", params={"limit": wrong})
                    assert (refused.status_code, "from 1 to 1000" in refused.text) == (400, True)

    in_time(live())
