"""Requests that stand alone, through the whole door: how they are offered, what engines get, what clients get."""

import json
from collections.abc import Awaitable, Callable

import pytest

from adapters.engine_http.scripted_engine import Received, ScriptedEngine, Visit, answer, chunked, run_bounded
from adapters.raw_client import Reply, fetch
from luftpause.core.model.replicas import EngineKind, ReplicaKind
from luftpause.core.model.turns import TurnShape, Usage
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from services.dataplane.door import JSON, RUN, Door, open_door

ALONE, ERRAND = TurnShape.ALONE, TurnShape.ERRAND
GENERATIVE, SINGLE_PASS = ReplicaKind.GENERATIVE, ReplicaKind.SINGLE_PASS
DECIDE = b"/v1/decide"
LABELLED = b'{"input":"it rings","model":"m","labels":["urgent","lookup"]}'
SCORED = b'{"token":" B","logprob":-0.1,"top_logprobs":[{"token":" B","logprob":-0.1},{"token":"A","logprob":-2.5}]}'
CHOICE = b'{"index":0,"message":{"content":" B"},"logprobs":{"content":[%b]},"finish_reason":"length"}' % SCORED
USAGE = b'{"prompt_tokens":9,"completion_tokens":1}'
DECIDED = b'{"model":"m-1","choices":[%b],"usage":%b}' % (CHOICE, USAGE)


def engine_saying(received: list[Received], *raw: bytes) -> ScriptedEngine:
    """Return an engine that says one thing after another."""
    to_say = iter(raw)

    async def script(visit: Visit) -> None:
        while True:
            received.append(await visit.request())
            visit.send(next(to_say))

    return ScriptedEngine(script)


