"""Every route but the chat's own course: what is read from a request, and what the small routes say."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapters.engine_http.scripted_engine import Received, ScriptedEngine, Visit, answer, eventually, run_bounded
from adapters.raw_client import connected, fetch
from luftpause.core.dialects.pictures import in_tiles_of_512
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, ModelName, RunId, ToolCallId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import IdentityKeys, ServiceClass, TurnOffer
from luftpause.ports.asgi import Message
from luftpause.ports.crew import CrewAwayError
from luftpause.services.dataplane.app import RUNS
from luftpause.services.dataplane.headers import (
    for_client,
    for_engine,
    query_for_engine,
    reframed,
    refusal_headers,
    run_to_echo,
)
from luftpause.services.dataplane.settings import DataplaneSettings
from luftpause.services.dataplane.ways_out import way_out
from luftpause.telemetry.exposition import Counts, Family, Sample
from services.dataplane.door import BODY, CHAT, RUN, chat_bytes, open_door

PARENT = b"x-luftpause-parent"


def engine_that_answers(received: list[Received], *headers: bytes, body: bytes = b"{}") -> ScriptedEngine:
    async def script(visit: Visit) -> None:
        while True:
            received.append(await visit.request())
            lines = b"".join(header + b"\r\n" for header in (b"content-type: application/json", *headers))
            visit.send(answer(body, headers=lines))

    return ScriptedEngine(script)


def test_the_headers_tell_the_scheduler_who_asks() -> None:
    async def main() -> None:
        async with open_door(engine_that_answers([])) as door:
            reply = await door.chat(
                b"x-luftpause-run-id: run 1",
                b"x-luftpause-parent: p1",
                b"x-luftpause-class: batch",
                b"x-luftpause-caller: me",
                body=b'{"model":"m","max_tokens":7,"messages":[{"role":"tool","tool_call_id":"call_1"}]}',
            )
            assert (reply.header(RUN), reply.header(PARENT)) == (b"run 1", b"p1")
            assert door.scheduler.offers == [
                TurnOffer(
                    turn=door.scheduler.offers[0].turn,
                    peer=door.dataplane.peer,
                    model=ModelName("m"),
                    kind=ReplicaKind.GENERATIVE,
                    service_class=ServiceClass.BATCH,
                    caller=CallerId("me"),
                    principal=ANONYMOUS_PRINCIPAL,
                    keys=IdentityKeys(run=RunId("run 1"), parent=RunId("p1")),
                    prompt_bytes=81,
                    reply_max=7,
                )
            ]
            assert door.scheduler.offers[0].turn == f"{door.dataplane.peer}.1"

    run_bounded(main())


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ((b"x-luftpause-parent-call: toolu_1",), IdentityKeys(parent_call=ToolCallId("toolu_1"))),
        ((b"x-luftpause-parent-thread: t-1",), IdentityKeys(parent_session="codex:t-1")),
        ((b"x-luftpause-parent-call: \xc3\xa9", b"x-luftpause-parent-thread: \xff"), IdentityKeys()),
        ((b"x-luftpause-parent-call: " + b"x" * 257,), IdentityKeys()),
    ],
)
def test_a_parent_may_be_named_by_what_began_its_child(headers: tuple[bytes, ...], keys: IdentityKeys) -> None:
    async def main() -> None:
        async with open_door(engine_that_answers([])) as door:
            reply = await door.chat(*headers, body=b'{"model":"m","prompt_cache_key":"k","messages":[]}')
            assert reply.status == 200
            assert replace(door.scheduler.offers[0].keys, cache_key="", said=()) == keys

    run_bounded(main())


def test_an_engine_cannot_make_up_a_parent() -> None:
    async def main() -> None:
        async with open_door(engine_that_answers([], b"x-luftpause-parent: boss")) as door:
            assert (await door.chat()).header(PARENT) is None

    run_bounded(main())


def test_without_headers_a_turn_is_interactive_anonymous_and_known_by_its_tool_calls() -> None:
    async def main() -> None:
        async with open_door(engine_that_answers([])) as door:
            body = b'{"model":"m","messages":[{"role":"tool","tool_call_id":"call_1"}]}'
            reply = await door.chat(body=body)
            offer = door.scheduler.offers[0]
            assert offer.service_class is ServiceClass.INTERACTIVE
            assert offer.caller == "anonymous"
            assert offer.keys == IdentityKeys(tool_calls=(ToolCallId("call_1"),))
            assert (reply.header(RUN), reply.header(PARENT)) == (b"run_minted_1", None)

    run_bounded(main())


def test_a_conversation_is_read_only_where_its_calls_are_not_those_that_were_given_here() -> None:
    calls = b'[{"index":0,"id":"call_1","type":"function","function":{"name":"a","arguments":"{}"}}]'
    said = b'{"choices":[{"index":0,"message":{"tool_calls":%b},"finish_reason":"tool_calls"}]}' % calls

    async def main() -> None:
        async with open_door(engine_that_answers([], body=said)) as door:
            for echoed in (b"call_1", b"call_1", b"own_1"):
                results = b'{"role":"assistant"},{"role":"tool","tool_call_id":"%b"}' % echoed
                await door.chat(body=b'{"model":"m","messages":[{"role":"user","content":"hi"},%b]}' % results)
            assert [bool(offer.keys.said) for offer in door.scheduler.offers] == [True, False, True]

    run_bounded(main())


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"", "anonymous"),
        ("grüße 🌬".encode(), "grüße 🌬"),
        (b"a" * 200, "a" * 128),
        (b"a" * 127 + "ü".encode() + b"b", "a" * 127),
        (b"a" * 126 + "ü".encode() + b"b", "a" * 126 + "ü"),
        (b"\xff\xfe", "anonymous"),
        (b"a\xffb", "ab"),
    ],
)
def test_a_caller_is_cut_at_128_bytes_without_splitting_a_character(sent: bytes, kept: str) -> None:
    async def main() -> None:
        async with open_door(engine_that_answers([])) as door:
            await door.chat(b"x-luftpause-caller: " + sent)
            assert door.scheduler.offers[0].caller == kept

    run_bounded(main())


def test_the_engine_gets_the_clients_headers_less_what_is_not_its_business() -> None:
    received: list[Received] = []

    async def main() -> None:
        async with open_door(engine_that_answers(received)) as door:
            await door.chat(
                b"x-luftpause-run-id: r",
                b"x-luftpause-anything: r",
                b"Authorization: Bearer secret",
                b"x-api-key: secret",
                b"x-goog-api-key: secret",
                b"cookie: secret",
                b"proxy-authorization: secret",
                b"accept-encoding: gzip, br",
                b"connection: keep-alive, x-hop",
                b"x-hop: secret",
                b"te: trailers",
                b"user-agent: harness/1",
                b"traceparent: 00-1-2-03",
                b"accept: text/event-stream",
            )
            names = sorted(name for name, _ in received[0].headers)
            assert names == [
                b"accept",
                b"accept-encoding",
                b"content-length",
                b"content-type",
                b"host",
                b"traceparent",
                b"user-agent",
            ]
            assert received[0].header(b"accept-encoding") == b"identity"
            assert received[0].header(b"host") != b"127.0.0.1"
            assert received[0].line == b"POST /v1/chat/completions HTTP/1.1"
            assert received[0].body == BODY

    run_bounded(main())


def test_the_client_gets_the_engines_headers_less_those_of_its_connection() -> None:
    async def main() -> None:
        extra = (
            b"X-Request-Id: 7",
            b"connection: keep-alive, x-hop",
            b"keep-alive: timeout=5",
            b"x-hop: 1",
            b"server: engine",
            b"set-cookie: session=theirs; path=/",
            b'alt-svc: h3=":443"',
            b"strict-transport-security: max-age=1",
            b'clear-site-data: "*"',
            b"x-luftpause-run-id: theirs",
        )
        async with open_door(engine_that_answers([], *extra)) as door:
            reply = await door.chat()
            assert sorted(reply.headers) == [
                (b"content-length", b"2"),
                (b"content-type", b"application/json"),
                (b"server", b"engine"),
                (b"x-luftpause-run-id", b"run_minted_1"),
                (b"x-request-id", b"7"),
            ]

    run_bounded(main())


def test_a_connection_header_cannot_take_away_what_frames_an_answer() -> None:
    headers = [(b"connection", b"close, content-length"), (b"content-length", b"2"), (b"x", b"1")]

    assert (b"content-length", b"2") in for_client(headers, RunId("r"))
    assert (b"x", b"1") in reframed(headers)
    assert for_engine(headers, dict(headers)) == [(b"x", b"1")]


def test_however_many_connection_headers_there_are_what_they_name_stays_behind() -> None:
    odd = [(b"connection", b"x-%d, close" % number) for number in range(4000)]
    headers = [*odd, (b"connection", b"keep-alive"), (b"x-3999", b"hop"), (b"x", b"1")]

    assert for_engine(headers, dict(headers)) == [(b"x", b"1")]
    assert for_client(headers, RunId("r")) == [(RUN, b"r"), (b"x", b"1")]
    assert reframed(headers) == ((b"x", b"1"),)


def test_models_are_listed() -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"GET", b"/v1/models")
            assert reply.header(b"content-type") == b"application/json"
            listed = json.loads(reply.body)
            assert listed["object"] == "list"
            assert [model["id"] for model in listed["data"]] == ["a", "m"]
            assert all(model["object"] == "model" for model in listed["data"])

    run_bounded(main())


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_one_model_is_told_of_if_it_is_served(method: bytes) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, method, b"/v1/models/m")
            assert reply.status == 200
            if method == b"GET":
                assert json.loads(reply.body) == {"id": "m", "object": "model", "created": 0, "owned_by": "luftpause"}
            for unknown in (b"/v1/models/nope", b"/v1/models/", b"/v1/models/m/x"):
                reply = await fetch(door.url, method, unknown)
                assert reply.status == 404
                assert reply.header(RUN) is not None
            assert (await fetch(door.url, b"DELETE", b"/v1/models/m")).header(b"allow") == b"GET, HEAD"

    run_bounded(main())


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/responses", b"/v1/embeddings"])
def test_what_is_posted_below_openai_is_posted_above_it(path: bytes) -> None:
    async def main() -> None:
        received: list[Received] = []
        async with open_door(engine_that_answers(received)) as door:
            body = b'{"model":"m","input":"hi","messages":[{"role":"user","content":"hi"}]}'
            for asked in (path, b"/openai" + path):
                await fetch(door.url, b"POST", asked + b"?a=1", b"content-type: application/json", body=body)
            plain, below = [(turn.line, turn.body) for turn in received if turn.body != b"{}"]
            assert below == plain
            assert [offer.keys for offer in door.scheduler.offers] == [door.scheduler.offers[0].keys] * 2

    run_bounded(main())


def test_so_is_what_is_asked_for_below_openai() -> None:
    async def main() -> None:
        async with open_door(engine_that_answers([])) as door:
            listed = await fetch(door.url, b"GET", b"/v1/models")
            assert (await fetch(door.url, b"GET", b"/openai/v1/models")).body == listed.body
            refused = await fetch(door.url, b"GET", b"/openai/v1/chat/completions")
            assert (refused.status, refused.header(b"allow")) == (405, b"POST")
            for nowhere in (b"/openai/v1/openai/v1/models", b"/openai/v1/", b"/openai/v1", b"/openai/v1beta/models"):
                assert (await fetch(door.url, b"GET", nowhere)).status == 404, nowhere

    run_bounded(main())


def test_a_client_of_anthropics_is_told_of_models_in_its_shape() -> None:
    """It is known by a header, since its list stands at the very path of OpenAI's."""
    sign = b"anthropic-version: 2099-01-01"

    async def main() -> None:
        async with open_door(settings=DataplaneSettings(link_timeout_s=0.01)) as door:
            listed = json.loads((await fetch(door.url, b"GET", b"/v1/models?limit=20", sign)).body)
            assert [model["id"] for model in listed["data"]] == ["a", "m"]
            assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("a", "m", False)
            one = await fetch(door.url, b"GET", b"/v1/models/m", sign)
            assert json.loads(one.body) == listed["data"][1]
            unknown = await fetch(door.url, b"GET", b"/v1/models/nope", sign)
            assert unknown.status == 404
            assert json.loads(unknown.body)["error"]["type"] == "not_found_error"
            assert "they serve 'a', 'm'" in json.loads(unknown.body)["error"]["message"]
            door.scheduler.away = asyncio.Event()
            away = await fetch(door.url, b"GET", b"/v1/models", sign)
            assert (away.status, json.loads(away.body)["type"]) == (503, "error")

    run_bounded(main())


