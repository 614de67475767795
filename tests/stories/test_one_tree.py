"""One tree over both doors: a sub-agent of the MCP door knows the run of the LLM door whose tool call spawned it."""

import asyncio
import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from anthropic import Anthropic
from anthropic.types import ToolParam
from mcp import Client
from mcp_types import RequestParamsMeta
from openai import OpenAI
from openai.types.responses import FunctionToolParam

from stories.programs import Program, launch, running
from stories.raw_wire import soon
from stories.set_ups import FREE_PORTS, MODEL, free_port, launched_engines, replicas, tools, write

pytestmark = pytest.mark.timeout(180)
WAIT_S = 60.0
LOOK = "{tools:1} {tool:lookup} look at the sky"
"""A sub-agent that is out on a tool for as long as a story goes."""

ASK = f"Send somebody. [tools:1] [tool:spawn] [arg:task={LOOK}]"
SPAWN: dict[str, object] = {
    "type": "object",
    "properties": {"task": {"type": "string"}},
    "required": ["task"],
}
LOOK_S = 100.0
WITH: dict[str, object] = {"model": MODEL, "tools": ["lookup"]}
"""Named, the tool is waited for, however long its server takes to start."""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Program]:
    config = write(tmp_path, FREE_PORTS, launched_engines("--speedup", "10"), tools(LOOK_S))
    with running(tmp_path, "up", "up", "--config", config) as program:
        yield program


def status(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url + "/status", timeout=10) as answer:
        seen: dict[str, Any] = json.load(answer)
    return seen


def eventually(look: Callable[[], object], expected: object) -> None:
    assert soon(lambda: look() == expected, WAIT_S), look()


def asked_in_messages(base: str) -> tuple[str, str, dict[str, object]]:
    """Take a turn with the anthropic package; return the run, the call's id and its arguments."""
    tool: ToolParam = {"name": "mcp__lp__spawn", "input_schema": SPAWN}
    with Anthropic(base_url=base, api_key="any", max_retries=0, timeout=WAIT_S) as client:
        raw = client.messages.with_raw_response.create(
            model=MODEL, max_tokens=500, messages=[{"role": "user", "content": ASK}], tools=[tool]
        )
        (block,) = [block for block in raw.parse().content if block.type == "tool_use"]
        return raw.headers["x-luftpause-run-id"], block.id, dict(block.input)


def asked_by_codex(base: str, thread: str) -> tuple[str, str, dict[str, object]]:
    """Take a turn as Codex does."""
    tool: FunctionToolParam = {"type": "function", "name": "spawn", "parameters": SPAWN, "strict": False}
    with OpenAI(base_url=base + "/v1", api_key="any", max_retries=0, timeout=WAIT_S) as client:
        raw = client.responses.with_raw_response.create(
            model=MODEL, input=ASK, tools=[tool], store=False, extra_headers={"thread-id": thread}
        )
        (call,) = [item for item in raw.parse().output if item.type == "function_call"]
        return raw.headers["x-luftpause-run-id"], call.call_id, json.loads(call.arguments)


async def spawned(url: str, arguments: Mapping[str, object], **meta: str) -> str:
    """Spawn as a harness does whose model asked for that."""
    named = cast("RequestParamsMeta", {key.replace("__", "/"): value for key, value in meta.items()})
    async with Client(url + "/mcp") as client:
        result = await asyncio.wait_for(client.call_tool("spawn", {**WITH, **arguments}, meta=named), WAIT_S)
        assert result.structured_content is not None, result.content
        handle: str = result.structured_content["handle"]
        return handle


async def shown(url: str, handle: str) -> dict[str, Any]:
    async with Client(url + "/mcp") as client:
        result = await asyncio.wait_for(client.call_tool("status", {"handles": [handle]}), WAIT_S)
        assert result.structured_content is not None, result.content
        run: dict[str, Any] = result.structured_content["runs"][0]
        return run


def is_one_tree(scheduler: str, runtime: str, parent: str, handle: str, *, parent_phase: str | None = "paused") -> None:
    """Prove that both doors' statuses show the sub-agent below its parent."""
    eventually(lambda: status(runtime)["origins"], [{"door": "llm", "run": parent, "children": [handle]}])
    child = {"run": handle, "phase": "paused", "class": "interactive"}
    parent_class = None if parent_phase is None else "interactive"
    family = {"run": parent, "phase": parent_phase, "class": parent_class, "at_work": 1, "children": [child]}
    eventually(lambda: [_without_costs(each) for each in status(scheduler)["families"]], [{**family, "omitted": 0}])


