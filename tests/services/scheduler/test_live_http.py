"""The routes of whoever looks on."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from luftpause.adapters.http_server.server import HttpServer
from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.events import TurnFinished
from luftpause.ports import json_bodies
from luftpause.services.scheduler import feed as feed_module
from luftpause.services.scheduler import live_http
from luftpause.services.scheduler.http import SchedulerHttp
from luftpause.services.scheduler.live_http import LiveHttp, Surroundings
from services.scheduler.asking import ask
from services.scheduler.run_trees import RUNTIME, FakeRunTrees
from services.scheduler.running import offer, run, soon, spec, started

DECISION = {"handle": "h1", "call": "c1", "allow": True}


def decided(
    body: object,
    *,
    trees: FakeRunTrees | None = None,
    headers: dict[str, str] | None = None,
    known: bool = True,
) -> tuple[int, Any]:
    async def story() -> tuple[int, Any]:
        around = Surroundings(trees=trees or FakeRunTrees()) if known else Surroundings()
        app = SchedulerHttp(started(), around).app()
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://box") as client:
            if isinstance(body, bytes):
                kind = {"content-type": "application/json", **(headers or {})}
                answer = await client.post("/approvals", content=body, headers=kind)
            else:
                answer = await client.post("/approvals", json=body, headers=headers or {})
            return answer.status_code, answer.json()

    return run(story)


def test_a_decision_goes_to_the_runtime_that_asked() -> None:
    trees = FakeRunTrees()
    assert decided({**DECISION, "runtime": RUNTIME + "/"}, trees=trees) == (200, {"decided": True})
    assert decided({**DECISION, "allow": False}, trees=trees) == (200, {"decided": True})
    assert trees.decided == [("h1", "c1", True), ("h1", "c1", False)]


def test_a_decision_that_cannot_be_taken_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_bodies, "BYTES_MAX", 2000)
    away, refusing = FakeRunTrees(), FakeRunTrees()
    away.tree, refusing.refusal = None, "there is no run 'h1'"
    cases = [
        (decided(b'{"handle": 1}'), 400, "no decision"),
        (decided(b'{"x": ' + b"[" * 1500), 400, "no decision"),
        (decided(b"x" * 2001), 413, "at most 2000 bytes"),
        (decided(b"{}", headers={"content-type": "text/plain"}), 415, "send JSON"),
        (decided({**DECISION, "runtime": "http://elsewhere"}), 404, f"no runtime known here; known: {RUNTIME}"),
        (decided(DECISION, known=False), 404, "no runtime is known here"),
        (decided(DECISION, trees=away), 502, "the runtime does not answer: it sleeps"),
        (decided(DECISION, trees=refusing), 400, "there is no run 'h1'"),
    ]
    for (status, body), expected, words in cases:
        assert (status, words in body["error"]["message"]) == (expected, True), body


def test_the_timeline_tells_lanes_and_changes() -> None:
    async def story() -> None:
        service = started(spec("a"))
        app = SchedulerHttp(service).app()
        service.admit(offer("t1", run="r"))
        service.report(TurnFinished(turn=TurnId("t1")))
        body = (await ask(app, "/timeline")).json()
        assert [lane[:3] for lane in body["lanes"]] == [[1, "r", "run"]]
        assert [change[:2] for change in body["changes"]] == [[1, "prefill"], [1, "idle"]]
        assert all(0 <= change[2] <= body["now_ms"] for change in body["changes"])

    run(story)


def test_events_of_an_unknown_runtime_are_a_404_and_of_too_many_readers_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        app = SchedulerHttp(started(), Surroundings(trees=FakeRunTrees())).app()
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://box") as client:
            assert (await client.get("/events?runtime=http://elsewhere")).status_code == 404
            monkeypatch.setattr(feed_module, "READERS_MAX", 0)
            answer = await client.get("/events")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "60")
            assert (answer.json()["error"]["code"], "close one" in answer.text) == ("too_many_readers", True)

    run(story)


def test_whoever_begins_to_look_while_the_door_closes_is_asked_to_come_again() -> None:
    async def story() -> None:
        door = SchedulerHttp(started(), Surroundings())
        door.close()
        answer = await ask(door.app(), "/events")
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["error"]["code"] == "shutting_down"

    run(story)


def test_a_reader_that_takes_nothing_is_cut_and_its_seat_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_http, "STALLED_S", 0.05)
    left = asyncio.Event()

    async def endless(_: str | None) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"data: {}\n\n" * 100_000
        finally:
            left.set()

    async def story() -> None:
        live = LiveHttp(started(), Surroundings())
        monkeypatch.setattr(live.feed, "stream", endless)
        server = HttpServer(Starlette(routes=live.routes()), host="127.0.0.1", port=0)
        await server.start()
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(b"GET /events HTTP/1.1\r\nhost: box\r\n\r\n")
        await soon(left.wait())
        writer.close()
        await server.close()

    run(story)


def test_the_stream_is_events_that_nobody_keeps_and_ends_when_the_door_closes() -> None:
    async def story() -> None:
        live = LiveHttp(started(spec("a")), Surroundings())
        app, heard = Starlette(routes=live.routes()), asyncio.Event()

        async def overheard(scope: Scope, receive: Receive, send: Send) -> None:
            async def told(message: Message) -> None:
                await send(message)
                if message.get("body"):
                    heard.set()

            await app(scope, receive, told)

        transport = httpx2.ASGITransport(app=overheard)
        async with httpx2.AsyncClient(transport=transport, base_url="http://box") as client:
            asked = asyncio.create_task(client.get("/events"))
            await soon(heard.wait())
            live.close()
            answer = await soon(asked)
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.content.startswith(b'data: {"about":')

    run(story)