@pytest.mark.parametrize("sign", [b"x-goog-api-key: x", b"x-goog-api-client: google-genai-sdk/3.6.1 gl-python/3.11.7"])
def test_a_client_of_googles_is_told_of_models_in_its_shape_wherever_it_asks(sign: bytes) -> None:
    """google-genai asks at OpenAI's path, and takes a list in its shape for none at all."""

    async def main() -> None:
        async with open_door() as door:
            for path in (b"/v1/models", b"/v1beta/models"):
                listed = json.loads((await fetch(door.url, b"GET", path + b"?pageSize=2", sign)).body)
                assert [model["name"] for model in listed["models"]] == ["models/a", "models/m"]
                assert json.loads((await fetch(door.url, b"GET", path + b"/m", sign)).body) == listed["models"][1]
                unknown = await fetch(door.url, b"GET", path + b"/nope", sign)
                assert (unknown.status, json.loads(unknown.body)["error"]["status"]) == (404, "NOT_FOUND")

    run_bounded(main())


@pytest.mark.parametrize(
    ("sign", "said"),
    [
        (b"anthropic-version: 2099-01-01", {"type": "not_found_error", "code": "not_found"}),
        (b"x-goog-api-client: google-genai-sdk/3.6.1", {"code": 404, "status": "NOT_FOUND"}),
        (b"user-agent: OpenAI/Python", {"type": "invalid_request_error", "code": "not_found"}),
    ],
)
def test_a_route_that_is_not_there_is_told_in_the_shape_of_whose_client_asks(sign: bytes, said: dict[str, str]) -> None:
    """Files, for one: three dialects have them at one path, and none has them here."""

    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"GET", b"/v1/files", sign)
            assert reply.status == 404
            error = json.loads(reply.body)["error"]
            assert error.pop("message").startswith("there is no route '/v1/files' here")
            assert error == said

    run_bounded(main())


