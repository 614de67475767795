"""In which words a turn goes to its engine, through the whole door and by itself."""

import json
from dataclasses import replace

import msgspec
import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, run_bounded
from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.chat_assembly import ChatAssembly
from luftpause.core.dialects.dialect import Peek, Translation
from luftpause.core.dialects.edits import ALL_EDITS, Edit
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import ModelName, ReplicaId, ToolCallId
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.services.dataplane import routes
from luftpause.services.dataplane.forwarding import Asked, forward
from services.dataplane.door import Door, open_door

CHAT = OpenAiChat()
BODY = b'{"model":"m","stream":false,"x": 1.0}'


class Shouting(OpenAiChat):
    """A dialect that is Chat Completions in capitals, so that a test can see who spoke which."""

    name = "shouting"

    def translate(self, path: str, body: bytes, turn: str = "") -> Translation:
        if b"IMPOSSIBLE" in body:
            raise BadRequestError("`IMPOSSIBLE` cannot be said in Chat Completions")
        return Lowered(body.lower())

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        return Peek(model=ModelName("m"), stream=b"STREAM" in body)


class Lowered:
    left_out = ()
    failure = ""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self._kept = b""
        self._streams = b"stream" in request

    def feed(self, data: bytes) -> bytes:
        if self._streams:
            return data.upper()
        self._kept += data
        return b""

    def end(self) -> bytes:
        return self._kept.upper()

    def error(self, status: int, body: bytes) -> bytes:
        return b"%d " % status + body.upper()

    def call_ids(self) -> tuple[ToolCallId, ...]:
        return ()


def placement(engine: EngineKind = EngineKind.VLLM) -> Placement:
    return Placement(replica=ReplicaId("a"), endpoint=Endpoint(url="u"), why="", engine=engine)


def asked(dialect: OpenAiChat = CHAT, *, stream: bool = False, body: bytes = BODY) -> Asked:
    target = b"/v1/shouts?loud=1"
    return Asked(dialect=dialect, target=target, path="/v1/shouts", stream=stream, headers=(), body=body)


@pytest.mark.parametrize(("engine", "stream"), [(EngineKind.VLLM, False), (EngineKind.LLAMA_CPP, True)])
def test_a_chat_goes_as_it_came(engine: EngineKind, stream: bool) -> None:
    forwarded = forward(asked(stream=stream), placement(engine), speaks=True)

    assert (forwarded.request.path, forwarded.request.body) == (b"/v1/chat/completions", BODY)
    assert forwarded.back is None


def test_llama_server_is_asked_for_a_stream_by_who_wants_none() -> None:
    forwarded = forward(asked(), placement(EngineKind.LLAMA_CPP), speaks=True)

    assert msgspec.json.decode(forwarded.request.body) == {
        "model": "m",
        "stream": True,
        "x": 1.0,
        "stream_options": {"include_usage": True},
    }
    assert b'"x":1.0' in forwarded.request.body
    assert forwarded.assembles is ChatAssembly


@pytest.mark.parametrize(
    ("more", "is_streamed"),
    [
        ('"logprobs":true,"tools":[{}]', False),
        ('"tools":[{}],"top_logprobs":2,"logprobs" : 1', False),
        ('"logprobs":false,"tools":[{}]', True),
        ('"logprobs":true,"tools":[]', True),
        ('"logprobs":true', True),
        ('"tools":[{"a":{"logprobs":true}}]', True),
        ('"messages":[{"role":"user"},{"content":"The","role":"assistant"}]', False),
        ('"messages":[{"role":"assistant"},{"role":"user"}],"tools":[{"role":"assistant"}]', True),
        ('"messages":[{"role":["assistant"]}]', True),
        ('"messages":"assistant","x":"assistant"', True),
        ('"messages":[],"x":"assistant"', True),
        ('"x":"assistant"', True),
    ],
)
def test_llama_server_is_asked_for_no_stream_that_it_refuses_or_says_otherwise(more: str, is_streamed: bool) -> None:
    body = b'{"model":"m",%b}' % more.encode()
    forwarded = forward(asked(body=body), placement(EngineKind.LLAMA_CPP), speaks=True)

    assert (forwarded.request.body != body, forwarded.assembles is not None) == (is_streamed, is_streamed)


def test_what_only_the_engine_can_read_goes_as_it_came() -> None:
    odd = b'{"model":"m","x":"\\ud800"}'
    forwarded = forward(asked(body=odd), placement(EngineKind.LLAMA_CPP), speaks=True)

    assert (forwarded.request.body, forwarded.assembles) == (odd, None)


