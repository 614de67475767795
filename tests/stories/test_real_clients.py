"""Clients that people use, at the doors of a real `luftpause up`: the openai package, the MCP client, and mistakes."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from openai import AsyncOpenAI, NotFoundError, OpenAI, RateLimitError
from openai.types.chat import (
    ChatCompletionMessage,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageParam,
    ChatCompletionToolParam,
)

from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, MODEL, launched_engines, tools, write

pytestmark = pytest.mark.timeout(120)

WAIT_S_MAX = 30.0
GET_WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("clients")
    config = write(directory, FREE_PORTS, launched_engines("--speedup", "10"), tools(0.05))
    with running(directory, "up", "up", "--config", config) as program:
        yield program


def client_of(up: Program, path: str = "/v1", *, retries: int = 0) -> OpenAI:
    return OpenAI(base_url=up.url("dataplane") + path, api_key="any", max_retries=retries, timeout=WAIT_S_MAX)


def said(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def in_flight(up: Program) -> int:
    with urllib.request.urlopen(up.url("scheduler") + "/status", timeout=10) as answer:
        replicas: list[dict[str, Any]] = json.load(answer)["replicas"]
    return sum(replica["in_flight"] for replica in replicas)


@pytest.mark.parametrize("streams", [False, True])
def test_a_loop_with_parallel_tools_stays_one_run_without_any_header(up: Program, streams: bool) -> None:
    runs: list[str] = []
    messages = said("Weather in Bonn? [tools:2] [parallel:3]")
    with client_of(up) as client:
        for calls in (3, 3, 0):
            message, run = (streamed if streams else whole)(client, messages)
            runs.append(run)
            made = message.tool_calls or []
            assert len(made) == calls
            messages.append(
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}
                        for call in made
                        if isinstance(call, ChatCompletionMessageFunctionToolCall)
                        for name, arguments in [(call.function.name, call.function.arguments)]
                    ],
                }
            )
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in made]
    assert message.content
    assert len(set(runs)) == 1


def whole(client: OpenAI, messages: list[ChatCompletionMessageParam]) -> tuple[ChatCompletionMessage, str]:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages, tools=[GET_WEATHER])
    return raw.parse().choices[0].message, raw.headers["x-luftpause-run-id"]


def streamed(client: OpenAI, messages: list[ChatCompletionMessageParam]) -> tuple[ChatCompletionMessage, str]:
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=[GET_WEATHER]) as stream:
        return stream.get_final_completion().choices[0].message, stream._response.headers["x-luftpause-run-id"]


def test_errors_of_an_engine_reach_the_client_as_their_own_kind_and_are_retried_as_usual(up: Program) -> None:
    with client_of(up) as client, pytest.raises(RateLimitError) as refused:
        client.chat.completions.create(model=MODEL, messages=said("Busy. [fail:429]"))
    assert refused.value.response.headers["retry-after"] == "1"
    with client_of(up, retries=4) as client:
        answer = client.chat.completions.create(model=MODEL, messages=said("Busy once. [fail:429:1]"))
    assert answer.choices[0].message.content


@pytest.mark.parametrize("path", ["", "/v1/chat/completions", "/v1/v1"])
def test_a_wrong_base_url_is_an_error_that_names_the_right_one(up: Program, path: str) -> None:
    with client_of(up, path) as client, pytest.raises(NotFoundError, match="a base URL ends in /v1"):
        client.chat.completions.create(model=MODEL, messages=said("Hello."))
    with client_of(up, "/v1/") as client:
        assert client.chat.completions.create(model=MODEL, messages=said("Hello.")).id


def test_an_openai_client_at_the_mcp_door_is_told_so(up: Program) -> None:
    with (
        OpenAI(base_url=up.url("runtime") + "/v1", api_key="any", max_retries=0) as client,
        pytest.raises(NotFoundError, match="the MCP door speaks MCP at /mcp"),
    ):
        client.chat.completions.create(model=MODEL, messages=said("Hello."))


def test_a_client_that_leaves_gives_its_place_back(up: Program) -> None:
    async def leave() -> None:
        async with AsyncOpenAI(base_url=up.url("dataplane") + "/v1", api_key="any", max_retries=0) as client:
            stream = await client.chat.completions.create(
                model=MODEL, messages=said("Talk. [tokens:50000]"), stream=True
            )
            await anext(aiter(stream))
            whole = asyncio.create_task(
                client.chat.completions.create(model=MODEL, messages=said("Talk more. [tokens:50000]"))
            )
            await until(2)
            await stream.close()
            whole.cancel()
            await asyncio.wait((whole,))
            await until(0)

    async def until(count: int) -> None:
        async with asyncio.timeout(WAIT_S_MAX):
            while await asyncio.to_thread(in_flight, up) != count:
                pass

    asyncio.run(leave())


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_mcp_client_spawns_awaits_and_cancels_in_both_eras(up: Program, era: Literal["auto", "legacy"]) -> None:
    async def work() -> None:
        async with Client(up.url("runtime") + "/mcp", mode=era) as client:
            handles = []
            for task in ("Find. [tools:2] [parallel:2]", "Wait. [stall]"):
                spawned = await client.call_tool("spawn", {"task": task})
                handles.append((spawned.structured_content or {})["handle"])
            first = await client.call_tool("await", {"handles": handles, "mode": "any", "timeout": WAIT_S_MAX})
            runs = {run["handle"]: run for run in (first.structured_content or {})["runs"]}
            assert runs[handles[0]]["status"] == "Finished"
            assert runs[handles[0]]["toolCalls"] == 2
            cancelled = await client.call_tool("cancel", {"handle": handles[1]})
            assert (cancelled.structured_content or {})["status"] == "Cancelled"
            unknown = await client.call_tool("spawn", {"task": "x", "max_tool_calls": 1})
            assert unknown.is_error

    asyncio.run(asyncio.wait_for(work(), WAIT_S_MAX * 2))


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_an_mcp_client_without_the_path_is_told_it(up: Program, era: Literal["auto", "legacy"]) -> None:
    async def knock() -> None:
        async with Client(up.url("runtime"), mode=era):
            raise AssertionError("there is nothing to connect to")

    told = pytest.RaisesExc(MCPError, match="the MCP door speaks MCP at /mcp")
    with pytest.RaisesGroup(told, flatten_subgroups=True):
        asyncio.run(asyncio.wait_for(knock(), WAIT_S_MAX))


def test_loadgen_and_status_take_addresses_as_people_type_them_or_say_what_is_wrong(up: Program) -> None:
    stray = luftpause("loadgen", "--spawn", "1", "--task", "x", "--mcp-url", up.url("runtime"))
    assert stray.returncode == 1
    assert "the MCP door speaks MCP at /mcp" in stray.stderr
    right = luftpause("loadgen", "--spawn", "2", "--task", "x", "--mcp-url", up.url("runtime") + "/mcp/")
    assert right.returncode == 0, right
    assert len([line for line in right.stdout.splitlines() if line.startswith("answer ")]) == 2
    assert MODEL in luftpause("status", "--url", up.url("scheduler") + "/status").stdout
    stray = luftpause("status", "--url", up.url("dataplane"))
    assert stray.returncode == 1
    assert "give the address that `luftpause up` prints as status" in stray.stderr


def luftpause(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "luftpause", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
