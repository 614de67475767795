"""A conversation that no longer fits is told in the words by which clients know that they have to shorten it."""

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, run_bounded
from adapters.raw_client import connected
from luftpause.core.model.replicas import EngineKind
from services.dataplane.door import open_door
from services.dataplane.ways import EVERY, Way, told

LLAMA = (
    b'{"error":{"code":400,"message":"request (20031 tokens) exceeds the available context size (4096 tokens), try '
    b'increasing it","type":"exceed_context_size_error","n_prompt_tokens":20031,"n_ctx":4096}}'
)
VLLM = (
    b'{"type":"error","error":{"type":"BadRequestError","message":"This model\'s maximum context length is 4096 '
    b'tokens. However, you requested 20031 tokens."}}'
)
OTHER = b'{"type":"error","error":{"type":"invalid_request_error","message":"temperature: must be below 2"}}'
FROM_THERE = {
    "messages": b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}',
    "responses": b'{"error":{"message":"Your input exceeds the context window","code":"context_length_exceeded"}}',
}
NAMED = [way for way in EVERY if way.dialect in FROM_THERE]


def each(ways: list[Way]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", ways, ids=lambda way: way.name)


async def refused(way: Way, body: bytes) -> bytes:
    """Return what a client gets whose engine refuses so."""

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(body, status=b"400 Bad Request"))
        await visit.left()

    async with open_door(ScriptedEngine(script)) as door, connected(door.url) as client:
        way.at(door)
        door.scheduler.engine_kind = EngineKind.VLLM
        client.send(way.asked())
        reply = await client.reply()
        assert reply.status == 400
        return reply.body


@each(NAMED)
@pytest.mark.parametrize("body", [LLAMA, VLLM], ids=["llama.cpp", "vllm"])
def test_it_is_told_so_whether_the_engine_speaks_the_dialect_or_not(way: Way, body: bytes) -> None:
    error = told(way, run_bounded(refused(way, body)))
    if way.dialect == "messages":
        assert error["type"] == "invalid_request_error"
        assert error["message"].startswith("prompt is too long: ")
    else:
        assert error["code"] == "context_length_exceeded"
    assert "4096 tokens" in error["message"]


@each([way for way in NAMED if way.native])
def test_what_says_so_already_or_says_something_else_passes_as_it_came(way: Way) -> None:
    for body in (FROM_THERE[way.dialect], OTHER, b"", b"no JSON"):
        assert run_bounded(refused(way, body)) == body
