"""What is refused, or left out and told, in the words of each dialect."""

import gzip
import json

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, run_bounded
from adapters.raw_client import fetch
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.model.replicas import EngineKind
from luftpause.services.dataplane.routes import error_at
from services.dataplane.door import BODY, JSON, open_door

EVERY_PATH = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models/m:generateContent", "/v1/decide")


@pytest.mark.parametrize("path", EVERY_PATH)
def test_a_compressed_body_is_a_415_in_the_words_of_the_dialect(path: str) -> None:
    async def main() -> None:
        async with open_door() as door:
            packed = gzip.compress(BODY)
            reply = await fetch(door.url, b"POST", path.encode(), JSON, b"content-encoding: gzip", body=packed)
            assert reply.status == 415
            assert reply.body == error_at(
                path,
                Failure(code=FailureCode.UNSUPPORTED_MEDIA_TYPE, message=json.loads(reply.body)["error"]["message"]),
            )
            assert "content-encoding is 'gzip'" in json.loads(reply.body)["error"]["message"]
            await door.still_answers()

    run_bounded(main())


UNSEEN = b'{"error":{"code":500,"message":"image input is not supported - hint: mmproj","type":"server_error"}}'
JSON_TYPE = b"content-type: application/json\r\n"
BODIES = {
    "/v1/messages": b'{"model":"m","max_tokens":9,"stream":%b,"messages":[{"role":"user","content":"hi"}]}',
    "/v1/responses": b'{"model":"m","stream":%b,"input":"hi"}',
    "/v1beta/models/m:generateContent": b'{"contents":[{"parts":[{"text":"hi"}]}],"x":%b}',
    "/v1/chat/completions": b'{"model":"m","stream":%b,"messages":[{"role":"user","content":"hi"}]}',
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [b"true", b"false"])
@pytest.mark.parametrize("kind", [EngineKind.LLAMA_CPP, EngineKind.AUTO])
def test_an_image_at_an_engine_that_sees_none_is_the_clients_fault(path: str, stream: bytes, kind: EngineKind) -> None:
    """A 500 would be tried again and again."""

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(UNSEEN, status=b"500 Internal Server Error", headers=JSON_TYPE))
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.engine_kind = kind
            reply = await fetch(door.url, b"POST", path.encode(), JSON, body=BODIES[path] % stream)
            said = "engine a: image input is not supported - hint: mmproj"
            failure = Failure(code=FailureCode.BAD_REQUEST, message=said)
            assert (reply.status, reply.body) == (400, error_at(path, failure))
            assert door.scheduler.kinds == ["TurnFailed"]
            await door.still_answers()

    run_bounded(main())


@pytest.mark.parametrize("size", [3, 70_000])
def test_any_other_500_passes_unchanged(size: int) -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(b"x" * size, status=b"500 Oh", headers=b"x-engine: yes\r\n"))
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            reply = await door.chat()
            assert (reply.status, reply.body, reply.header(b"x-engine")) == (500, b"x" * size, b"yes")
            assert door.scheduler.kinds == ["TurnFailed"]

    run_bounded(main())


SEARCH = b'"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"look","input_schema":{}}]'


@pytest.mark.parametrize("stream", [b"true", b"false"])
def test_a_tool_of_the_providers_is_left_out_and_that_is_told(stream: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def script(visit: Visit) -> None:
        while True:
            tools = json.loads((await visit.request()).body)["tools"]
            assert [tool["function"]["name"] for tool in tools] == ["look"]
            done = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'
            chunk = b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
            visit.send(chunked(chunk) if stream == b"true" else answer(done, headers=JSON_TYPE))

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            body = (BODIES["/v1/messages"] % stream)[:-1] + b"," + SEARCH + b"}"
            with caplog.at_level("INFO"):
                for _ in range(2):
                    reply = await fetch(door.url, b"POST", b"/v1/messages", JSON, body=body)
                    assert (reply.status, reply.header(b"x-luftpause-left-out")) == (200, b"web_search")
            assert [record.message for record in caplog.records].count("tools_left_out") == 1
            metrics = (await fetch(door.url, b"GET", b"/metrics")).body
            assert b'luftpause_dataplane_tools_left_out_total{tool="web_search"} 2.0' in metrics
            plain = await fetch(
                door.url, b"POST", b"/v1/messages", JSON, body=body.replace(b"web_search_2025", b"bash_2025")
            )
            assert plain.status == 400

    run_bounded(main())
