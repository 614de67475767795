"""A person's decision over HTTP: whose calls it reaches."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from luftpause.core.model.ids import PrincipalId, RunId
from luftpause.core.model.principals import Principal
from luftpause.core.runs.events import ApprovalDecided
from luftpause.core.runs.view import RunStatus
from luftpause.ports import json_bodies
from luftpause.ports.asgi import PRINCIPAL_KEY, Receive, Scope, Send
from luftpause.services.runtime.approvals_http import BY_PAGE, ApprovalsHttp
from services.runtime.runtime_fakes import FakeTools, MemoryJournal, World, in_time, order, runtime

ALICE = PrincipalId("alice")
DEEP = b'{"x": ' + b"[" * 1500


@asynccontextmanager
async def door(journal: MemoryJournal | None = None) -> AsyncIterator[tuple[World, RunId, httpx2.AsyncClient]]:
    """A run of alice's whose call waits, and a door at which the header `x-who` says who comes."""
    async with runtime(tools=FakeTools(destructive=frozenset({"look"})), journal=journal) as world:
        app = Starlette(routes=[Route("/approvals", ApprovalsHttp(world.service.approvals).decide, methods=["POST"])])

        async def told(scope: Scope, receive: Receive, send: Send) -> None:
            name = dict(scope["headers"])[b"x-who"].decode()
            scope[PRINCIPAL_KEY] = Principal(name=PrincipalId(name), decides_all=name == "boss")
            await app(scope, receive, send)

        run = await world.service.spawn(order(principal=ALICE))
        assert not await world.service.wait(ALICE, [run], "all", 20, or_approval=True)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=told), base_url="http://box") as client:
            yield world, run, client


async def decide(client: httpx2.AsyncClient, who: str, run: str, *, allow: bool = True) -> httpx2.Response:
    body = {"handle": run, "call": "c0", "allow": allow}
    return await client.post("/approvals", json=body, headers={"x-who": who})


@pytest.mark.parametrize("who", ["alice", "boss"])
@pytest.mark.parametrize("allow", [True, False])
def test_whose_run_it_is_and_whoever_operates_this_may_decide_once(
    who: str, allow: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="luftpause.runtime")
    journal = MemoryJournal()

    async def live() -> None:
        async with door(journal) as (world, run, client):
            answers = [await decide(client, who, run, allow=allow) for _ in range(2)]
            assert [(each.status_code, each.json()) for each in answers] == [
                (200, {"decided": True}),
                (200, {"decided": False}),
            ]
            assert await world.service.wait(ALICE, [run], "all", 20)
            assert len(world.tools.made) == int(allow)

    in_time(live())
    said = [each for each in caplog.records if each.message == "approval_decided"]
    assert [(vars(each)["principal"], vars(each)["allow"]) for each in said] == [(who, allow)]
    events = [entry.event for kept in journal.kept.values() for entry in kept]
    (kept_one,) = [each for each in events if isinstance(each, ApprovalDecided)]
    assert kept_one.by == BY_PAGE


def test_nobody_else_learns_that_there_is_such_a_run() -> None:
    async def live() -> None:
        async with door() as (world, run, client):
            foreign, unknown = await decide(client, "bob", run), await decide(client, "bob", "run_nothing")
            assert (foreign.status_code, unknown.status_code) == (404, 404)
            told = [each.json()["error"]["message"] for each in (foreign, unknown)]
            assert told[0].replace(run, "X") == told[1].replace("run_nothing", "X")
            (seen,) = world.service.look(ALICE, [run])
            assert seen.status is RunStatus.AWAITING_APPROVAL

    in_time(live())


def test_what_is_no_decision_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_bodies, "BYTES_MAX", 2000)

    async def live() -> None:
        async with door() as (_, _run, client):

            async def post(body: bytes, kind: str = "application/json") -> tuple[int, str]:
                headers = {"x-who": "boss", "content-type": kind}
                answer = await client.post("/approvals", content=body, headers=headers)
                return answer.status_code, answer.json()["error"]["message"]

            refused = await asyncio.gather(
                post(b"{}", "text/plain"), post(b"x" * 2001), post(b'{"handle": 1}'), post(b"\xff"), post(DEEP)
            )
            assert [status for status, _ in refused] == [415, 413, 400, 400, 400]
            assert "send JSON" in refused[0][1]
            assert "at most 2000 bytes" in refused[1][1]
            assert all("no decision" in message for _, message in refused[2:])

    in_time(live())
