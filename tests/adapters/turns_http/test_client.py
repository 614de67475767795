import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

import pytest

from adapters.turns_http.scripted_door import (
    SAYS_HELLO,
    Answer,
    Asked,
    call_piece,
    delta,
    door,
    events,
    hang_up,
    silence,
    status,
    stream,
)
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.turns_http.client import HttpTurns
from luftpause.adapters.turns_http.request import APPROVE_BYTES_MAX
from luftpause.adapters.turns_http.retry import Patience
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.replicas import Endpoint
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.events import Origin
from luftpause.core.runs.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from luftpause.core.runs.tools import ToolSpec
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest

T = TypeVar("T")
LOOK = ToolSpec(name="look", server="s", tool="look", description="Looks", schema={"type": "object"})
PLAIN = TurnRequest(
    run=RunId("run_1"),
    parent=None,
    principal=ANONYMOUS_PRINCIPAL,
    caller=CallerId("zoë"),
    service_class=ServiceClass.BATCH,
    model=ModelName("m"),
    messages=(UserMessage(text="hi"),),
)
FULL = TurnRequest(
    run=RunId("run_1"),
    parent=RunId("run_0"),
    principal=PrincipalId("zoe"),
    caller=CallerId("me"),
    service_class=ServiceClass.INTERACTIVE,
    model=ModelName("m"),
    messages=(
        SystemMessage(text="be brief"),
        UserMessage(text="hi"),
        AssistantMessage(text="", tool_calls=(ToolCall(call=ToolCallId("c1"), tool="look", arguments="{}"),)),
        ToolMessage(call=ToolCallId("c1"), text="seen"),
    ),
    tools=(LOOK,),
    max_tokens=256,
)
HELLO = TurnReply(
    message=AssistantMessage(text="Hello “you”"),
    finish="stop",
    usage=Usage(prompt_tokens=9, completion_tokens=2, cached_tokens=4),
)


def in_time(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(bounded())


async def taken(*answers: Answer, request: TurnRequest = PLAIN, token: str = "") -> tuple[TurnReply, list[Asked]]:
    async with door(*answers, token=token) as (scripted, turns):
        return await turns.take(request), scripted.asked


def test_a_streamed_reply_is_put_together() -> None:
    assert in_time(taken(stream(events(*SAYS_HELLO))))[0] == HELLO


WHOLE = json.dumps(
    {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello “you”"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    },
    indent=1,
).encode()


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_an_answer_in_one_piece_is_a_reply_too(kind: str) -> None:
    assert in_time(taken(stream(WHOLE[:9], WHOLE[9:], kind=kind)))[0] == HELLO


def test_an_answer_in_one_piece_that_is_no_reply_is_asked_for_again() -> None:
    broken = [stream(each, kind="application/json") for each in (b"", b"{", b'{"error": {"message": "no"}}', b"[1]")]
    reply, asked = in_time(taken(*broken, stream(WHOLE, kind="application/json")))
    assert (reply, len(asked)) == (HELLO, 5)


def test_the_request_says_who_asks_and_what_is_wanted() -> None:
    _, (asked,) = in_time(taken(stream(events(*SAYS_HELLO)), request=FULL, token="secret"))
    assert asked.line == "POST /v1/chat/completions HTTP/1.1"
    ours = {name: value for name, value in asked.headers.items() if name.startswith(("x-", "authorization"))}
    assert ours == {
        "x-luftpause-run-id": "run_1",
        "x-luftpause-class": "interactive",
        "x-luftpause-caller": "me",
        "x-luftpause-parent": "run_0",
        "authorization": "Bearer secret-of-zoe",
    }
    assert asked.json == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 256,
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}},
            }
        ],
        "parallel_tool_calls": False,
    }


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (Origin(tool_call=ToolCallId("toolu_1")), {"x-luftpause-parent-call": "toolu_1"}),
        (
            Origin(tool_call=ToolCallId("c"), thread="t"),
            {"x-luftpause-parent-call": "c", "x-luftpause-parent-thread": "t"},
        ),
        (Origin(thread="t"), {"x-luftpause-parent-thread": "t"}),
    ],
)
def test_the_door_is_told_what_began_a_run_and_tells_whose_that_was(origin: Origin, expected: dict[str, str]) -> None:
    answer = stream(events(*SAYS_HELLO), header="x-luftpause-parent: boss")
    reply, (asked,) = in_time(taken(answer, request=replace(PLAIN, origin=origin)))
    assert {name: value for name, value in asked.headers.items() if "parent" in name} == expected
    assert reply == replace(HELLO, parent=RunId("boss"))


def test_a_plain_request_carries_no_more_than_it_needs() -> None:
    _, (asked,) = in_time(taken(stream(events(*SAYS_HELLO))))
    assert sorted(asked.json) == ["messages", "model", "stream", "stream_options"]
    assert "authorization" not in asked.headers
    assert asked.headers["x-luftpause-caller"].encode("latin-1").decode() == "zoë"