def _without_costs(family: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in family.items() if key not in ("own", "subtree")}
    return {**kept, "children": [_without_costs(child) for child in family["children"]]} if "children" in kept else kept


def test_a_sub_agent_of_claude_code_stands_below_the_run_that_called_for_it(up: Program) -> None:
    parent, call, arguments = asked_in_messages(up.url("dataplane"))
    handle = asyncio.run(spawned(up.url("runtime"), arguments, claudecode__toolUseId=call))
    is_one_tree(up.url("scheduler"), up.url("runtime"), parent, handle)
    origin = asyncio.run(shown(up.url("runtime"), handle))["origin"]
    assert origin == {"door": "llm", "run": parent, "toolCall": call, "thread": None}


@pytest.mark.parametrize("names_call", [True, False])
def test_a_sub_agent_of_codex_does_too(up: Program, names_call: bool) -> None:
    parent, call, arguments = asked_by_codex(up.url("dataplane"), "t-1")
    meta = {"callId": call, "threadId": "t-1"} if names_call else {"threadId": "t-1"}
    handle = asyncio.run(spawned(up.url("runtime"), arguments, **meta))
    is_one_tree(up.url("scheduler"), up.url("runtime"), parent, handle)


def test_what_nobody_called_for_has_no_parent(up: Program) -> None:
    handle = asyncio.run(
        spawned(up.url("runtime"), {"task": "[tokens:1] hello", "tools": []}, claudecode__toolUseId="made-up")
    )
    eventually(lambda: asyncio.run(shown(up.url("runtime"), handle))["status"], "Finished")
    origin = asyncio.run(shown(up.url("runtime"), handle))["origin"]
    assert origin == {"door": "llm", "run": None, "toolCall": "made-up", "thread": None}
    assert (status(up.url("runtime"))["origins"], status(up.url("scheduler"))["families"]) == ([], [])


def test_a_restart_forgets_no_parent(tmp_path: Path) -> None:
    engines = launched_engines("--speedup", "10")
    config = write(tmp_path, FREE_PORTS, engines, tools(LOOK_S))
    first = launch(tmp_path, "up", "up", "--config", config)
    try:
        parent, call, arguments = asked_in_messages(first.url("dataplane"))
        handle = asyncio.run(spawned(first.url("runtime"), arguments, claudecode__toolUseId=call))
        is_one_tree(first.url("scheduler"), first.url("runtime"), parent, handle)
    finally:
        first.kill()
    write(tmp_path, FREE_PORTS, engines, tools(0.01))  # the look-up is made again, and is quick now
    with running(tmp_path, "up", "up", "--config", config) as second:
        eventually(lambda: asyncio.run(shown(second.url("runtime"), handle))["status"], "Finished")
        assert asyncio.run(shown(second.url("runtime"), handle))["origin"]["run"] == parent


def test_the_doors_may_be_processes_of_their_own_and_the_scheduler_may_restart(tmp_path: Path) -> None:
    link, http, mcp, *doors = (free_port() for _ in range(5))
    with ExitStack() as stack:
        engine = stack.enter_context(
            running(tmp_path, "engine", "fake-engine", "--port", "0", "--model", MODEL, "--speedup", "10")
        )
        ports = f"[scheduler]\nport = {link}\nhttp_port = {http}\n[runtime]\nport = {mcp}\n"
        configs = []
        for number, port in enumerate(doors):
            (tmp_path / str(number)).mkdir()
            door = f"[dataplane]\nport = {port}\n"
            configs.append(write(tmp_path / str(number), replicas(engine.url("engine")), tools(LOOK_S), ports, door))
        scheduler = stack.enter_context(running(tmp_path, "scheduler", "scheduler", "--config", configs[0]))
        for number, config in enumerate(configs):
            stack.enter_context(running(tmp_path, f"door{number}", "dataplane", "--config", config))
        runtime = stack.enter_context(running(tmp_path, "runtime", "runtime", "--config", configs[1]))
        parent, call, arguments = asked_in_messages(f"http://127.0.0.1:{doors[0]}")
        handle = asyncio.run(spawned(runtime.url("runtime"), arguments, claudecode__toolUseId=call))
        is_one_tree(scheduler.url("scheduler"), runtime.url("runtime"), parent, handle)
        scheduler.kill()
        again = stack.enter_context(running(tmp_path, "scheduler", "scheduler", "--config", configs[0]))
        is_one_tree(again.url("scheduler"), runtime.url("runtime"), parent, handle)
