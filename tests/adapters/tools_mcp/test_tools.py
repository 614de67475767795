import asyncio
import itertools
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from mcp_types import Tool, ToolAnnotations

from adapters.tools_mcp.tool_world import call, connected, http_server, in_time, logged, stdio_spec, tool, until_logged
from luftpause.adapters.tools_mcp.connection import LISTED_TOOLS_MAX
from luftpause.adapters.tools_mcp.tools import McpTools, name_tools
from luftpause.adapters.tools_mcp.transports import INHERITED, ToolServerSpec, child_environment
from luftpause.core.runs.tools import ToolHints
from luftpause.ports.tools import ToolOutcome
from services.launcher.launcher_world import poll
from stories.set_ups import free_port

BROKE_OFF = "Error: tool server 'small' broke off during this call; whether it took effect is unknown"


def listed(name: str, hints: ToolAnnotations | None = None) -> Tool:
    return Tool(name=name, input_schema={"type": "object"}, annotations=hints)


def deep(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


def test_a_tool_goes_by_its_bare_name_unless_two_servers_have_it() -> None:
    named = name_tools([("a", [listed("look"), listed("ask")]), ("b", [listed("look")])])
    assert [(each.name, each.qualified) for each in named] == [
        ("a__look", "a__look"),
        ("ask", "a__ask"),
        ("b__look", "b__look"),
    ]


def test_names_that_models_cannot_take_are_fitted() -> None:
    (named,) = name_tools([("a", [listed("look.up/" + "x" * 80)])])
    assert named.name == "look_up_" + "x" * 56
    assert named.tool == "look.up/" + "x" * 80


def test_names_stay_apart_when_fitting_makes_them_alike_and_do_not_depend_on_the_order() -> None:
    names = ["a.b", "a b", "ä", "ö", "", "x" * 70 + "1", "x" * 70 + "2"]
    named = {each.tool: each.name for each in name_tools([("s", [listed(name) for name in names])])}
    assert named == {
        "a b": "s__a_b",
        "a.b": "s__a_b_2",
        "": "s__",
        "ä": "s___",
        "ö": "s____2",
        "x" * 70 + "1": "s__" + "x" * 61,
        "x" * 70 + "2": "s__" + "x" * 59 + "_2",
    }
    assert {each.tool: each.name for each in name_tools([("s", [listed(name) for name in names[::-1]])])} == named


def test_a_bare_name_that_is_some_other_tools_long_one_stays_with_its_tool() -> None:
    named = name_tools([("odd", [listed("odd__A"), listed("A")]), ("even", [listed("A")])])
    assert [(each.name, each.server, each.tool) for each in named] == [
        ("even__A", "even", "A"),
        ("odd__A", "odd", "odd__A"),
        ("odd__A_2", "odd", "A"),
    ]


def test_a_thousand_tools_of_one_name_all_get_their_own() -> None:
    named = name_tools((f"s{number}", [listed("x" * 64)]) for number in range(1000))
    assert len({each.name for each in named}) == 1000
    assert all(len(each.name) <= 64 for each in named)


def test_hints_default_to_what_silence_means() -> None:
    (silent,) = name_tools([("a", [listed("t")])])
    (said,) = name_tools([("a", [listed("t", ToolAnnotations(destructive_hint=False, idempotent_hint=True))])])
    assert (silent.hints, silent.repeatable) == (ToolHints(), False)
    assert (said.hints, said.repeatable) == (ToolHints(destructive=False, idempotent=True), True)


def test_a_child_sees_a_small_environment_only() -> None:
    ours = {"PATH": "/bin", "LC_ALL": "C", "LUFTPAUSE_TOKEN": "secret", "AWS_KEY": "secret"}
    assert child_environment({"MINE": "1"}, ours) == {"PATH": "/bin", "LC_ALL": "C", "MINE": "1"}


def test_a_stdio_server_is_started_listed_called_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUFTPAUSE_TOKEN", "secret")

    async def use() -> tuple[list[str], list[ToolOutcome]]:
        async with connected(stdio_spec(tmp_path)) as tools:
            names = [each.name for each in await tools.catalogue(["look"])]
            return names, [
                await call(tools, "look", at="the moon"),
                await call(tools, "small__look", at="the sun"),
                await call(tools, "fail"),
                await call(tools, "environment"),
            ]

    names, (moon, sun, failed, environment) = in_time(use())
    assert {"die", "die_once", "environment", "fail", "hang", "look", "refuse", "write"} <= set(names)
    assert (moon, sun.text) == (ToolOutcome(text="the moon is there"), "the sun is there")
    assert failed.failed
    assert "it does not work" in failed.text
    assert "SMALL_TOOLS_LOG" in environment.text
    allowed = {*INHERITED, "SMALL_TOOLS_LOG", "LC_CTYPE"}
    assert {name for name in environment.text.split() if not name.startswith("LC_")} <= allowed


def test_an_http_server_is_called_and_calls_overlap(tmp_path: Path) -> None:
    async def use(port: int) -> list[ToolOutcome]:
        async with connected(ToolServerSpec(name="small", url=f"http://127.0.0.1:{port}/mcp")) as tools:
            return await asyncio.gather(*(call(tools, "look", at=str(number)) for number in range(8)))

    with http_server(tmp_path) as (_, port):
        assert [outcome.text for outcome in in_time(use(port))] == [f"{number} is there" for number in range(8)]


def test_an_unsafe_call_that_breaks_off_is_unknown_and_not_repeated_while_the_server_comes_back(tmp_path: Path) -> None:
    async def use() -> tuple[ToolOutcome, ToolOutcome]:
        async with connected(stdio_spec(tmp_path)) as tools:
            return await call(tools, "die"), await call(tools, "look", at="it")

    died, looked = in_time(use())
    assert died == ToolOutcome(text=BROKE_OFF, failed=True, unknown=True)
    assert looked == ToolOutcome(text="it is there")
    assert logged(tmp_path) == ["die"]


def test_a_read_only_call_that_breaks_off_is_made_once_more(tmp_path: Path) -> None:
    async def use() -> ToolOutcome:
        async with connected(stdio_spec(tmp_path)) as tools:
            return await call(tools, "die_once")

    assert in_time(use()) == ToolOutcome(text="alive again")


def test_an_http_server_killed_in_mid_call_fails_that_call_and_serves_again_once_it_is_back(tmp_path: Path) -> None:
    async def use() -> None:
        with http_server(tmp_path, free_port()) as (first, port):
            url = f"http://127.0.0.1:{port}/mcp"
            spec = ToolServerSpec(name="small", url=url, backoff_s=0.05, backoff_max_s=0.2, grace_s=0.3)
            async with connected(spec) as tools:
                hanging = asyncio.ensure_future(call(tools, "hang"))
                await until_logged(tmp_path, "hang")
                first.kill()
                first.wait(10)
                assert await hanging == ToolOutcome(text=BROKE_OFF, failed=True, unknown=True)
                away = await call(tools, "look", at="it")
                assert away.text.startswith("Error: tool server 'small' is unavailable: ")
                with http_server(tmp_path, port):
                    while (await call(tools, "look", at="it")).failed:  # each try ends by itself
                        pass

    in_time(use())


def test_a_server_that_is_not_there_fails_its_own_calls_only_and_fast(tmp_path: Path) -> None:
    lost = ToolServerSpec(name="lost", command=("/no/such/program",), backoff_s=60.0, grace_s=0.1)

    async def use() -> tuple[ToolOutcome, ToolOutcome]:
        async with connected(stdio_spec(tmp_path), lost) as tools:
            here = await tool(tools, "look")
            (gone,) = name_tools([("lost", [listed("ask")])])
            return await tools.call(here, {"at": "it"}, "k"), await tools.call(gone, {}, "k")

    here, gone = in_time(use())
    assert here.text == "it is there"
    assert gone.failed
    assert gone.text.startswith("Error: tool server 'lost' is unavailable: ")
    assert "/no/such/program" in gone.text


def test_a_call_that_takes_too_long_fails_and_the_server_is_told(tmp_path: Path) -> None:
    async def use() -> tuple[ToolOutcome, ToolOutcome]:
        async with connected(stdio_spec(tmp_path, timeout_s=2.0)) as tools:
            late = await call(tools, "hang")
            await until_logged(tmp_path, "hang cancelled")
            return late, await call(tools, "look", at="it")

    late, looked = in_time(use())
    assert late == ToolOutcome(text="Error: no answer within 2 s", failed=True, unknown=True)
    assert looked.text == "it is there"


def test_a_cancelled_call_is_dropped_and_the_server_is_told(tmp_path: Path) -> None:
    async def use() -> None:
        async with connected(stdio_spec(tmp_path)) as tools:
            hanging = asyncio.ensure_future(call(tools, "hang"))
            await until_logged(tmp_path, "hang")
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
            await until_logged(tmp_path, "hang cancelled")

    in_time(use())


BREAKERS: dict[str, tuple[str, dict[str, object], str]] = {
    "it talks of a closed connection": (
        "refuse",
        {"code": -32000, "message": "Connection closed"},
        "Connection closed",
    ),
    "it talks of a lost stream": ("refuse", {"code": -32000, "message": "SSE stream ended"}, "SSE stream ended"),
    "it talks of a lost session": ("refuse", {"code": -32600, "message": "Session not found"}, "Session not found"),
    "it is nested too deeply to be written": ("look", {"at": deep(400)}, "cannot be sent"),
    "it is no text": ("look", {"at": "\ud800"}, "cannot be sent"),
}


@pytest.mark.parametrize("breaker", BREAKERS)
def test_a_call_fails_alone_when(tmp_path: Path, breaker: str) -> None:
    name, arguments, told = BREAKERS[breaker]

    async def use() -> ToolOutcome:
        async with connected(stdio_spec(tmp_path)) as tools:
            hanging = asyncio.ensure_future(call(tools, "hang"))
            await until_logged(tmp_path, "hang")
            outcome = await call(tools, name, **arguments)
            assert (await call(tools, "look", at="it")).text == "it is there"
            assert not hanging.done()
            hanging.cancel()
            await asyncio.gather(hanging, return_exceptions=True)
            return outcome

    outcome = in_time(use())
    assert (outcome.failed, outcome.unknown) == (True, False)
    assert told in outcome.text


def test_a_call_waits_for_a_server_that_went_away_a_moment_ago(tmp_path: Path) -> None:
    port = free_port()
    spec = ToolServerSpec(name="small", url=f"http://127.0.0.1:{port}/mcp", backoff_s=0.05, backoff_max_s=0.1)
    (write,) = name_tools([("small", [listed("write")])])

    async def use() -> ToolOutcome:
        async with connected(spec) as tools:
            assert await tools.catalogue() == ()
            waiting = asyncio.ensure_future(tools.call(write, {"text": "late"}, "k"))
            with http_server(tmp_path, port):
                return await waiting

    assert in_time(use()) == ToolOutcome(text="written")
    assert logged(tmp_path) == ["write late"]


def test_a_tool_of_a_server_that_is_configured_no_more_is_not_available(tmp_path: Path) -> None:
    (gone,) = name_tools([("gone", [listed("look")])])

    async def use() -> ToolOutcome:
        async with connected() as tools:
            return await tools.call(gone, {}, "k")

    assert in_time(use()) == ToolOutcome(text="Error: tool server 'gone' is not configured any more", failed=True)


def test_whoever_names_no_tools_gets_those_of_servers_that_take_their_time_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luftpause.adapters.tools_mcp.tools.STARTING_S", 30.0)
    quick = stdio_spec(tmp_path)
    slow = replace(quick, command=("/bin/sh", "-c", 'sleep 2.5; exec "$@"', "sh", *quick.command))

    async def use() -> list[str]:
        async with connected(slow) as tools:
            return [each.name for each in await tools.catalogue()]

    assert "look" in in_time(use())


def test_a_server_that_never_answers_is_waited_for_by_those_alone_who_want_what_nobody_else_has(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luftpause.adapters.tools_mcp.tools.STARTING_S", 1.0)
    hung = ToolServerSpec(
        name="hung", command=("${python}", "-c", "import sys; sys.stdin.read()"), connect_timeout_s=5.0
    )

    async def use() -> list[list[str]]:
        clock = asyncio.get_running_loop().time
        async with connected(stdio_spec(tmp_path), hung) as tools:
            began = clock()
            found = [await tools.catalogue(["look", "small__write"]), await tools.catalogue()]
            assert clock() - began < 4.9, "the server that hangs was waited for"
            found.append(await tools.catalogue(["look", "nowhere"]))
            assert clock() - began >= 4.9
            return [[each.name for each in catalogue] for catalogue in found]

    with caplog.at_level(logging.WARNING):
        named, everything, missing = in_time(use())
    assert named == everything == missing
    waited = [entry for entry in caplog.records if entry.message == "tool_servers_not_waited_for"]
    assert [getattr(entry, "servers", None) for entry in waited] == [["hung"]]


ENDLESS_SERVER = """
import json, sys, time
print(time.monotonic(), file=open(sys.argv[1], "a"))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "t", "version": "1"}}
    elif message["method"] == "tools/call" and message["params"]["name"] == "t0":
        answer["result"] = None
    elif message["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "\\ud800"}]}
    elif message["method"] == "tools/list":
        tool = {"inputSchema": {"type": "object"}}
        answer["result"] = {"tools": [{**tool, "name": f"t{n // 2}"} for n in range(2004)]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
    if message["method"] == "tools/list" and len(sys.argv) > 2:
        break
"""


def test_tools_that_are_left_out_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = ToolServerSpec(name="many", command=("${python}", "-c", ENDLESS_SERVER, str(tmp_path / "log")))

    async def use() -> int:
        async with connected(spec) as tools:
            return len(await tools.catalogue(["t0"]))

    with caplog.at_level(logging.WARNING):
        assert in_time(use()) == LISTED_TOOLS_MAX
    said = {entry.message: getattr(entry, "server", None) for entry in caplog.records}
    assert (said["tools_left_out"], said["tool_listed_twice"]) == ("many", "many")


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("t0", ToolOutcome(text="Error: the answer is no message of the protocol", failed=True)),
        ("t1", ToolOutcome(text="\ufffd")),
    ],
)
def test_an_answer_that_the_sdk_cannot_read_is_not_waited_for(tmp_path: Path, name: str, outcome: ToolOutcome) -> None:
    command = ("${python}", "-c", ENDLESS_SERVER, str(tmp_path / "log"))

    async def use() -> ToolOutcome:
        async with connected(ToolServerSpec(name="odd", command=command, timeout_s=3600)) as tools:
            return await call(tools, name)

    assert in_time(use()) == outcome


def test_a_server_that_lists_and_ends_is_started_again_after_ever_longer_pauses(tmp_path: Path) -> None:
    command = ("${python}", "-c", ENDLESS_SERVER, str(tmp_path / "log"), "and end")
    spec = ToolServerSpec(name="brief", command=command, backoff_s=0.1, backoff_max_s=60.0)

    async def use() -> None:
        async with connected(spec):
            await poll(lambda: len(logged(tmp_path)) >= 5)

    in_time(use())
    pauses = [later - earlier for earlier, later in itertools.pairwise(map(float, logged(tmp_path)))]
    assert pauses[3] >= 0.8  # 0.1 doubled three times; a machine that is busy only makes it longer


def test_no_servers_are_fine() -> None:
    async def use() -> int:
        async with connected() as tools:
            assert isinstance(tools, McpTools)
            return len(await tools.catalogue())

    assert in_time(use()) == 0