@pytest.mark.parametrize("pause", ["0", "0.01", "Thu, 01 Jan 2015 00:00:00 GMT"])
def test_a_rate_limit_is_waited_out_as_often_as_it_takes(pause: str) -> None:
    limits = [status(429, "slow down", retry_after=pause)] * 12
    assert in_time(taken(*limits, stream(events(*SAYS_HELLO))))[0] == HELLO


PASSING: dict[str, Answer] = {
    "502": status(502, "engine a: refused"),
    "503": status(503, "starting"),
    "llama.cpp on its own grammar": status(500, "Failed to parse tool call arguments"),
    "closed before a byte": hang_up,
    "cut in the middle": stream(events(*SAYS_HELLO)[:60], cut=True),
    "ended without finish": stream(b'data: {"choices":[{"delta":{"content":"He"}}]}\n\n'),
    "an error event": stream(b'data: {"error":{"message":"engine died"}}\n\n'),
    "no JSON": stream(b"data: oops\n\n"),
}


@pytest.mark.parametrize("failure", PASSING.values(), ids=PASSING.keys())
def test_what_may_pass_is_tried_again_and_nothing_of_the_failed_try_remains(failure: Answer) -> None:
    assert in_time(taken(failure, failure, stream(events(*SAYS_HELLO))))[0] == HELLO


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("llama.cpp on its own grammar", "status 500: Failed to parse tool call arguments"),
        ("an error event", "engine died"),
        ("ended without finish", "closed the stream before the reply was complete"),
    ],
)
def test_a_reply_that_stays_broken_fails_clearly_after_five_tries(failure: str, told: str) -> None:
    async def never() -> int:
        async with door(*[PASSING[failure]] * 10) as (scripted, turns):
            with pytest.raises(TurnFailedError, match=f"5 times.*{told}"):
                await turns.take(PLAIN)
            return len(scripted.asked)

    # A kept connection that closes is asked once more by the HTTP client itself.
    assert in_time(never()) >= 5


@pytest.mark.parametrize("failure", ["502", "503", "closed before a byte"])
def test_nobody_there_is_waited_out_as_often_as_it_takes(failure: str) -> None:
    assert in_time(taken(*[PASSING[failure]] * 30, stream(events(*SAYS_HELLO))))[0] == HELLO


@pytest.mark.parametrize(
    ("failure", "told"), [("502", "status 502: engine a: refused"), ("closed before a byte", "cannot be reached")]
)
def test_nobody_there_for_the_turn_timeout_fails_clearly(failure: str, told: str) -> None:
    async def never() -> None:
        patience = Patience(turn_timeout_s=0.2, backoff_s=0.01, backoff_max_s=0.02)
        async with door(*[PASSING[failure]] * 1000, patience=patience) as (_, turns):
            with pytest.raises(TurnFailedError, match=f"could not be had for .*{told}"):
                await turns.take(PLAIN)

    in_time(never())


def test_a_sign_of_life_gives_the_turn_its_whole_timeout_again() -> None:
    async def run() -> int:
        patience = Patience(turn_timeout_s=1.0, backoff_s=0.1, backoff_max_s=0.1, tries=100)
        away, broken = status(502), stream(b": ping\n\n", cut=True)
        async with door(*[away, away, away, broken] * 6, stream(events(*SAYS_HELLO)), patience=patience) as (it, turns):
            assert await turns.take(PLAIN) == HELLO
            return len(it.asked)

    assert in_time(run()) == 25


def test_an_empty_reply_is_asked_for_once_more_and_then_told() -> None:
    nothing = stream(events(delta(role="assistant", content=""), delta(finish="length")))
    assert in_time(taken(nothing, stream(events(*SAYS_HELLO))))[0] == HELLO

    async def never() -> int:
        async with door(nothing, nothing, stream(events(*SAYS_HELLO))) as (scripted, turns):
            with pytest.raises(TurnFailedError, match=r"2 times.*reply is empty, its finish reason length"):
                await turns.take(PLAIN)
            return len(scripted.asked)

    assert in_time(never()) == 2


def test_a_model_that_only_calls_tools_it_has_not_is_asked_once_more_and_then_told() -> None:
    calls = stream(events(call_piece(index=0, id="c1", name="look", arguments="{}"), delta(finish="tool_calls")))

    async def asked(request: TurnRequest, *answers: Answer) -> tuple[int, str]:
        async with door(*answers) as (scripted, turns):
            try:
                reply = await turns.take(request)
            except TurnFailedError as error:
                return len(scripted.asked), str(error)
            return len(scripted.asked), reply.message.text or str(len(reply.message.tool_calls))

    assert in_time(asked(PLAIN, calls, stream(events(*SAYS_HELLO)))) == (2, HELLO.message.text)
    assert in_time(asked(FULL, calls)) == (1, "1")
    tries, told = in_time(asked(PLAIN, calls, calls))
    assert (tries, told) == (
        2,
        "the turn failed 2 times, at last: the engine's reply is empty but for calls of tools, and none are offered",
    )