def test_a_run_is_ended() -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"DELETE", b"/v1/runs/known")
            assert (reply.status, reply.header(RUN)) == (204, b"known")
            reply = await fetch(door.url, b"DELETE", b"/v1/runs/a%20b")
            assert reply.status == 404
            assert json.loads(reply.body)["error"]["message"] == "there is no run 'a b'"
            assert door.scheduler.ended == ["known", "a b"]
            for bad in (b"/v1/runs/", b"/v1/runs/%C3%BC", RUNS.encode() + b"r" * 129, b"/v1/runs/a%0Ab"):
                assert (await fetch(door.url, b"DELETE", bad)).status == 404
            assert len(door.scheduler.ended) == 2

    run_bounded(main())


def test_questions_do_not_wait_for_ever_for_a_scheduler_that_is_away() -> None:
    async def main() -> None:
        async with open_door(settings=DataplaneSettings(link_timeout_s=0.01)) as door:
            door.scheduler.away = asyncio.Event()
            for method, path in ((b"GET", b"/v1/models"), (b"GET", b"/v1/models/m"), (b"DELETE", b"/v1/runs/known")):
                reply = await fetch(door.url, method, path)
                assert reply.status == 503
                assert json.loads(reply.body)["error"]["code"] == "scheduler_away"

    run_bounded(main())


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("path", [b"/", b"/api/hello", b"/health", b"/v1/models", b"/metrics"])
def test_small_routes_answer(path: bytes, method: bytes) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, method, path, b"x-luftpause-run-id: r7")
            assert reply.status == 200
            assert reply.header(RUN) == b"r7"
            assert int(reply.header(b"content-length") or 0) > 0

    run_bounded(main())


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        (b"GET", CHAT, 405, b"POST"),
        (b"POST", b"/v1/models", 405, b"GET, HEAD"),
        (b"GET", b"/v1/runs/r", 405, b"DELETE"),
        (b"OPTIONS", b"/health", 405, b"GET, HEAD"),
        (b"GET", b"/v1/nothing", 404, None),
        (b"POST", b"/v1/chat/completions/", 404, None),
        (b"GET", b"/v1/models/", 404, None),
        (b"GET", b"/v1beta/models/", 404, None),
        (b"POST", b"//models/" + b"x" * 3000 + b":generateContent", 404, None),
        (b"GET", b"/" + b"x" * 3000, 404, None),
    ],
)
def test_other_routes_and_methods_are_named(method: bytes, path: bytes, status: int, allow: bytes | None) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, method, path)
            assert reply.status == status
            assert reply.header(b"allow") == allow
            text = json.loads(reply.body)["error"]["message"]
            assert path[:100].decode() in text
            assert len(text) < 300
            assert status != 404 or f"here: {way_out(path.decode())}" in text
            assert (reply.header(RUN) or b"").startswith(b"run_")

    run_bounded(main())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [(b"GET", b"/v1/messages", 405), (b"POST", b"/v1/messages/batches", 404), (b"POST", b"/v1/messages", 415)],
)
def test_what_goes_wrong_where_messages_are_spoken_is_told_as_there(method: bytes, path: bytes, status: int) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, method, path)
            assert reply.status == status
            assert json.loads(reply.body)["type"] == "error"

    run_bounded(main())