def in_slot(slot: int | None = 2) -> Placement:
    return replace(placement(), slot=slot)


def test_a_turn_with_a_slot_says_so_and_nothing_else_is_changed() -> None:
    body = b'{"model":"m","id_slot":9,"x": 1.0}'
    sent = forward(asked(body=body), in_slot(), speaks=True).request.body

    assert json.loads(sent) == {"model": "m", "id_slot": 2, "x": 1.0}
    assert b'"x":1.0' in sent
    assert forward(asked(body=body), in_slot(None), speaks=True).request.body == body
    odd = b'{"model":"m","x":"\\ud800"}'
    assert forward(asked(body=odd), in_slot(), speaks=True).request.body == odd


@pytest.mark.parametrize(
    ("path", "has_slot"), [("/v1/completions", True), ("/v1/responses", True), ("/tokenize", False)]
)
def test_only_where_an_engine_takes_a_slot_it_is_told_one(path: str, has_slot: bool) -> None:
    found = routes.dialect_for(path)
    assert found is not None
    request = Asked(dialect=found, target=path.encode(), path=path, stream=True, headers=(), body=b'{"prompt":"x"}')
    assert (b"id_slot" in forward(request, in_slot(), speaks=True).request.body) is has_slot


def test_messages_with_a_slot_are_said_as_a_chat_where_they_can_be() -> None:
    message = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'

    def messages(body: bytes) -> Asked:
        at = "/v1/messages"
        return Asked(dialect=AnthropicMessages(), target=at.encode(), path=at, stream=True, headers=(), body=body)

    assert forward(messages(message), in_slot(None), speaks=True).request.body == message
    told = forward(messages(message), in_slot(), speaks=True).request
    assert (told.path, json.loads(told.body)["id_slot"]) == (b"/v1/chat/completions", 2)
    odd = message.replace(b'"content":"hi"', b'"content":[{"type":"unheard-of"}]')
    as_it_came = forward(messages(odd), in_slot(), speaks=True)
    assert (as_it_came.request.path, as_it_came.back) == (b"/v1/messages", None)


@pytest.mark.interpreted
def test_an_engine_that_speaks_the_dialect_gets_the_very_bytes_at_the_very_address() -> None:
    forwarded = forward(asked(Shouting()), placement(), speaks=True)

    assert (forwarded.request.path, forwarded.request.body) == (b"/v1/shouts?loud=1", BODY)
    assert forwarded.back is None


async def ask(door: Door, body: bytes) -> tuple[int, bytes | None, bytes]:
    reply = await door.chat(body=body)
    assert reply.header(b"x-luftpause-run-id") is not None
    return reply.status, reply.header(b"content-type"), reply.body


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(routes._DIALECTS, "/v1/chat/completions", Shouting())


STREAM = (b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', b'data: {"choices":[{"finish_reason":"stop"}]}\n\n')


@pytest.mark.interpreted
@pytest.mark.usefixtures("shouting")
def test_a_translated_turn_comes_back_translated() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            while True:
                request = await visit.request()
                assert request.body == request.body.lower()
                whole = answer(b'{"choices":[{"finish_reason":"stop"}]}', headers=b"content-type: application/json\r\n")
                visit.send(chunked(*STREAM) if b"stream" in request.body else whole)

        async with open_door(ScriptedEngine(script)) as door:
            assert await ask(door, b'{"A":1}') == (200, b"application/json", b'{"CHOICES":[{"FINISH_REASON":"STOP"}]}')
            assert await ask(door, b'{"STREAM":1}') == (200, b"text/event-stream", b"".join(STREAM).upper())
            assert [type(ending) for ending in door.scheduler.endings] == [TurnFinished, TurnFinished]

    run_bounded(main())


@pytest.mark.interpreted
@pytest.mark.usefixtures("shouting")
def test_a_translated_refusal_keeps_status_and_retry_after() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"slow down", status=b"429 Slow", headers=b"retry-after: 3\r\n"))

        async with open_door(ScriptedEngine(script)) as door:
            reply = await door.chat(body=b'{"STREAM":1}')
            assert (reply.status, reply.body) == (429, b"429 SLOW DOWN")
            assert reply.header(b"retry-after") == b"3"
            ending = door.scheduler.endings[0]
            assert isinstance(ending, TurnFailed)
            assert ending.retry_after_s == 3.0

    run_bounded(main())