def test_a_refusal_is_final_and_passes_on_what_was_said() -> None:
    async def refused() -> None:
        async with door(status(404, "no Generative replica serves model 'm'")) as (_, turns):
            with pytest.raises(TurnFailedError, match="404: no Generative replica serves model 'm'"):
                await turns.take(PLAIN)

    in_time(refused())


def test_a_door_that_is_not_there_fails_clearly() -> None:
    async def unreachable() -> None:
        engines = HttpEngines()
        patience = Patience(turn_timeout_s=0.1, backoff_s=0.01)
        turns = HttpTurns(engines, Endpoint(url="http://127.0.0.1:9"), patience=patience)
        with pytest.raises(TurnFailedError, match="cannot be reached"):
            await turns.take(PLAIN)
        await engines.close()

    in_time(unreachable())


def test_cancelling_closes_the_connection_at_once() -> None:
    async def cancel() -> None:
        async with door(silence) as (scripted, turns):
            turn = asyncio.ensure_future(turns.take(PLAIN))
            await scripted.reached.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            await scripted.left.wait()

    in_time(cancel())


def test_a_rate_limited_turn_can_be_cancelled() -> None:
    async def cancel() -> None:
        async with door(status(429, retry_after="3000")) as (scripted, turns):
            turn = asyncio.ensure_future(turns.take(PLAIN))
            await scripted.reached.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn

    in_time(cancel())


def test_silence_ends_a_try_but_pings_keep_it_alive() -> None:
    held = stream(*[b": ping\n\n"] * 3, events(*SAYS_HELLO))

    async def run() -> TurnReply:
        async with door(silence, held, patience=Patience(turn_timeout_s=0.3, backoff_s=0.0)) as (_, turns):
            return await turns.take(PLAIN)

    assert in_time(run()) == HELLO


@pytest.mark.parametrize("answer", [status(200), status(404), status(500), hang_up])
def test_the_end_of_a_run_is_reported_and_never_raises(answer: Answer) -> None:
    async def end() -> Asked:
        async with door(answer, answer, token="t") as (scripted, turns):
            await turns.end_run(ANONYMOUS_PRINCIPAL, RunId("run_1"))
            return scripted.asked[0]

    asked = in_time(end())
    assert (asked.line, asked.headers["authorization"]) == ("DELETE /v1/runs/run_1 HTTP/1.1", "Bearer t")


SHAPE = {"type": "object", "required": ["n"]}


def test_a_turn_that_must_answer_asks_the_engine_to_keep_the_shape() -> None:
    _, (asked,) = in_time(taken(stream(events(*SAYS_HELLO)), request=replace(PLAIN, answer_schema=SHAPE)))
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SHAPE}}
    assert asked.json["response_format"] == wanted
    _, (with_tools,) = in_time(taken(stream(events(*SAYS_HELLO)), request=replace(FULL, answer_schema=SHAPE)))
    assert "response_format" not in with_tools.json


@pytest.mark.parametrize("code", [400, 422])
def test_an_engine_that_does_not_understand_the_shape_is_asked_without_it(code: int) -> None:
    refusal = status(code, "no grammars here")
    reply, asked = in_time(taken(refusal, stream(events(*SAYS_HELLO)), request=replace(PLAIN, answer_schema=SHAPE)))
    assert reply == HELLO
    assert ["response_format" in each.json for each in asked] == [True, False]
    with pytest.raises(TurnFailedError, match="no grammars here"):
        in_time(taken(refusal, refusal, request=replace(PLAIN, answer_schema=SHAPE)))


def test_a_turn_belongs_to_the_trace_that_it_was_spawned_in() -> None:
    traced = replace(PLAIN, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    _, (asked,) = in_time(taken(stream(events(*SAYS_HELLO)), request=traced))
    assert asked.headers["traceparent"] == traced.traceparent
    _, (plain,) = in_time(taken(stream(events(*SAYS_HELLO))))
    assert "traceparent" not in plain.headers


def test_the_door_is_told_which_calls_a_person_must_allow_as_far_as_a_head_takes_it() -> None:
    names = [f"delete_{number:03}" for number in range(1000)]
    for told in (["delete", "drop"], names):
        _, (asked,) = in_time(taken(stream(events(*SAYS_HELLO)), request=replace(PLAIN, approve_tools=told)))
        kept = asked.headers["x-luftpause-approve-tools"].split(",")
        assert kept == told[: len(kept)]
        assert len(kept) == min(len(told), APPROVE_BYTES_MAX // len("delete_000,"))