def test_a_broken_head_is_refused_in_the_dialect_of_its_path() -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"POST", b"/v1/messages?beta=true", b"x: a\0b")
            assert reply.status == 400
            assert json.loads(reply.body)["type"] == "error"

    run_bounded(main())


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (b"/v1/v1/messages", lambda body: body["type"] == "error"),
        (b"/v1/v1/messages/count_tokens", lambda body: body["type"] == "error"),
        (b"/v1/v1beta/models/m:generateContent", lambda body: body["error"]["status"] == "NOT_FOUND"),
        (b"/v1beta/v1beta/models/m:generateContent", lambda body: body["error"]["status"] == "NOT_FOUND"),
    ],
)
def test_a_base_url_that_names_the_version_twice_is_told_so_in_its_clients_shape(
    path: bytes, told: Callable[[Any], bool]
) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"POST", path, b"content-length: 0")
            assert reply.status == 404
            assert told(json.loads(reply.body))
            assert "adds the version to its base URL by itself" in json.loads(reply.body)["error"]["message"]

    run_bounded(main())


@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_who_looks_for_mcp_is_told_where_it_is(method: bytes) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, method, b"/mcp")
            assert reply.status == 404
            assert "MCP is spoken at the runtime's own address" in json.loads(reply.body)["error"]["message"]

    run_bounded(main())


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        (b"", b""),
        (b"beta=true", b"beta=true"),
        (b"key=secret", b""),
        (b"alt=sse&key=secret&x=%20", b"alt=sse&x=%20"),
        (b"k%65y=secret&keys=1&monkey=2&", b"keys=1&monkey=2&"),
    ],
)
def test_a_query_goes_on_without_its_key(query: bytes, sent: bytes) -> None:
    assert query_for_engine(query) == sent


