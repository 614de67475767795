import json

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, run_bounded
from adapters.raw_client import connected, fetch, request
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.services.dataplane.routes import TURN_ROUTES, dialect_for, error_at
from luftpause.services.dataplane.settings import DataplaneSettings
from services.dataplane.door import JSON, open_door


@pytest.mark.parametrize(
    ("path", "name"), [("/v1/chat/completions", "chat"), ("/v1/messages", "messages"), ("/v1/responses", "responses")]
)
def test_each_dialect_has_its_path(path: str, name: str) -> None:
    dialect = dialect_for(path)
    assert dialect is not None
    assert dialect.name == name
    assert path in TURN_ROUTES


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/messages/", "/v1/models", "/chat/completions"])
def test_elsewhere_no_turns_are_asked_for(path: str) -> None:
    assert dialect_for(path) is None


@pytest.mark.parametrize("path", ["/v1beta/models/a/b:8b:streamGenerateContent", "/v1/models/m:generateContent"])
def test_gemini_is_known_by_the_form_of_its_path_and_answers_in_the_form_that_the_query_asks_for(path: str) -> None:
    events, array = dialect_for(path, b"alt=sse&key=x"), dialect_for(path)
    assert events is not None
    assert array is not None
    assert (events.name, events.stream_type) == ("gemini", b"text/event-stream")
    assert (array.name, array.stream_type) == ("gemini", b"application/json")


ASKED = b'{"contents":[{"parts":[{"text":"hi"}]}]}'
CHUNK = b'data: {"id":"c","model":"e","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
KEY = b"x-goog-api-key: secret"


@pytest.mark.parametrize(
    ("query", "kind"), [(b"?alt=sse&key=secret", b"text/event-stream"), (b"?key=secret", b"application/json")]
)
def test_a_gemini_turn_is_asked_in_chat_completions_and_told_in_its_own_form(query: bytes, kind: bytes) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            asked = await visit.request()
            assert asked.line == b"POST /v1/chat/completions HTTP/1.1"
            assert asked.header(b"x-goog-api-key") is None
            assert json.loads(asked.body)["model"] == "m"
            visit.send(chunked(CHUNK, b"data: [DONE]\n\n"))

        async with open_door(ScriptedEngine(script)) as door:
            path = b"/v1beta/models/%6D:streamGenerateContent" + query
            reply = await fetch(door.url, b"POST", path, JSON, KEY, body=ASKED)
            assert (reply.status, reply.header(b"content-type")) == (200, kind)
            assert b'"text":"hi"' in reply.body
            assert isinstance(door.scheduler.endings[0], TurnFinished)

    run_bounded(main())


@pytest.mark.parametrize(
    ("query", "client_name", "sign"),
    [
        (b"?alt=sse", b"google-genai-sdk/2.32.0 gl-node/v22", b"\n"),
        (b"?alt=sse", b"genai-js/0.24.1", b"data: {}\n\n"),
        (b"?alt=sse", b"langchain-js/1.0 genai-js/0.24.1", b"data: {}\n\n"),
        (b"?alt=sse", b"genkit-node/1.42.0 gl-node/22.23.3", b"data: {}\n\n"),
        (b"", b"genai-js/0.24.1", b"\n"),
    ],
    ids=["events", "events-alone", "events-alone-below-another", "events-alone-of-genkit", "array"],
)
def test_a_held_gemini_turn_is_shown_signs_of_life_that_its_clients_can_read(
    query: bytes, client_name: bytes, sign: bytes
) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"{}", status=b"500 Oh"))

        settings = DataplaneSettings(keepalive_after_s=0.01, keepalive_s=0.01)
        async with open_door(ScriptedEngine(script), settings=settings) as door, connected(door.url) as client:
            door.scheduler.hold = True
            path = b"/v1/models/m:streamGenerateContent" + query
            who = b"x-goog-api-client: " + client_name
            client.send(request(b"POST", path, JSON, who, b"content-length: %d" % len(ASKED)) + ASKED)
            assert (await client.head()).status == 200
            assert await client.chunk() == sign
            door.scheduler.place()
            rest, is_broken = await client.rest()
            document = json.loads(rest.replace(sign, b""))
            told = document if query else document[0]
            assert told["error"]["code"] == 502
            assert is_broken == bool(query)

    run_bounded(main())


