"""An interactive turn comes where batch turns wait for their first token: one of them makes way, unseen."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, chunked, eventually, run_bounded
from adapters.raw_client import RawClient, connected, request
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.http_server.server import HttpServer
from luftpause.adapters.link.client import RemoteLink
from luftpause.adapters.link.direct import DirectLink
from luftpause.adapters.link.server import LinkServer
from luftpause.core.model.ids import ModelName, PeerId, ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Load, ReplicaSpec
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.ports.scheduler import SchedulerLink
from luftpause.services.dataplane.app import Dataplane
from luftpause.services.dataplane.settings import DataplaneSettings
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings

PEER = PeerId("door")
PATH = b"/v1/chat/completions"
SAID = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
NAMES = (b"b1", b"b2", b"b3")


class Prefilling:
    """An engine that begins to answer nothing but `i` before it may; it notes who left it before."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked: list[bytes] = []
        self.left: list[bytes] = []

    async def __call__(self, visit: Visit) -> None:
        body = (await visit.request()).body
        name = next(name for name in (*NAMES, b"i") if b'"%b"' % name in body)
        self.asked.append(name)
        if name != b"i":
            leaving = asyncio.create_task(visit.left())
            speaking = asyncio.create_task(self.may_answer.wait())
            await asyncio.wait({leaving, speaking}, return_when=asyncio.FIRST_COMPLETED)
            speaking.cancel()
            if leaving.done():
                self.left.append(name)
                return
            visit.send(chunked(SAID, DONE))
            await leaving
        else:
            visit.send(chunked(SAID, DONE))


@contextlib.asynccontextmanager
async def linked(service: SchedulerService, *, split: bool) -> AsyncIterator[SchedulerLink]:
    if not split:
        yield DirectLink(service)
        return
    server = LinkServer(service)
    await server.start()
    link = RemoteLink("127.0.0.1", server.port, peer=PEER)
    await link.start()
    await link.ready()
    yield link
    await link.close()
    await server.close()


@contextlib.asynccontextmanager
async def opened(engine: ScriptedEngine, *, split: bool) -> AsyncIterator[tuple[SchedulerService, str]]:
    limits = Limits(working_set=WorkingSetLimits())
    service = SchedulerService(SchedulerSettings(limits=limits))
    service.start()
    place = Endpoint(url=engine.url)
    name = ReplicaId("a")
    service.add_replica(
        ReplicaSpec(replica=name, endpoint=place, models=(ModelName("m"),), engine=EngineKind.VLLM, dialects=())
    )
    service.probed(ReplicaProbed(replica=name, healthy=True, load=Load(running=0, waiting=0, kv_tokens=100_000)))
    engines = HttpEngines()
    async with linked(service, split=split) as link:
        settings = DataplaneSettings(keepalive_after_s=0.05, keepalive_s=0.05)
        dataplane = Dataplane(link, engines, settings, peer=PEER)
        server = HttpServer(dataplane, host="127.0.0.1", port=0)
        await server.start()
        await dataplane.start()
        yield service, server.url
        await server.close(grace_s=0.0)
        await dataplane.close()
        await engines.close()
    service.close()


def ask(client: RawClient, name: bytes) -> None:
    kind = b"interactive" if name == b"i" else b"batch"
    # long enough for its first token to be awaited for a while, whatever the machine does
    text = name + b'","filler":"' + b"x" * 80_000
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"%b"}]}' % text
    client.send(request(b"POST", PATH, b"content-type: application/json", b"x-luftpause-class: " + kind, body=body))


async def answer_of(client: RawClient) -> bytes:
    pieces = []
    while piece := await client.chunk():
        pieces.append(piece)
    return b"".join(piece for piece in pieces if not piece.startswith(b":"))


@pytest.mark.parametrize("split", [False, True], ids=["direct", "split"])
def test_the_youngest_batch_turn_makes_way_and_nobody_sees_it(split: bool) -> None:
    async def main() -> None:
        engine = Prefilling()
        async with contextlib.AsyncExitStack() as stack:
            scripted = await stack.enter_async_context(ScriptedEngine(engine).listening())
            service, url = await stack.enter_async_context(opened(scripted, split=split))
            clients = [await stack.enter_async_context(connected(url)) for _ in range(4)]
            for name, client in zip(NAMES, clients, strict=False):
                ask(client, name)
                await eventually(partial(engine.asked.__contains__, name))
            urgent = clients[3]
            ask(urgent, b"i")
            assert (await urgent.head()).status == 200
            assert await answer_of(urgent) == SAID + DONE
            await eventually(lambda: engine.left == [b"b3"])
            await eventually(lambda: engine.asked == [b"b1", b"b2", b"b3", b"i", b"b3"])
            check(service.state)
            engine.may_answer.set()
            for client in clients[:3]:
                head = await client.head()
                assert head.status == 200
                assert await answer_of(client) == SAID + DONE
            await eventually(lambda: not service.state.turns)
            check(service.state)
            assert engine.left == [b"b3"]

    run_bounded(main())
