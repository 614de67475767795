"""Whose a request is, as the guard before the door would say it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import Principal
from luftpause.ports.asgi import PRINCIPAL_KEY, Receive, Scope, Send
from luftpause.services.runtime.http import build_app, error_at
from luftpause.services.runtime.mcp_door.runtime_door import DoorParts
from luftpause.testkit.serving import bind, serving, url_of
from services.runtime.mcp_door.doors import KEY, FakeDecisions
from services.runtime.runtime_fakes import in_time, look_once, runtime

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


@asynccontextmanager
async def door() -> AsyncIterator[httpx2.AsyncClient]:
    """A door at which the header `x-who` says who comes."""
    async with runtime(look_once) as world:
        parts = DoorParts(decisions=FakeDecisions(), state_key=KEY, version="0.1")
        app = build_app(world.service, parts)

        async def told(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                name = dict(scope["headers"])[b"x-who"].decode()
                scope[PRINCIPAL_KEY] = Principal(name=PrincipalId(name), sees_all=name == "boss")
            await app(scope, receive, send)

        listener = bind("127.0.0.1", 0)
        url = url_of(listener)
        async with serving(told, listener, lifespan=True), httpx2.AsyncClient(base_url=url) as client:
            yield client


async def post(client: httpx2.AsyncClient, who: str, message: object, session: str = "") -> httpx2.Response:
    headers = {"x-who": who, "accept": "application/json, text/event-stream"}
    if session:
        headers["mcp-session-id"] = session
    return await client.post("/mcp", json=message, headers=headers)


def test_a_session_is_its_principals_alone() -> None:
    async def live() -> list[int]:
        async with door() as client:
            session = (await post(client, "alice", HELLO)).headers["mcp-session-id"]
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await post(client, "alice", ready, session)).status_code == 202
            answers = [await post(client, who, LIST, session) for who in ("alice", "bob", "alice")]
            assert "spawn" in answers[2].text
            return [answer.status_code for answer in answers]

    assert in_time(live()) == [200, 404, 200]


def test_only_whoever_may_sees_the_runs_of_others() -> None:
    async def live() -> list[tuple[str, int]]:
        async with door() as client:
            session = (await post(client, "alice", HELLO)).headers["mcp-session-id"]
            await post(client, "alice", {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
            params = {"name": "spawn", "arguments": {"task": "x", "model": "m", "tools": []}}
            spawned = await post(client, "alice", {**LIST, "method": "tools/call", "params": params}, session)
            assert spawned.status_code == 200
            seen = [await client.get("/status", headers={"x-who": who}) for who in ("alice", "bob", "boss")]
            return [(answer.json()["scope"], len(answer.json()["runs"])) for answer in seen]

    assert in_time(live()) == [("own", 1), ("own", 0), ("all", 1)]


def test_what_the_transport_refuses_is_told_as_json_rpc_too() -> None:
    async def live() -> list[tuple[int, str]]:
        async with door() as client:
            long = json.dumps({**LIST, "padding": "x" * DEFAULT_MAX_REQUEST_BODY_SIZE}).encode()
            usual = {"x-who": "alice", "accept": "application/json, text/event-stream"}
            asked = ((long, "application/json"), (b"{}", "text/plain"), (b"{", "application/json"))
            answers = [
                await client.post("/mcp", content=content, headers={**usual, "content-type": kind})
                for content, kind in asked
            ]
            assert {answer.headers["content-type"] for answer in answers} == {"application/json"}
            return [(answer.status_code, answer.json()["error"]["message"]) for answer in answers]

    long, plain, broken = in_time(live())
    assert long == (413, f"the request is longer than {DEFAULT_MAX_REQUEST_BODY_SIZE} bytes")
    assert plain == (400, "Invalid Content-Type header")
    assert broken[0] == 400
    assert "Parse error" in broken[1]


def test_a_failure_is_told_as_json_rpc() -> None:
    told = json.loads(error_at("/mcp", Failure(code=FailureCode.UNAUTHORIZED, message="no token")))
    assert told == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no token"}}