@pytest.mark.interpreted
@pytest.mark.usefixtures("shouting")
def test_what_cannot_be_said_is_refused_and_ends_the_turn() -> None:
    async def main() -> None:
        async with open_door() as door:
            status, _, body = await ask(door, b'{"IMPOSSIBLE":1}')
            assert status == 400
            assert "cannot be said" in json.loads(body)["error"]["message"]
            await door.still_answers()

    run_bounded(main())


@pytest.mark.interpreted
@pytest.mark.usefixtures("shouting")
def test_a_turn_that_is_translated_and_assembled_is_both() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            request = await visit.request()
            assert json.loads(request.body)["stream"] is True
            visit.send(chunked(*STREAM))

        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.engine_kind = EngineKind.LLAMA_CPP
            status, kind, body = await ask(door, b'{"a":1}')
            assert (status, kind) == (200, b"application/json")
            assert b'"CONTENT":"HI"' in body

    run_bounded(main())


def test_an_error_inside_the_stream_is_a_failure_of_the_whole() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(b'data: {"error":{"message":"grammar"}}\n\n'))

        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.engine_kind = EngineKind.LLAMA_CPP
            status, _, body = await ask(door, b'{"model":"m"}')
            assert status == 502
            assert "grammar" in json.loads(body)["error"]["message"]
            assert isinstance(door.scheduler.endings[0], TurnFailed)

    run_bounded(main())


def test_llama_server_leaves_no_trace_in_a_whole_answer() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(*STREAM, headers=b"content-type: text/event-stream\r\nx-engine: yes\r\n"))

        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.engine_kind = EngineKind.LLAMA_CPP
            reply = await door.chat(body=b'{"model":"m"}')
            assert reply.header(b"content-type") == b"application/json"
            assert reply.header(b"x-engine") == b"yes"
            assert json.loads(reply.body)["choices"][0]["message"]["content"] == "hi"

    run_bounded(main())


def renamed() -> Placement:
    return replace(in_slot(), engine=EngineKind.LLAMA_CPP, model=ModelName("own"))


def test_every_change_to_a_request_is_named_and_only_those_that_are_allowed_are_made() -> None:
    at = "/v1/shouts"
    request = Asked(dialect=CHAT, target=at.encode(), path=at, stream=False, headers=(), body=BODY, model="m")
    made = forward(request, renamed(), speaks=True)
    assert made.edits == (Edit.STREAM, Edit.INCLUDE_USAGE, Edit.MODEL, Edit.ID_SLOT)
    assert {edit.value.partition(".")[0] for edit in made.edits} == {"stream", "stream_options", "model", "id_slot"}
    assert forward(asked(), placement(), speaks=True).edits == ()
    assert forward(request, renamed(), speaks=True, allowed=frozenset()).request.body == BODY
    for edit in Edit:
        left = forward(request, renamed(), speaks=True, allowed=ALL_EDITS - {edit}).edits
        assert edit not in left
    no_usage = forward(request, renamed(), speaks=True, allowed=frozenset((Edit.STREAM,)))
    assert json.loads(no_usage.request.body) == {"model": "m", "stream": True, "x": 1.0}


def test_messages_are_said_as_a_chat_for_a_slot_only_where_one_may_be_told() -> None:
    message = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
    at = "/v1/messages"
    request = Asked(dialect=AnthropicMessages(), target=at.encode(), path=at, stream=True, headers=(), body=message)
    assert forward(request, in_slot(), speaks=True).edits == (Edit.ID_SLOT,)
    as_it_came = forward(request, in_slot(), speaks=True, allowed=ALL_EDITS - {Edit.ID_SLOT})
    assert (as_it_came.request.body, as_it_came.edits) == (message, ())


OWN = b'{"model":"m","stream":true,"priority":-99,"x": 1.0}'


@pytest.mark.parametrize(
    ("priority", "body", "sent"),
    [
        (2, OWN, b'{"model":"m","stream":true,"priority":2,"x":1.0}'),
        (-3, BODY, b'{"model":"m","stream":false,"x":1.0,"priority":-3}'),
        (None, OWN, b'{"model":"m","stream":true,"x":1.0}'),
        (None, BODY, BODY),
        (None, b'{"x": "the \\"priority\\" of it", "y": [{"priority": 1}]}', None),
    ],
    ids=["replaced", "set", "taken out", "not there", "elsewhere in it"],
)
def test_a_priority_is_the_schedulers_or_none(priority: int | None, body: bytes, sent: bytes | None) -> None:
    place = replace(placement(), priority=priority, owns_priority=True)
    forwarded = forward(asked(body=body), place, speaks=True)
    request = forwarded.request
    assert (forwarded.edits == (Edit.PRIORITY,)) is (json.loads(request.body) != json.loads(body))
    as_it_came = forward(asked(body=body), place, speaks=True, allowed=ALL_EDITS - {Edit.PRIORITY})
    assert (as_it_came.request.body, as_it_came.edits) == (body, ())
    assert json.loads(request.body) == json.loads(body if sent is None else sent)
    if sent is not None:
        assert request.body == sent


