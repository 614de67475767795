"""Files in a conversation, at engines that read none: text goes on as text, the rest is refused with the way out."""

import json
from base64 import b64encode
from typing import Any

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, run_bounded
from adapters.raw_client import connected, request
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.events import TurnFailed
from services.dataplane.door import JSON, open_door
from services.dataplane.ways import Way, encoded, told

TEXT = b64encode(b"swordfish").decode()
PDF = b64encode(b"%PDF-1.4").decode()
REFUSAL = answer(b'{"error":{"message":"unsupported content[].type"}}', status=b"400 Bad Request")
WAY_OUT = "this model's engine reads no files: send the file's text, or its pages as pictures"


def asked(way: Way, media_type: str, data: str) -> bytes:
    """Return a request with a file in the words of a way's dialect."""
    url = f"data:{media_type};base64,{data}"
    document = {"type": "document", "source": {"type": "base64", "media_type": media_type, "data": data}}
    parts: dict[str, dict[str, Any]] = {
        "chat": {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": url}}]}]},
        "messages": {"messages": [{"role": "user", "content": [document]}], "max_tokens": 9},
        "responses": {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": url}]}]},
        "gemini": {"contents": [{"parts": [{"inlineData": {"mimeType": media_type, "data": data}}]}]},
    }
    return request(
        b"POST", way.path.encode(), JSON, body=encoded({"model": "m", "stream": way.stream, **parts[way.dialect]})
    )


def ways(*dialects: str, native: bool) -> list[Way]:
    paths = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
    gemini = {True: "/v1beta/models/m:streamGenerateContent?alt=sse", False: "/v1beta/models/m:generateContent"}
    return [
        Way(dialect, paths.get(dialect, gemini[stream]), stream=stream, native=native)
        for dialect in dialects
        for stream in (True, False)
    ]


def each(found: list[Way]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", found, ids=lambda way: way.name)


NATIVE = ways("messages", "responses", native=True)
COMPUTING = (EngineKind.LLAMA_CPP, EngineKind.VLLM, EngineKind.SGLANG, EngineKind.OLLAMA)


def keeping(kept: list[Any], reply: bytes = REFUSAL) -> ScriptedEngine:
    async def script(visit: Visit) -> None:
        while True:
            received = await visit.request()
            kept.append((received.line.split()[1].decode(), json.loads(received.body)))
            visit.send(reply)

    return ScriptedEngine(script)


@each([*NATIVE, *ways("messages", "responses", "gemini", native=False)])
@pytest.mark.parametrize("engine", COMPUTING, ids=lambda engine: engine.value)
def test_a_file_that_is_text_is_said_as_text(way: Way, engine: EngineKind) -> None:
    """Also where the engine speaks the dialect: llama-server would leave it out without a word."""

    async def main() -> None:
        kept: list[Any] = []
        async with open_door(keeping(kept)) as door, connected(door.url) as client:
            way.at(door)
            door.scheduler.engine_kind = engine
            client.send(asked(way, "text/plain", TEXT))
            await client.reply()
        [(path, body)] = kept
        assert path == "/v1/chat/completions"
        assert body["messages"] == [{"role": "user", "content": "swordfish"}]

    run_bounded(main())


@each([*NATIVE, *ways("messages", "responses", "gemini", native=False)])
def test_another_file_is_refused_before_any_engine_is_asked(way: Way) -> None:
    async def main() -> None:
        kept: list[Any] = []
        async with open_door(keeping(kept)) as door, connected(door.url) as client:
            way.at(door)
            door.scheduler.engine_kind = EngineKind.LLAMA_CPP
            client.send(asked(way, "application/pdf", PDF))
            reply = await client.reply()
            assert reply.status == 400
            assert f"a file of type 'application/pdf', and {WAY_OUT}" in told(way, reply.body)["message"]
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFailed)
        assert kept == []

    run_bounded(main())


@each(ways("chat", native=True))
def test_a_chats_file_goes_on_as_it_is_and_the_engines_refusal_gets_the_way_out(way: Way) -> None:
    """A later engine may read it."""

    async def main() -> None:
        for engine, status in ((EngineKind.LLAMA_CPP, b"400"), (EngineKind.VLLM, b"422")):
            kept: list[Any] = []
            refusal = REFUSAL.replace(b"400", status)
            async with open_door(keeping(kept, refusal)) as door, connected(door.url) as client:
                door.scheduler.engine_kind = engine
                client.send(asked(way, "application/pdf", PDF))
                reply = await client.reply()
                assert reply.status == 400
                message = told(way, reply.body)["message"]
                assert message.startswith("engine a: unsupported content[].type (`messages[0]` holds a file of type")
                assert WAY_OUT in message
            assert kept[0][1]["messages"][0]["content"][0]["type"] == "file"

    run_bounded(main())


@each([*NATIVE, *ways("chat", native=True)])
def test_a_provider_gets_every_file_as_it_is_and_its_refusals_are_its_own(way: Way) -> None:
    async def main() -> None:
        kept: list[Any] = []
        async with open_door(keeping(kept)) as door, connected(door.url) as client:
            way.at(door)
            door.scheduler.engine_kind = EngineKind.OPENAI
            client.send(asked(way, "application/pdf", PDF))
            reply = await client.reply()
            assert (reply.status, json.loads(reply.body)["error"]["message"]) == (400, "unsupported content[].type")
        assert PDF in json.dumps(kept)
        assert kept[0][0] == way.path

    run_bounded(main())


@pytest.mark.parametrize("native", [True, False])
def test_tokens_of_a_file_are_counted_as_it_is_said(native: bool) -> None:
    async def main() -> None:
        kept: list[Any] = []
        count = Way("messages", "/v1/messages/count_tokens", stream=False, native=native)
        async with open_door(keeping(kept, answer(b'{"input_tokens":3}'))) as door, connected(door.url) as client:
            count.at(door)
            door.scheduler.engine_kind = EngineKind.LLAMA_CPP
            client.send(asked(count, "text/plain", TEXT))
            assert json.loads((await client.reply()).body) == {"input_tokens": 3}
        assert kept[0][0] == "/v1/chat/completions/input_tokens"
        assert kept[0][1]["messages"] == [{"role": "user", "content": "swordfish"}]

    run_bounded(main())
