"""What a real tool server does to its calls, over every way to reach one."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from adapters.tools_mcp.tool_world import (
    call,
    changed,
    connected,
    http_server,
    in_time,
    logged,
    stdio_spec,
    tool,
    until_logged,
)
from luftpause.adapters.tools_mcp.child import ANSWER_BYTES_MAX
from luftpause.adapters.tools_mcp.child_log import LINES_PER_MINUTE_MAX
from luftpause.adapters.tools_mcp.connection import ServerConnection
from luftpause.adapters.tools_mcp.results import TEXT_MAX
from luftpause.adapters.tools_mcp.tools import McpTools
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.ports.tools import ToolOutcome
from stories.set_ups import free_port

WAYS = ("stdio", "http", "session")


@asynccontextmanager
async def small(folder: Path, way: str, **changes: float) -> AsyncIterator[McpTools]:
    with ExitStack() as stack:
        spec = stdio_spec(folder, **changes)
        if way != "stdio":
            _, port = stack.enter_context(http_server(folder, era=way))
            spec = changed(ToolServerSpec(name="small", url=f"http://127.0.0.1:{port}/mcp"), **changes)
        async with connected(spec) as tools:
            yield tools


@pytest.mark.parametrize("way", WAYS)
def test_tools_that_come_later_are_listed(tmp_path: Path, way: str) -> None:
    async def use() -> ToolOutcome:
        async with small(tmp_path, way) as tools:
            assert "fresh" not in [each.name for each in await tools.catalogue()]
            assert (await call(tools, "grow", name="fresh")).text == "grown"
            while True:
                if "fresh" in [each.name for each in await tools.catalogue()]:
                    return await call(tools, "fresh")
                await asyncio.sleep(0.02)

    assert in_time(use()) == ToolOutcome(text="new")


def test_why_there_is_no_connection_is_told_and_nothing_where_there_is_one(tmp_path: Path) -> None:
    async def cause(spec: ToolServerSpec) -> str:
        connection = ServerConnection(spec)
        connection.start()
        try:
            await connection.tried()
            return connection.cause
        finally:
            await connection.close()

    lost = ToolServerSpec(name="lost", command=("/no/such/program",), backoff_s=60.0)
    assert "/no/such/program" in in_time(cause(lost))
    assert in_time(cause(stdio_spec(tmp_path))) == ""


@pytest.mark.parametrize("way", WAYS)
def test_progress_gives_a_call_more_time_up_to_a_point(tmp_path: Path, way: str) -> None:
    async def use() -> tuple[ToolOutcome, ToolOutcome, ToolOutcome]:
        async with small(tmp_path, way, timeout_s=2.5, timeout_max_s=6.0) as tools:
            return await asyncio.gather(
                call(tools, "crawl", steps=12, pause_s=0.25),
                call(tools, "crawl", steps=1000, pause_s=0.25),
                call(tools, "hang"),
            )

    some, too_much, none = in_time(use())
    assert some == ToolOutcome(text="arrived")
    assert too_much == ToolOutcome(text="Error: no answer within 6 s", failed=True, unknown=True)
    assert none == ToolOutcome(text="Error: no answer within 2.5 s", failed=True, unknown=True)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_nobody_waits_for_any_more_is_cancelled_at_the_server(tmp_path: Path, way: str) -> None:
    async def use() -> None:
        async with small(tmp_path, way) as tools:
            hanging = asyncio.ensure_future(call(tools, "hang"))
            await until_logged(tmp_path, "hang")
            hanging.cancel()
            await asyncio.gather(hanging, return_exceptions=True)
            await until_logged(tmp_path, "hang cancelled")

    in_time(use())


@pytest.mark.parametrize("way", WAYS)
def test_a_long_answer_is_cut_and_one_beyond_measure_fails_alone(tmp_path: Path, way: str) -> None:
    async def use() -> tuple[ToolOutcome, ToolOutcome]:
        async with small(tmp_path, way) as tools:
            meeting = asyncio.ensure_future(call(tools, "meet", name="you"))
            await until_logged(tmp_path, "meet you")
            answers = (await call(tools, "long", length=5_000_000), await call(tools, "long", length=20 * 2**20))
            (tmp_path / "log.you").touch()
            assert (await meeting).text == "met you", "another call was lost"
            return answers

    cut, failed = in_time(use())
    assert cut.text == "x" * TEXT_MAX + f"\n[cut: {5_000_000 - TEXT_MAX} more characters]"
    assert failed.failed
    assert ("longer than" in failed.text and str(ANSWER_BYTES_MAX) in failed.text) or "cannot be read" in failed.text


@pytest.mark.parametrize("way", WAYS)
def test_it_is_left_as_soon_as_it_is_there(tmp_path: Path, way: str) -> None:
    async def use() -> None:
        for _ in range(3):
            async with small(tmp_path, way) as tools:
                await tools.catalogue(["look"])

    in_time(use())


@pytest.mark.parametrize("way", ["http", "session"])
def test_a_key_goes_to_a_url_as_a_header_too(tmp_path: Path, way: str) -> None:
    async def use() -> list[str]:
        async with small(tmp_path, way) as tools:
            keyed = await tool(tools, "key")
            return [(await tools.call(keyed, {}, key)).text for key in ("run_1/2/c3", "run_1/2/ö\n")]

    plain, odd = in_time(use())
    assert plain == "run_1/2/c3"
    assert len(odd) == 64
    assert odd.isalnum()


def test_a_server_gets_no_more_calls_at_once_than_it_may_and_all_get_their_turn(tmp_path: Path) -> None:
    async def use() -> list[str]:
        async with small(tmp_path, "stdio", concurrency=2) as tools:
            meetings = [asyncio.ensure_future(call(tools, "meet", name=str(number))) for number in range(5)]
            await until_logged(tmp_path, "meet 1")
            assert (await call_or_wait(tools)) is None
            assert logged(tmp_path) == ["meet 0", "meet 1"]
            for number in range(5):
                (tmp_path / f"log.{number}").touch()
            return [(await meeting).text for meeting in meetings]

    async def call_or_wait(tools: McpTools) -> ToolOutcome | None:
        """A call that would be answered at once if it were made."""
        try:
            return await asyncio.wait_for(call(tools, "look", at="it"), 0.5)
        except TimeoutError:
            return None

    assert in_time(use()) == [f"met {number}" for number in range(5)]


def test_time_spent_waiting_for_a_slot_is_not_the_servers(tmp_path: Path) -> None:
    async def use() -> list[ToolOutcome]:
        async with small(tmp_path, "stdio", concurrency=1, timeout_s=2.0, timeout_max_s=9.0) as tools:
            crawling = [call(tools, "crawl", steps=5, pause_s=0.25) for _ in range(3)]
            return await asyncio.gather(*crawling)

    assert in_time(use()) == [ToolOutcome(text="arrived")] * 3


def test_a_session_that_the_server_forgot_is_opened_again_and_the_call_made_once(tmp_path: Path) -> None:
    async def use() -> tuple[ToolOutcome, ToolOutcome]:
        with http_server(tmp_path, free_port(), "session") as (first, port):
            spec = ToolServerSpec(name="small", url=f"http://127.0.0.1:{port}/mcp", backoff_s=0.05)
            async with connected(spec) as tools:
                before = await call(tools, "write", text="before")
                first.kill()
                first.wait(10)
                with http_server(tmp_path, port, "session"):
                    return before, await call(tools, "write", text="after")

    assert in_time(use()) == (ToolOutcome(text="written"), ToolOutcome(text="written"))
    assert logged(tmp_path) == ["write before", "write after"]


def test_what_a_child_says_beside_its_messages_is_logged_and_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def use() -> None:
        async with small(tmp_path, "stdio") as tools:
            assert (await call(tools, "complain", lines=500)).text == "complained"
            assert (await call(tools, "look", at="it")).text == "it is there"

    with caplog.at_level(logging.INFO, "luftpause.tools"):
        in_time(use())
    said = [str(entry.__dict__["line"]) for entry in caplog.records if entry.message == "tool_server_said"]
    assert len(said) == LINES_PER_MINUTE_MAX
    assert "complaint 0 ·[31m" in said
    (left_out,) = [entry for entry in caplog.records if entry.message == "tool_server_lines_left_out"]
    assert left_out.__dict__["lines"] == 501 - LINES_PER_MINUTE_MAX
    assert [entry.__dict__["server"] for entry in caplog.records if entry.message == "tool_server_ended"] == ["small"]