def test_where_the_scheduler_has_none_a_clients_own_priority_goes_on_untouched() -> None:
    assert forward(asked(body=OWN), placement(), speaks=True).request.body == OWN


def test_no_priority_is_put_where_the_engine_does_not_take_one() -> None:
    at = "/v1/messages"
    messages = Asked(dialect=AnthropicMessages(), target=at.encode(), path=at, stream=False, headers=(), body=OWN)
    place = replace(placement(), priority=2, owns_priority=True)
    assert b"priority" not in forward(messages, place, speaks=True).request.body


CAPPED = Charge(prompt=10, reply=10, reply_cap=4096)


def of_path(at: str, body: bytes) -> Asked:
    dialect = routes.dialect_for(at)
    assert dialect is not None
    return Asked(dialect=dialect, target=at.encode(), path=at, stream=False, headers=(), body=body)


@pytest.mark.parametrize(
    ("at", "speaks", "edit"),
    [
        ("/v1/chat/completions", True, Edit.MAX_TOKENS),
        ("/v1/responses", True, Edit.MAX_OUTPUT_TOKENS),
        ("/v1/responses", False, Edit.MAX_TOKENS),
        ("/v1beta/models/m:generateContent", False, Edit.MAX_TOKENS),
    ],
    ids=["chat", "responses", "responses in chat", "gemini in chat"],
)
@pytest.mark.parametrize("allowed", [True, False])
def test_a_cap_is_said_in_the_words_that_the_engine_is_asked_in(
    at: str, speaks: bool, edit: Edit, allowed: bool
) -> None:
    said = {"model": "m", "messages": [], "input": "hi", "contents": [{"parts": [{"text": "hi"}]}]}
    whole = of_path(at, json.dumps(said).encode())
    place = replace(placement(), charge=CAPPED)
    edits = ALL_EDITS if allowed else ALL_EDITS - {edit}
    forwarded = forward(whole, place, speaks=speaks, allowed=edits)
    sent = json.loads(forwarded.request.body)
    assert sent.get(edit.value) == (4096 if allowed else None)
    assert (forwarded.reply_cap, edit in forwarded.edits) == ((4096, True) if allowed else (0, False))
    assert forward(whole, placement(), speaks=speaks).reply_cap == 0


@pytest.mark.parametrize("at", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize(
    "own",
    [
        b'"max_tokens":9',
        b'"max_tokens":-1',
        b'"max_completion_tokens":0',
        b'"max_output_tokens":7',
        b'"n_predict":7',
        b'"max_\\u0074okens":7',
    ],
    ids=bytes.decode,
)
def test_whoever_says_something_of_it_itself_is_left_alone(at: str, own: bytes) -> None:
    body = b'{"model":"m","messages":[],"input":"",%b}' % own
    forwarded = forward(of_path(at, body), replace(placement(), charge=CAPPED), speaks=True)
    assert (forwarded.request.body, forwarded.edits, forwarded.reply_cap) == (body, (), 0)


@pytest.mark.parametrize("speaks", [True, False])
def test_a_message_has_a_bound_of_its_own(speaks: bool) -> None:
    """Its dialect demands one."""
    whole = of_path("/v1/messages", b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
    assert forward(whole, replace(placement(), charge=CAPPED), speaks=speaks).reply_cap == 0


def test_whoever_only_names_the_member_has_said_nothing() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"\\"max_tokens\\" \\u0074"}],"max_tokens":null}'
    forwarded = forward(asked(body=body), replace(placement(), charge=CAPPED), speaks=True)
    assert json.loads(forwarded.request.body)["max_tokens"] == 4096


@pytest.mark.parametrize("body", [b"[]", b'{"max_tokens":1,"max_tokens":2}', b'{"x":"\\ud800"}'])
def test_what_cannot_be_read_is_not_capped(body: bytes) -> None:
    forwarded = forward(asked(body=body), replace(placement(), charge=CAPPED), speaks=True)
    assert (forwarded.request.body, forwarded.reply_cap) == (body, 0)


def test_a_completion_of_old_has_a_bound_of_its_own() -> None:
    whole = of_path("/v1/completions", b'{"model":"m","prompt":"once"}')
    assert forward(whole, replace(placement(), charge=CAPPED), speaks=True).reply_cap == 0
