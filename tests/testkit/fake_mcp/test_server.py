"""The fake MCP server, asked by the official client: over HTTP in both protocol eras, and over stdio."""

import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from luftpause.testkit.fake_mcp.server import fake_mcp
from luftpause.testkit.fake_mcp.tools import Settings
from testkit.running import request, run

QUICK = Settings(delay_s=0.0, deep_delay_s=0.0)


def text(result: CallToolResult) -> str:
    [part] = result.content
    assert isinstance(part, TextContent)
    return part.text


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_both_eras_list_and_call_the_tools(mode: str, version: str) -> None:
    async def talk() -> None:
        async with fake_mcp(QUICK) as url, Client(f"{url}/mcp", mode=mode) as client:
            assert client.protocol_version == version
            assert [tool.name for tool in (await client.list_tools()).tools] == ["lookup", "deep_search"]
            found = await client.call_tool("lookup", {"query": "the Danube"})
            assert '"the Danube"' in text(found)
            assert not found.is_error

    run(talk())


def test_wrong_calls_are_answered_with_an_error_that_the_model_can_read() -> None:
    async def talk() -> list[CallToolResult]:
        async with fake_mcp(QUICK) as url, Client(f"{url}/mcp") as client:
            wrong: list[tuple[str, dict[str, object]]] = [
                ("lookup", {}),
                ("lookup", {"query": 3}),
                ("lookup", {"query": "x", "more": 1}),
                ("delete_note", {"name": "x"}),
            ]
            return [await client.call_tool(name, arguments) for name, arguments in wrong]

    results = run(talk())
    assert all(result.is_error for result in results)
    assert "'query'" in text(results[0])
    assert "lookup, deep_search" in text(results[3])


def test_the_same_query_and_seed_find_the_same() -> None:
    async def ask(seed: int) -> list[str]:
        async with fake_mcp(Settings(delay_s=0.0, seed=seed)) as url, Client(f"{url}/mcp") as client:
            return [text(await client.call_tool("lookup", {"query": f"river {n}"})) for n in range(4)]

    assert run(ask(1)) == run(ask(1)) != run(ask(2))


def test_every_call_carried_out_leaves_a_line_and_no_other(tmp_path: Path) -> None:
    effects = tmp_path / "effects"

    async def talk() -> None:
        settings = Settings(delay_s=0.0, destructive=True, effects=effects)
        async with fake_mcp(settings) as url, Client(f"{url}/mcp") as client:
            assert "deleted" in text(await client.call_tool("delete_note", {"name": "monday"}))
            await client.call_tool("delete_note", {"wrong": "monday"})

    run(talk())
    assert effects.read_text(encoding="utf-8") == '{"tool": "delete_note", "argument": "monday"}\n'


def test_health_says_that_it_is_up() -> None:
    async def ask() -> int:
        async with fake_mcp(QUICK) as url:
            return (await request(f"{url}/health"))[0]

    assert run(ask()) == 200


def test_over_stdio_the_command_speaks_to_the_official_client() -> None:
    async def talk() -> None:
        command = ["-m", "luftpause", "fake-mcp", "--stdio", "--delay-s", "0", "--destructive"]
        async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["lookup", "deep_search", "delete_note"]
            assert '"Ebro"' in text(await client.call_tool("lookup", {"query": "Ebro"}))

    run(talk())
