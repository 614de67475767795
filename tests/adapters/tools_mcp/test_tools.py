import asyncio
from pathlib import Path

import pytest
from mcp_types import Tool, ToolAnnotations

from adapters.tools_mcp.tool_world import call, connected, http_server, in_time, logged, stdio_spec, tool, until_logged
from luftpause.adapters.tools_mcp.tools import McpTools, name_tools
from luftpause.adapters.tools_mcp.transports import ToolServerSpec, child_environment
from luftpause.ports.tools import ToolHints, ToolOutcome

BROKE_OFF = "Error: tool server 'small' broke off during this call; whether it took effect is unknown"


def listed(name: str, hints: ToolAnnotations | None = None) -> Tool:
    return Tool(name=name, input_schema={"type": "object"}, annotations=hints)


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
            names = [each.name for each in await tools.catalogue()]
            return names, [
                await call(tools, "look", at="the moon"),
                await call(tools, "small__look", at="the sun"),
                await call(tools, "fail"),
                await call(tools, "environment"),
            ]

    names, (moon, sun, failed, environment) = in_time(use())
    assert names == ["die", "die_once", "environment", "fail", "hang", "look", "write"]
    assert (moon, sun.text) == (ToolOutcome(text="the moon is there"), "the sun is there")
    assert failed.failed
    assert "it does not work" in failed.text
    assert "SMALL_TOOLS_LOG" in environment.text
    assert "LUFTPAUSE_TOKEN" not in environment.text


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
        with http_server(tmp_path) as (first, port):
            spec = ToolServerSpec(name="small", url=f"http://127.0.0.1:{port}/mcp", backoff_s=0.05, backoff_max_s=0.2)
            async with connected(spec) as tools:
                hanging = asyncio.ensure_future(call(tools, "hang"))
                await until_logged(tmp_path, "hang")
                first.kill()
                first.wait(10)
                assert await hanging == ToolOutcome(text=BROKE_OFF, failed=True, unknown=True)
                away = await call(tools, "look", at="it")
                assert (away.failed, away.unknown) == (True, away.text == BROKE_OFF)
                with http_server(tmp_path, port):
                    while (await call(tools, "look", at="it")).failed:  # each try ends by itself
                        pass

    in_time(use())


def test_a_server_that_is_not_there_fails_its_own_calls_only_and_fast(tmp_path: Path) -> None:
    lost = ToolServerSpec(name="lost", command=("/no/such/program",), backoff_s=60.0)

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
        async with connected(stdio_spec(tmp_path, timeout_s=0.5)) as tools:
            late = await call(tools, "hang")
            await until_logged(tmp_path, "hang cancelled")
            return late, await call(tools, "look", at="it")

    late, looked = in_time(use())
    assert late == ToolOutcome(text="Error: no answer within 0.5 s", failed=True, unknown=True)
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


def test_no_servers_are_fine() -> None:
    async def use() -> int:
        async with connected() as tools:
            assert isinstance(tools, McpTools)
            return len(await tools.catalogue())

    assert in_time(use()) == 0