def told(body: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> bytes:
    return answer(body, status=status, headers=headers + b"content-type: application/json\r\n")


async def post(door: Door, path: bytes, body: bytes, *headers: bytes) -> Reply:
    return await fetch(door.url, b"POST", path, JSON, *headers, body=body)


def through(received: list[Received], *raw: bytes, story: Callable[[Door], Awaitable[None]]) -> None:
    async def main() -> None:
        async with open_door(engine_saying(received, *raw)) as door:
            await story(door)

    run_bounded(main())


@pytest.mark.parametrize(
    ("path", "body", "kind", "shape", "model"),
    [
        (b"/v1/completions", b'{"model":"m","prompt":"x"}', GENERATIVE, ALONE, "m"),
        (b"/v1/embeddings", b'{"model":"m","input":["x"]}', None, ALONE, "m"),
        (b"/v1/rerank", b'{"model":"m","query":"x","documents":[]}', None, ALONE, "m"),
        (b"/rerank", b'{"model":"m","query":"x","documents":[]}', None, ALONE, "m"),
        (b"/tokenize", b'{ "content":"x" }', None, ERRAND, ""),
        (b"/detokenize?x=1", b'{"model":"m","tokens":[1]}', None, ERRAND, "m"),
    ],
)
def test_what_passes_is_offered_as_what_it_is_and_passes_byte_for_byte(
    path: bytes, body: bytes, kind: ReplicaKind | None, shape: TurnShape, model: str
) -> None:
    received: list[Received] = []
    said = b'{ "data" : [1.0], "usage":{"prompt_tokens":3,"total_tokens":3} }'

    async def story(door: Door) -> None:
        reply = await post(door, path, body, b"x-luftpause-run-id: mine", b"x-luftpause-class: batch")
        assert (reply.status, reply.body, reply.header(RUN)) == (200, said, b"mine")
        assert reply.header(b"x-engine") == b"yes"
        assert received[0].line == b"POST " + path + b" HTTP/1.1"
        assert received[0].body == body
        offer = door.scheduler.offers[0]
        assert (offer.kind, offer.shape, offer.model, offer.keys.run) == (kind, shape, model, "mine")
        assert offer.service_class.value == "batch"
        ending = door.scheduler.endings[0]
        assert isinstance(ending, TurnFinished)
        assert ending.usage == Usage(prompt_tokens=3, completion_tokens=0)

    through(received, told(said, headers=b"x-engine: yes\r\n"), story=story)


def test_a_streamed_completion_passes_piece_by_piece_and_is_looked_at() -> None:
    events = (
        b'data: {"choices":[{"index":0,"text":"on","finish_reason":null}]}\n\n',
        b'data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":%b}\n\n' % USAGE,
        b"data: [DONE]\n\n",
    )

    async def story(door: Door) -> None:
        reply = await post(door, b"/v1/completions", b'{"model":"m","prompt":"x","stream":true}')
        assert reply.body == b"".join(events)
        ending = door.scheduler.endings[0]
        assert isinstance(ending, TurnFinished)
        assert (ending.finish, ending.usage) == ("stop", Usage(prompt_tokens=9, completion_tokens=1))
        assert door.scheduler.kinds == ["FirstTokenSeen", "TurnFinished"]

    through([], chunked(*events), story=story)


def test_without_labels_a_classifier_gets_the_bytes_and_its_answer_passes() -> None:
    received: list[Received] = []
    body, said = b'{ "input":["a","b"], "model":"m" }', b'{ "object":"list","data":[{"index":0,"label":"urgent"}] }'

    async def story(door: Door) -> None:
        reply = await post(door, DECIDE, body)
        assert (reply.status, reply.body) == (200, said)
        assert reply.header(RUN) == b"run_minted_1"
        assert (received[0].line, received[0].body) == (b"POST /classify HTTP/1.1", body)
        offer = door.scheduler.offers[0]
        assert (offer.kind, offer.shape) == (SINGLE_PASS, ALONE)

    through(received, told(said), story=story)


def test_a_classifier_that_was_found_without_a_name_is_told_its_name() -> None:
    received: list[Received] = []

    async def story(door: Door) -> None:
        assert (await post(door, DECIDE, b'{"input":"a"}')).status == 200
        assert door.scheduler.offers[0].model == ""
        assert received[0].body == b'{"input":"a","model":"m"}'

    through(received, told(b"{}"), story=story)


@pytest.mark.parametrize("engine", [EngineKind.VLLM, EngineKind.LLAMA_CPP])
def test_with_labels_one_token_is_asked_for_and_scored(engine: EngineKind) -> None:
    received: list[Received] = []
    event = b'data: {"model":"m-1","choices":[%b],"usage":%b}\n\n' % (CHOICE.replace(b"message", b"delta"), USAGE)
    whole, streamed = told(DECIDED), chunked(event, b"data: [DONE]\n\n")

    async def story(door: Door) -> None:
        door.scheduler.engine_kind = engine
        reply = await post(door, DECIDE, LABELLED, b"x-luftpause-run-id: mine")
        assert reply.status == 200, reply.body
        decided = json.loads(reply.body)
        assert list(decided) == ["label", "probabilities", "unscored", "model", "usage"]
        assert decided["label"] == "lookup"
        assert decided["probabilities"]["lookup"] == pytest.approx(0.9168, abs=1e-3)
        assert (decided["unscored"], decided["model"]) == ([], "m-1")
        assert decided["usage"] == json.loads(USAGE)
        assert reply.header(RUN) == b"mine"
        assert reply.header(b"content-type") == b"application/json"
        assert received[0].line == b"POST /v1/chat/completions HTTP/1.1"
        asked = json.loads(received[0].body)
        assert (asked["max_tokens"], asked["stream"]) == (1, engine is EngineKind.LLAMA_CPP)
        offer = door.scheduler.offers[0]
        assert (offer.kind, offer.shape, offer.model) == (GENERATIVE, ALONE, "m")
        ending = door.scheduler.endings[0]
        assert isinstance(ending, TurnFinished)
        assert ending.usage == Usage(prompt_tokens=9, completion_tokens=1)

    through(received, streamed if engine is EngineKind.LLAMA_CPP else whole, story=story)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (told(b'{"choices":[{"message":{"content":"A"}}]}'), "engine a: its answer has no logprobs"),
        (told(DECIDED.replace(b'" B"', b'"Hm"').replace(b'"A"', b'"So"')), "none of the labels' letters"),
        (told(b"<html>"), "engine a: its answer is no chat completion"),
    ],
)
def test_an_answer_that_decides_nothing_is_a_502_that_says_so_and_a_failed_turn(raw: bytes, says: str) -> None:
    async def story(door: Door) -> None:
        reply = await post(door, DECIDE, LABELLED)
        assert reply.status == 502
        assert says in json.loads(reply.body)["error"]["message"]
        assert reply.header(RUN) == b"run_minted_1"
        assert door.scheduler.kinds[-1] == "TurnFailed"

    through([], raw, story=story)


def test_an_engines_refusal_of_a_decision_keeps_status_words_and_retry_after() -> None:
    async def story(door: Door) -> None:
        reply = await post(door, DECIDE, LABELLED)
        assert (reply.status, reply.header(b"retry-after")) == (429, b"7")
        assert json.loads(reply.body)["error"]["message"] == "busy"
        ending = door.scheduler.endings[0]
        assert isinstance(ending, TurnFailed)
        assert ending.retry_after_s == 7.0

    through([], told(b'{"error":"busy"}', b"429 Slow", b"retry-after: 7\r\n"), story=story)


