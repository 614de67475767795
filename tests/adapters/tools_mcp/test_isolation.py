"""Calls over HTTP break one by one. The server here speaks just enough of the protocol to break in chosen ways."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from httpx2 import TransportError
from mcp_types import Tool, ToolAnnotations

from adapters.tools_mcp.tool_world import connected, in_time
from luftpause.adapters.tools_mcp.isolation import Break, End, IsolatingClient, break_of
from luftpause.adapters.tools_mcp.tools import name_tools
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.ports.tools import ToolOutcome

SESSION = {"mcp-session-id": "s"}


class BreakingServer:
    """`drop` closes the connection without an answer, `wait` answers once it may, and 404 is for everything else.

    Attributes:
        sessions: those that it knows, and answers any other with 404; None where it keeps none.
        memory: sessions that are opened when there is none left of it are forgotten at once.
    """

    def __init__(self) -> None:
        self.sessions: set[str] | None = None
        self.opened = 0
        self.memory = 1000
        self.may_answer = asyncio.Event()
        self.waiting = asyncio.Event()
        self.dropped = 0
        self.visits: set[asyncio.Task[None]] = set()

    def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits.add(asyncio.ensure_future(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                asked = json.loads(await reader.readexactly(int(length or "0")) or b"{}")
                status, answer = (404, {"plain": "who?"}) if self.forgot(head) else await self.answer(asked)
                body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), **answer}).encode()
                kind = "application/json"
                if "plain" in answer:
                    kind, body = "text/plain", str(answer["plain"]).encode()
                if asked.get("params", {}).get("name") == "half_streamed":
                    kind, body = "text/event-stream", b"event: message\ndata: " + body + b"\n\n"
                if asked.get("method") == "initialize" and self.sessions is not None:
                    kind += f"\r\nmcp-session-id: {self.open()}"
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def open(self) -> str:
        assert self.sessions is not None
        self.opened += 1
        if self.opened <= self.memory:
            self.sessions.add(f"s{self.opened}")
        return f"s{self.opened}"

    def forgot(self, head: str) -> bool:
        session = head.partition("mcp-session-id: ")[2].partition("\r\n")[0]
        return bool(session) and self.sessions is not None and session not in self.sessions

    async def answer(self, asked: dict[str, object]) -> tuple[int, dict[str, object]]:
        match asked:
            case {"method": "initialize"}:
                told = {"capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
                return 200, {"result": {"protocolVersion": "2025-06-18", **told}}
            case {"method": "tools/list"}:
                return 200, {"result": {"tools": []}}
            case {"params": {"name": "wait"}}:
                self.waiting.set()
                await self.may_answer.wait()
                return 200, {"result": {"content": [{"type": "text", "text": "waited"}]}}
            case {"params": {"name": "half" | "half_streamed"}}:
                return 200, {"result": {"content": [{"type": "text", "text": "half \ud83d a pair"}]}}
            case {"method": method} if str(method).startswith("notifications/"):
                return 202, {}
            case _:
                return self.refusal(asked)

    def refusal(self, asked: dict[str, object]) -> tuple[int, dict[str, object]]:
        match asked:
            case {"method": "ping"} if self.sessions is not None:
                return 200, {"result": {}}
            case {"params": {"name": "refuse", "arguments": {"status": int(status), **more}}}:
                self.dropped += 1
                return status, {str(name): value for name, value in more.items()} or {"plain": "go away"}
            case {"params": {"name": "drop"}}:
                self.dropped += 1
                raise ConnectionError
            case _:
                return 404, {}


@asynccontextmanager
async def breaking_server() -> AsyncIterator[tuple[BreakingServer, str]]:
    it = BreakingServer()
    server = await asyncio.start_server(it.visit, "127.0.0.1", 0)
    try:
        yield it, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for visit in it.visits:
            visit.cancel()
        await asyncio.gather(*it.visits, return_exceptions=True)


@asynccontextmanager
async def client() -> AsyncIterator[tuple[IsolatingClient, list[End]]]:
    ends: list[End] = []
    async with IsolatingClient(ends.append, {}, connect_timeout_s=5, answer_timeout_s=5) as it:
        yield it, ends


def test_an_exchange_that_breaks_is_answered_and_ends_nothing_else() -> None:
    async def use() -> None:
        async with breaking_server() as (_, url), client() as (it, ends):
            answer = await it.post(url, json={"params": {"name": "drop"}})
            assert break_of(answer.json()["error"]["data"]) is Break.UNKNOWN
            assert ends == []
            with pytest.raises(TransportError):
                await it.request("GET", url, json={"params": {"name": "drop"}})

    in_time(use())


def test_a_server_that_is_not_there_and_a_session_that_is_forgotten_end_the_connection() -> None:
    async def use() -> None:
        async with breaking_server() as (_, url), client() as (it, ends):
            forgotten = await it.post(url, json={}, headers=SESSION)
            assert (break_of(forgotten.json()["error"]["data"]), ends) == (Break.NOT_SENT, [End.FORGOTTEN])
            assert (await it.post(url, json={})).status_code == 404, "without a session there is none to forget"
            away = await it.post("http://127.0.0.1:9/mcp", json={})
            assert (break_of(away.json()["error"]["data"]), ends) == (Break.NOT_SENT, [End.FORGOTTEN, End.LOST])

    in_time(use())


@pytest.mark.parametrize("data", [None, 5, {}, {"mark": "guess", "break": Break.NOT_SENT.value}, {"mark": 5}])
def test_no_server_can_say_that_an_exchange_broke(data: object) -> None:
    assert break_of(data) is None


@pytest.mark.parametrize("name", ["half", "half_streamed"])
def test_half_of_a_surrogate_pair_costs_no_answer(name: str) -> None:
    async def use() -> ToolOutcome:
        async with breaking_server() as (_, url), connected(ToolServerSpec(name="s", url=url)) as tools:
            (tool,) = name_tools([("s", [Tool(name=name, input_schema={})])])
            return await tools.call(tool, {}, "k")

    assert in_time(use()) == ToolOutcome(text="half \ufffd a pair")


OWN_WORD = {"error": {"code": -1, "message": "my own word"}}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("status", "more", "told", "is_unknown"),
    [
        *((status, {}, f"Error: HTTP {status} go away", False) for status in (400, 401, 403, 429, 500, 503)),
        *((status, {}, "", True) for status in (502, 504)),
        *((status, OWN_WORD, "Error: my own word", False) for status in (400, 500, 502)),
    ],
)
def test_a_call_that_is_refused_is_told_with_what_and_a_gateway_knows_nothing_of_it(
    status: int, more: dict[str, object], told: str, is_unknown: bool, read_only: bool
) -> None:
    async def use() -> tuple[ToolOutcome, int]:
        async with breaking_server() as (it, url), connected(ToolServerSpec(name="s", url=url)) as tools:
            hints = ToolAnnotations(read_only_hint=read_only)
            (tool,) = name_tools([("s", [Tool(name="refuse", input_schema={}, annotations=hints)])])
            return await tools.call(tool, {"status": status, **more}, "k"), it.dropped

    outcome, times = in_time(use())
    assert (outcome.failed, outcome.unknown) == (True, is_unknown)
    assert times == (3 if is_unknown and read_only else 1), "only what may be made twice is made again"
    if told:
        assert outcome.text == told
    elif read_only:
        assert f"HTTP {status} go away" in outcome.text or "unavailable" in outcome.text
    else:
        assert "whether it took effect is unknown" in outcome.text


@pytest.mark.parametrize("read_only", [False, True])
def test_a_call_that_is_dropped_leaves_the_others_alone(read_only: bool) -> None:
    async def use() -> tuple[ToolOutcome, ToolOutcome, int]:
        async with breaking_server() as (it, url), connected(ToolServerSpec(name="s", url=url)) as tools:
            listed = [
                Tool(name=name, input_schema={}, annotations=ToolAnnotations(read_only_hint=read_only))
                for name in ("drop", "wait")
            ]
            drop, wait = name_tools([("s", listed)])
            waiting = asyncio.ensure_future(tools.call(wait, {}, "k"))
            await it.waiting.wait()
            dropped = await tools.call(drop, {}, "k")
            it.may_answer.set()
            return dropped, await waiting, it.dropped

    dropped, waited, times = in_time(use())
    assert waited == ToolOutcome(text="waited")
    assert (dropped.failed, dropped.unknown, times) == (True, True, 3 if read_only else 1)


def in_sessions(url: str) -> ToolServerSpec:
    """A server after whose loss nobody comes back within the test, if there is a pause first."""
    return ToolServerSpec(name="s", url=url, backoff_s=600.0, backoff_max_s=600.0, grace_s=600.0)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("more", [{}, OWN_WORD])
def test_a_call_that_is_not_found_in_a_session_that_lives_fails_alone(more: dict[str, object], read_only: bool) -> None:
    async def use() -> tuple[ToolOutcome, ToolOutcome, int, int]:
        async with breaking_server() as (it, url), connected(in_sessions(url)) as tools:
            it.sessions = set()
            hints = ToolAnnotations(read_only_hint=read_only)
            listed = [Tool(name=name, input_schema={}, annotations=hints) for name in ("refuse", "wait")]
            refuse, wait = name_tools([("s", listed)])
            waiting = asyncio.ensure_future(tools.call(wait, {}, "k"))
            await it.waiting.wait()
            refused = await tools.call(refuse, {"status": 404, **more}, "k")
            it.may_answer.set()
            return refused, await waiting, it.dropped, it.opened

    refused, waited, times, opened = in_time(use())
    assert refused == ToolOutcome(text="Error: my own word" if more else "Error: HTTP 404 go away", failed=True)
    assert waited == ToolOutcome(text="waited")
    assert (times, opened) == (1, 1)


def test_a_session_that_is_forgotten_is_opened_anew_at_once_for_all_that_call() -> None:
    async def use() -> tuple[list[ToolOutcome], int]:
        async with breaking_server() as (it, url), connected(in_sessions(url)) as tools:
            it.sessions = set()
            it.may_answer.set()
            (wait,) = name_tools([("s", [Tool(name="wait", input_schema={})])])
            first = await tools.call(wait, {}, "k")
            it.sessions.clear()
            return [first, *await asyncio.gather(*(tools.call(wait, {}, "k") for _ in range(3)))], it.opened

    outcomes, opened = in_time(use())
    assert outcomes == [ToolOutcome(text="waited")] * 4
    assert opened == 2, "one new session is enough"


def test_a_server_that_forgets_each_session_is_left_alone_after_the_second() -> None:
    async def use() -> tuple[ToolOutcome, int]:
        async with breaking_server() as (it, url):
            it.sessions, it.memory = set(), 1
            it.may_answer.set()
            spec = replace(in_sessions(url), grace_s=1.0)
            (wait,) = name_tools([("s", [Tool(name="wait", input_schema={})])])
            async with connected(spec) as tools:
                assert (await tools.call(wait, {}, "k")).text == "waited"
                it.sessions.clear()
                return await tools.call(wait, {}, "k"), it.opened

    outcome, opened = in_time(use())
    assert (outcome.failed, outcome.unknown, opened) == (True, False, 2)