def test_metrics_count_requests_and_times_by_class() -> None:
    async def main() -> None:
        async with open_door(engine_that_answers([])) as door:
            await door.chat()
            await door.chat(b"x-luftpause-class: batch")
            await door.chat(body=b"no json")
            door.scheduler.hold = True
            async with connected(door.url) as client:
                client.send(chat_bytes())
                await eventually(lambda: len(door.dataplane.open_turns) == 1)
                open_now = (await fetch(door.url, b"GET", b"/metrics")).body.decode()
            await eventually(lambda: len(door.dataplane.open_turns) == 0)
            text = (await fetch(door.url, b"GET", b"/metrics")).body.decode()
        assert "luftpause_dataplane_open_turns 1.0" in open_now
        assert "luftpause_dataplane_open_turns 0.0" in text
        for line in (
            'luftpause_dataplane_requests_total{class="interactive",status="200"} 1.0',
            'luftpause_dataplane_requests_total{class="batch",status="200"} 1.0',
            'luftpause_dataplane_requests_total{class="",status="400"} 1.0',
            'luftpause_dataplane_requests_total{class="interactive",status="gone"} 1.0',
            'luftpause_dataplane_first_byte_seconds_count{class="interactive"} 1.0',
            'luftpause_dataplane_held_seconds_count{class="batch"} 1.0',
        ):
            assert line in text, line

    run_bounded(main())


def test_open_turns_are_renewed_from_start_to_close() -> None:
    async def main() -> None:
        async with open_door(settings=DataplaneSettings(renew_period_s=0.005)) as door:
            door.scheduler.hold = True
            async with connected(door.url) as client:
                client.send(chat_bytes())
                await eventually(lambda: any(type(r).__name__ == "TurnsRenewed" for r in door.scheduler.reports))

    run_bounded(main())


def test_peers_are_told_apart() -> None:
    async def main() -> None:
        async with open_door() as one, open_door() as other:
            assert one.dataplane.peer != other.dataplane.peer

    run_bounded(main())


def test_a_run_id_that_is_not_given_is_minted_each_time() -> None:
    assert run_to_echo({}) != run_to_echo({})
    assert len(run_to_echo({})) >= len("run_") + 21
    assert dict(refusal_headers([(RUN, b"mine")])) == {RUN: b"mine"}