@pytest.mark.parametrize(
    "body", [b'{"input":"x","labels":["a"]}', b"[]", b'{"input":"x","labels":["a","b"],"model":1}']
)
def test_what_cannot_be_decided_is_a_400_before_anything_waits(body: bytes) -> None:
    async def story(door: Door) -> None:
        reply = await post(door, DECIDE, body)
        assert reply.status == 400
        assert json.loads(reply.body)["error"]["code"] == "bad_request"
        assert reply.header(RUN) is not None
        assert door.scheduler.offers == []

    through([], story=story)


def test_tokens_of_messages_are_counted_natively_and_in_other_words() -> None:
    received: list[Received] = []
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    path = b"/v1/messages/count_tokens?beta=true"

    async def story(door: Door) -> None:
        door.scheduler.engine_kind, door.scheduler.dialects = EngineKind.LLAMA_CPP, ("messages",)
        reply = await post(door, path, body)
        assert (reply.status, reply.body) == (200, b'{ "input_tokens": 4 }')
        assert (received[0].line, received[0].body) == (b"POST " + path + b" HTTP/1.1", body)
        assert door.scheduler.offers[0].shape is ERRAND

        door.scheduler.engine_kind, door.scheduler.dialects = EngineKind.VLLM, ()
        reply = await post(door, path, body)
        assert (reply.status, reply.body) == (200, b'{"input_tokens":5}')
        assert received[1].line == b"POST /tokenize HTTP/1.1"

        reply = await post(door, path, body)
        assert (reply.status, json.loads(reply.body)["type"]) == (502, "error")

    through(received, told(b'{ "input_tokens": 4 }'), told(b'{"count":5}'), told(b"{}"), story=story)


COMPLETION = (
    b'data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"on","finish_reason":null}]}\n\n',
    b'data: {"choices":[{"index":0,"text":"e","finish_reason":"stop"}],"usage":%b}\n\n' % USAGE,
    b"data: [DONE]\n\n",
)


def test_a_completion_at_llama_server_is_asked_for_as_a_stream_and_put_together() -> None:
    """It would not notice that its client left."""
    received: list[Received] = []

    async def story(door: Door) -> None:
        door.scheduler.engine_kind = EngineKind.LLAMA_CPP
        reply = await post(door, b"/v1/completions?x=1", b'{"model":"m","prompt":"x"}')
        assert (reply.status, reply.header(b"content-type")) == (200, b"application/json")
        said = json.loads(reply.body)
        assert (said["object"], said["id"], said["usage"]) == ("text_completion", "c", json.loads(USAGE))
        assert said["choices"] == [{"index": 0, "text": "one", "logprobs": None, "finish_reason": "stop"}]
        assert received[0].line == b"POST /v1/completions?x=1 HTTP/1.1"
        asked = json.loads(received[0].body)
        assert asked == {"model": "m", "prompt": "x", "stream": True, "stream_options": {"include_usage": True}}
        ending = door.scheduler.endings[0]
        assert isinstance(ending, TurnFinished)
        assert (ending.finish, ending.usage) == ("stop", Usage(prompt_tokens=9, completion_tokens=1))

    through(received, chunked(*COMPLETION), story=story)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m","prompt":["x","y"]}',
        b'{"model":"m","prompt":"x","n":2}',
        b'{"model":"m"}',
        b'{"model":"m","prompt":"\\ud800"}',
    ],
)
def test_several_completions_are_asked_for_as_they_are(body: bytes) -> None:
    received: list[Received] = []

    async def story(door: Door) -> None:
        door.scheduler.engine_kind = EngineKind.LLAMA_CPP
        assert (await post(door, b"/v1/completions", body)).body == b"[]"
        assert received[0].body == body

    through(received, told(b"[]"), story=story)


def test_tokens_of_a_gemini_conversation_are_counted() -> None:
    received: list[Received] = []

    async def story(door: Door) -> None:
        door.scheduler.engine_kind = EngineKind.LLAMA_CPP
        path, body = b"/v1beta/models/m:countTokens?key=x", b'{"contents":[{"parts":[{"text":"hi"}]}]}'
        reply = await post(door, path, body)
        assert (reply.status, reply.body) == (200, b'{"totalTokens":7}')
        assert received[0].line == b"POST /v1/chat/completions/input_tokens HTTP/1.1"
        assert json.loads(received[0].body)["model"] == "m"
        assert door.scheduler.offers[0].shape is ERRAND
        refused = await post(door, path, b'{"contents":7}')
        assert (refused.status, json.loads(refused.body)["error"]["status"]) == (400, "INVALID_ARGUMENT")

    through(received, told(b'{"input_tokens":7}'), story=story)