FAULT = b'data: {"choices":[{"index":0,"delta":{"content":"h"}}]}\n\ndata: {"error":{"message":"out of memory"}}\n\n'


@pytest.mark.parametrize(
    ("path", "body", "is_cut"),
    [
        (b"/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": [{"parts": [{"text": "hi"}]}]}, True),
        (b"/v1beta/models/m:streamGenerateContent", {"contents": [{"parts": [{"text": "hi"}]}]}, False),
        (b"/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}, False),
        (b"/v1/responses", {"input": "hi"}, False),
    ],
    ids=["gemini-events", "gemini-array", "messages", "responses"],
)
def test_a_failure_that_clients_may_pass_over_is_cut_off_behind(
    path: bytes, body: dict[str, object], is_cut: bool
) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            while True:
                asked = await visit.request()
                visit.send(chunked(FAULT) if b"/chat/" in asked.line else answer(b"{}", status=b"404 No"))

        async with open_door(ScriptedEngine(script)) as door:
            asked = json.dumps({"model": "m", "stream": True, **body}).encode()
            reply = await fetch(door.url, b"POST", path, JSON, body=asked)
            assert reply.status == 200
            assert b"out of memory" in reply.body
            assert reply.broken == is_cut
            assert isinstance(door.scheduler.endings[-1], TurnFailed)

    run_bounded(main())


def test_a_gemini_client_is_refused_in_its_own_shape() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            raise AssertionError("no engine is asked")

        async with open_door(ScriptedEngine(script)) as door:
            for path, body, status in (
                (b"/v1/models/m:generateContent", b"[]", 400),
                (b"/v1/models/:generateContent", ASKED, 400),
                (b"/v1/models/m:generateContent", b'{"contents":[],"cachedContent":"x"}', 400),
            ):
                reply = await fetch(door.url, b"POST", path, JSON, body=body)
                error = json.loads(reply.body)["error"]
                assert (reply.status, error["code"], error["status"]) == (status, status, "INVALID_ARGUMENT")
            reply = await fetch(door.url, b"GET", b"/v1/models/m:generateContent")
            assert (reply.status, reply.header(b"allow")) == (405, b"POST")

    run_bounded(main())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/decide", "decide"),
        ("/v1/completions", "completions"),
        ("/v1/embeddings", "embeddings"),
        ("/v1/rerank", "rerank"),
        ("/rerank", "rerank"),
        ("/tokenize", "tokenize"),
        ("/detokenize", "tokenize"),
        ("/v1/messages/count_tokens", "count_tokens"),
    ],
)
def test_what_stands_alone_has_its_path_too_and_is_not_named_as_a_conversation(path: str, name: str) -> None:
    dialect = dialect_for(path)
    assert dialect is not None
    assert dialect.name == name
    assert path not in TURN_ROUTES


@pytest.mark.parametrize(
    ("path", "as_in_messages"),
    [
        ("/v1/messages", True),
        ("/v1/messages/count_tokens", True),
        ("/v1/messages/batches/x", True),
        ("/v1/responses/resp_1", False),
        ("/v1/messagesx", False),
        ("/v1/models", False),
        ("/v1/models/llama3.2:1b", False),
        ("/v1/models/m:Q4_K_M", False),
        ("/v1/models/m:latest", False),
        ("/v1/models/predict", False),
        ("", False),
    ],
)
def test_a_failure_is_told_in_the_dialect_of_its_path(path: str, as_in_messages: bool) -> None:
    told = json.loads(error_at(path, Failure(code=FailureCode.UNAUTHORIZED, message="no")))
    assert ("type" in told) is as_in_messages
    assert told["error"]["type"] == "authentication_error"
    assert told["error"]["message"] == "no"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/m:generateContent",
        "/v1beta/models/m:countTokens",
        "/v1beta/models",
        "/v1beta/cachedContents",
        "/v1/models/m:embedContent",
        "/v1/models/a/b:1:batchEmbedContents",
        "/models/m:streamGenerateContent",
        "/v1alpha/models/m:generateContent",
        "/v1/publishers/google/models/m:predict",
        "/v1/models/m\n:predictLongRunning",
    ],
)
def test_a_failure_below_geminis_paths_is_told_as_gemini_tells_it(path: str) -> None:
    told = json.loads(error_at(path, Failure(code=FailureCode.UNAUTHORIZED, message="no")))
    assert told == {"error": {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}}
