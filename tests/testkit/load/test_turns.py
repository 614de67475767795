"""One turn at the door, from a script."""

import asyncio
import json

import pytest

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineUnreachableError
from luftpause.testkit.load.runs import RunFailedError
from luftpause.testkit.load.turns import Answer, Door, first_model, take_turn
from testkit.load.scripted_engines import ScriptedEngines, ScriptedExchange
from testkit.running import run

DONE = b"data: [DONE]\n\n"


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(**fields: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields}]})


def door(*script: ScriptedExchange | Exception) -> tuple[Door, ScriptedEngines]:
    engines = ScriptedEngines(list(script))
    return Door(engines, Endpoint(url="http://127.0.0.1:1"), 5.0), engines


def answer(*pieces: bytes) -> Answer:
    exchange = ScriptedExchange(200, list(pieces))
    one, _ = door(exchange)
    got = run(take_turn(one, (), {"model": "m"}))
    assert exchange.closed
    return got


def failure(*script: ScriptedExchange | Exception) -> str:
    one, _ = door(*script)
    with pytest.raises(RunFailedError) as caught:
        run(take_turn(one, (), {}))
    return caught.value.kind


def test_text_is_put_together_and_usage_read() -> None:
    got = answer(
        delta(role="assistant", content=""),
        delta(content="Hello"),
        delta(content=" you"),
        event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}}),
        DONE,
    )
    assert got.message() == {"role": "assistant", "content": "Hello you"}
    assert (got.seen().prompt_tokens, got.seen().cached_tokens) == (9, 0)


def test_tool_calls_are_put_together_by_index() -> None:
    got = answer(
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
        delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}, {"index": 1, "function": {"arguments": "}"}}]),
        event({"choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}}),
        DONE,
    )
    assert got.message()["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    assert got.seen().cached_tokens == 4


def test_the_role_alone_is_no_first_token() -> None:
    got = Answer()
    one = answer(delta(role="assistant", content=""), delta(content="x"), DONE)
    assert got.first_token_s is None
    assert one.first_token_s is not None


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (EngineUnreachableError("refused"), "unreachable"),
        (EngineBrokeError("no HTTP"), "broke"),
        (ScriptedExchange(429, [b'{"error": {"message": "busy"}}']), "http_429"),
        (ScriptedExchange(200, [delta(content="x")]), "cut"),
        (ScriptedExchange(200, [delta(content="x"), EngineBrokeError("reset")]), "cut"),
        (ScriptedExchange(200, [b"data: {nonsense\n\n"]), "bad_reply"),
        (ScriptedExchange(200, [event({"error": {"message": "no"}}), DONE]), "error_event"),
        (ScriptedExchange(200, [delta(role="assistant"), DONE]), "empty_reply"),
    ],
)
def test_whatever_is_no_complete_answer_fails_by_its_kind(script: ScriptedExchange | Exception, kind: str) -> None:
    assert failure(script) == kind
    if isinstance(script, ScriptedExchange):
        assert script.closed


def test_a_turn_that_takes_too_long_is_given_up_and_its_exchange_closed() -> None:
    class Silent(ScriptedExchange):
        async def read(self) -> bytes:
            await asyncio.Event().wait()
            return b""

    exchange = Silent(200, [])
    engines = ScriptedEngines([exchange])
    with pytest.raises(RunFailedError) as caught:
        run(take_turn(Door(engines, Endpoint(url="http://127.0.0.1:1"), 0.01), (), {}))
    assert caught.value.kind == "timeout"
    assert exchange.closed


def test_the_first_model_is_the_one_to_use() -> None:
    one, engines = door(ScriptedExchange(200, [b'{"data": [{"id": "a"}, ', b'{"id": "b"}]}']))
    assert run(first_model(one)) == "a"
    assert engines.requests[0].path == b"/v1/models"


@pytest.mark.parametrize(
    ("exchange", "kind"),
    [
        (ScriptedExchange(200, [b'{"data": []}']), "no_model"),
        (ScriptedExchange(200, [b"<html>"]), "bad_reply"),
        (ScriptedExchange(401, [b"{}"]), "http_401"),
    ],
)
def test_a_door_without_models_is_a_failure(exchange: ScriptedExchange, kind: str) -> None:
    one, _ = door(exchange)
    with pytest.raises(RunFailedError) as caught:
        run(first_model(one))
    assert caught.value.kind == kind
