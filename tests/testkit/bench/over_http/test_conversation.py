"""Planned runs as messages, read as the fake engine reads them."""

import msgspec
import pytest

from luftpause.testkit.bench.over_http.conversation import REAL_OPENING_TOKENS, Conversation
from luftpause.testkit.fake_engine.conversations import Chat, pieces
from luftpause.testkit.fake_engine.replies import CallDelta, Reply, plan_reply
from luftpause.testkit.fake_engine.settings import Settings
from luftpause.testkit.load.turns import Answer, Call
from luftpause.testkit.sim.plans import Leg, RunPlan, draw_plan
from luftpause.testkit.sim.scenario import load_scenario

W1 = load_scenario("w1")


def plan(number: int = 1) -> RunPlan:
    return draw_plan(W1.agents[0], 1, number)


def read(body: dict[str, object]) -> tuple[Chat, Reply, int]:
    """Return the request as the engine reads it, its reply, and the tokens of its prompt."""
    chat = msgspec.json.decode(msgspec.json.encode(body), type=Chat)
    return chat, plan_reply(chat, Settings(), "c", 1), sum(piece.tokens for piece in pieces(chat))


def answer_of(reply: Reply) -> Answer:
    """Return a reply as the client puts it together."""
    message = reply.message()
    answer = Answer(text=message.text)
    for index, call in enumerate(message.tool_calls or ()):
        answer.calls[index] = Call(call.id, call.function.name, call.function.arguments)
    return answer


@pytest.mark.parametrize("number", range(6))
def test_the_fake_engine_replies_as_long_as_planned_and_calls_tools_when_planned(number: int) -> None:
    run = plan(number)
    conversation = Conversation(run, "fake-1b")
    for nth, leg in enumerate(run.legs):
        _, reply, _ = read(conversation.body(nth))
        called = any(isinstance(delta, CallDelta) for delta in reply.deltas)
        assert called is leg.paused
        assert len(reply.deltas) == pytest.approx(leg.reply_tokens, abs=6)
        conversation.take(answer_of(reply))


def test_prompts_grow_as_planned() -> None:
    run = plan(3)
    conversation = Conversation(run, "fake-1b")
    context = 0
    for nth, leg in enumerate(run.legs):
        _, reply, tokens = read(conversation.body(nth))
        assert tokens == pytest.approx(context + leg.new_tokens, rel=0.12)
        context = tokens + leg.reply_tokens
        conversation.take(answer_of(reply))


def test_a_prompt_begins_with_the_one_before() -> None:
    conversation = Conversation(plan(2), "fake-1b")
    body = conversation.body(0)
    first = msgspec.json.decode(msgspec.json.encode(body["messages"]))
    conversation.take(answer_of(read(body)[1]))
    second = msgspec.json.decode(msgspec.json.encode(conversation.body(1)["messages"]))
    assert second[: len(first)] == first
    assert len(second) > len(first) + 1


def test_what_runs_share_is_the_system_prompt() -> None:
    group = msgspec.structs.replace(W1.agents[0], system_tokens=200)
    one, two = (Conversation(draw_plan(group, 1, number), "m").body(0)["messages"] for number in (1, 2))
    assert isinstance(one, list)
    assert isinstance(two, list)
    assert one[0] == two[0]
    assert one[0]["role"] == "system"
    assert one[1] != two[1]


def test_a_real_engine_is_told_the_length_and_no_orders() -> None:
    run = plan(1)
    body = Conversation(run, "small", real=True).body(0)
    assert (body["max_tokens"], body["ignore_eos"]) == (run.legs[0].reply_tokens, True)
    assert "tools" not in body
    messages = body["messages"]
    assert isinstance(messages, list)
    assert "[" not in messages[-1]["content"]
    assert [message["role"] for message in messages] == ["system", "user"]
    assert len(messages[-1]["content"].split()) == run.legs[0].new_tokens - REAL_OPENING_TOKENS


def test_no_two_runs_on_a_real_engine_begin_alike() -> None:
    one, two = (Conversation(plan(number), "small", real=True).body(0)["messages"] for number in (1, 2))
    assert isinstance(one, list)
    assert isinstance(two, list)
    assert one[0] != two[0]


def test_a_long_reply_has_several_calls() -> None:
    legs = (Leg(100, 240, 1.0, paused=True), Leg(300, 10, None, paused=False))
    run = plan(1)
    long = RunPlan(run=run.run, service_class=run.service_class, caller=run.caller, legs=legs, reply_tokens_max=256)
    _, reply, _ = read(Conversation(long, "fake-1b").body(0))
    assert len(reply.deltas) == pytest.approx(240, abs=6)
    assert len(answer_of(reply).calls) == 3