async def no_receive() -> Message:
    raise AssertionError("nothing is read")


async def no_send(message: Message) -> None:
    raise AssertionError("nothing is said")


def test_only_http_is_spoken() -> None:
    async def main() -> None:
        async with open_door() as door:
            with pytest.raises(ValueError, match="websocket"):
                await door.dataplane({"type": "websocket"}, no_receive, no_send)

    run_bounded(main())


def test_gemini_clients_are_told_of_models_in_their_shape() -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"GET", b"/v1beta/models?pageSize=1&key=x")
            assert [model["name"] for model in json.loads(reply.body)["models"]] == ["models/a", "models/m"]
            one = await fetch(door.url, b"GET", b"/v1beta/models/%6D")
            assert json.loads(one.body) == json.loads(reply.body)["models"][1]
            for path in (b"/v1beta/models/none", b"/v1beta/models/m:unknown"):
                missing = await fetch(door.url, b"GET", path)
                error = json.loads(missing.body)["error"]
                assert (missing.status, error["status"]) == (404, "NOT_FOUND")
                assert "they serve 'a', 'm'; ask for one of these" in error["message"]
            door.scheduler.away = asyncio.Event()
            assert (await fetch(door.url, b"POST", b"/v1beta/models", b"content-length: 0")).status == 405
            verb = await fetch(door.url, b"POST", b"/v1beta/models/m:embedContent", b"content-length: 0")
            assert (verb.status, json.loads(verb.body)["error"]["status"]) == (404, "NOT_FOUND")

    run_bounded(main())


@pytest.mark.parametrize("path", [b"/v1/responses", b"/v1/chat/completions"])
def test_who_wants_a_websocket_is_told_at_once_to_do_without(path: bytes) -> None:
    offer = (
        b"connection: Upgrade",
        b"upgrade: websocket",
        b"sec-websocket-version: 13",
        b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
        b"openai-beta: responses_websockets=2026-02-06",
    )

    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"GET", path, *offer)
            assert (reply.status, reply.header(b"upgrade")) == (426, b"HTTP/1.1")
            assert json.loads(reply.body)["error"]["code"] == "no_websocket"
            assert "post to it" in json.loads(reply.body)["error"]["message"]
            assert (await fetch(door.url, b"GET", path)).status == 405
            assert (await fetch(door.url, b"GET", b"/v1/nothing", *offer)).status == 404
            await door.still_answers()

    run_bounded(main())


class PlayedCrew:
    """One other worker, which has counted nothing but itself."""

    def __init__(self) -> None:
        self.own: Callable[[], Counts] = tuple
        self.away = False

    def shows(self, own: Callable[[], Counts]) -> None:
        self.own = own

    async def counts(self) -> Counts:
        if self.away:
            raise CrewAwayError("the other workers cannot be asked")
        return (*self.own(), Family("others", "", "counter", (Sample("others_total", (), 1.0),)))


def test_a_worker_among_others_shows_what_all_counted_or_says_that_it_cannot() -> None:
    crew = PlayedCrew()

    async def main() -> None:
        async with open_door(engine_that_answers([]), crew=crew) as door:
            await door.chat()
            text = (await fetch(door.url, b"GET", b"/metrics")).body.decode()
            assert 'luftpause_dataplane_requests_total{class="interactive",status="200"} 1.0' in text
            assert "others_total 1.0" in text
            crew.away = True
            answer = await fetch(door.url, b"GET", b"/metrics")
            assert (answer.status, b"cannot be asked" in answer.body) == (500, True)

    run_bounded(main())


@pytest.mark.parametrize("measures", [True, False])
def test_an_offer_tells_what_of_its_body_is_pictures_and_what_they_come_to_where_that_matters(measures: bool) -> None:
    picture = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8) + (512).to_bytes(4, "big") * 2 + bytes(30_000)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [part]}]}).encode()

    async def main() -> None:
        settings = DataplaneSettings(measures_pictures=measures)
        async with open_door(engine_that_answers([]), settings=settings) as door:
            assert (await door.chat(body=body)).status == 200
            (offer,) = door.scheduler.offers
            told = offer.prompt_bytes, offer.picture_bytes, offer.picture_tokens
            found = (len(picture), in_tiles_of_512(512, 512)) if measures else (0, 0)
            assert told == (len(body), *found)

    run_bounded(main())
