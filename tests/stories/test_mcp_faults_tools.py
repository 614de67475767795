"""Odd tool servers and odd tool calls, against the real program: what one of them does stays with that call."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from stories.programs import Program, launch
from stories.set_ups import FREE_PORTS, MODEL, free_port, replicas, write

pytestmark = pytest.mark.timeout(120)
OBJECT = {"type": "object"}

RAW_SERVER = r"""
import json, sys, threading, time
options = json.loads(sys.argv[1])
lock = threading.Lock()
def note(what):
    if "log" in options:
        with open(options["log"], "a") as file:
            file.write(what + "\n")
def say(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
def call(message):
    name = message["params"]["name"]
    spec = options.get("on", {}).get(name, {})
    note("call " + name)
    time.sleep(spec.get("sleep", 0))
    if "error" in spec:
        say({"jsonrpc": "2.0", "id": message["id"], "error": spec["error"]})
    else:
        content = [{"type": "text", "text": "fine"}]
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}})
note("start")
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        if options.get("hang"):
            continue
        info = {"name": "raw", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        say({"jsonrpc": "2.0", "id": message["id"], "result": result})
    elif method == "tools/list":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": options["tools"]}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(message,), daemon=True).start()
    elif "id" in message and method:
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
"""


class Engine:
    """An engine in this process. A task `NAME PLAN:[step, …]` says what each turn replies; requests are kept."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_arguments: object) -> None:
                return

            def do_GET(self) -> None:
                body = json.dumps({"object": "list", "data": [{"id": MODEL}]}).encode()
                self.send_response(200 if self.path in ("/health", "/v1/models") else 404)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                engine.requests.append(asked)
                body = engine.reply(asked)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def reply(self, asked: dict[str, Any]) -> bytes:
        task = next(message["content"] for message in asked["messages"] if message["role"] == "user")
        turn = sum(message["role"] == "assistant" for message in asked["messages"])
        steps = json.loads(task.split("PLAN:", 1)[1])
        step = steps[min(turn, len(steps) - 1)]
        threading.Event().wait(step.get("wait_s", 0))
        delta: dict[str, Any] = {"role": "assistant", "content": step.get("text", "")}
        if "tool" in step:
            function = {"name": step["tool"], "arguments": step.get("arguments", "{}")}
            delta["tool_calls"] = [{"index": 0, "id": f"call_{turn}", "type": "function", "function": function}]
        choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls" if "tool" in step else "stop"}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"

    def of(self, name: str) -> list[dict[str, Any]]:
        """The requests of the run whose task begins with this name."""
        return [asked for asked in self.requests if asked["messages"][0]["content"].startswith(name + " ")]

    def told(self, name: str) -> list[str]:
        """What the tools told that run, as its last request has it."""
        return [message["content"] for message in self.of(name)[-1]["messages"] if message["role"] == "tool"]

    def offered(self, name: str) -> list[list[str]]:
        """The tools that each turn of that run was offered."""
        return [[tool["function"]["name"] for tool in asked.get("tools", [])] for asked in self.of(name)]


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join(10)


def plan(name: str, *steps: dict[str, object]) -> str:
    return f"{name} PLAN:{json.dumps(steps)}"


def raw_server(directory: Path, name: str, **options: object) -> str:
    """Return the declaration of a hand-written stdio tool server."""
    script = directory / "raw_server.py"
    script.write_text(RAW_SERVER)
    command = json.dumps([sys.executable, str(script), json.dumps(options)])
    return f'\n[[tools]]\nname = "{name}"\ncommand = {command}\n'


@contextmanager
def up(directory: Path, config: str) -> Iterator[Program]:
    program = launch(directory, "up", "up", "--config", config)
    try:
        yield program
    finally:
        program.kill()


class Door:
    """The MCP door through the official client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = await asyncio.wait_for(self.client.call_tool(tool, arguments), 60)
        assert not result.is_error, result.content
        answer = result.structured_content
        assert isinstance(answer, dict)
        return answer

    async def spawn(self, task: str, **more: object) -> str:
        return str((await self.call("spawn", task=task, model=MODEL, **more))["handle"])

    async def finish(self, *handles: str, timeout_s: float = 20) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = (await self.call("await", handles=handles, timeout=timeout_s))["runs"]
        return runs

    async def names(self) -> list[str]:
        return [tool["name"] for tool in (await self.call("tools"))["tools"]]

    async def wait_for_names(self, holds: Callable[[list[str]], bool]) -> None:
        deadline = time.monotonic() + 30
        while not holds(names := await self.names()):
            assert time.monotonic() < deadline, names
            await asyncio.sleep(0.05)


@asynccontextmanager
async def door(program: Program) -> AsyncIterator[Door]:
    async with Client(program.url("runtime") + "/mcp") as client:
        yield Door(client)


def test_a_tool_server_that_never_answers_does_not_hold_up_a_spawn_without_tools(
    tmp_path: Path, engine: Engine
) -> None:
    server = raw_server(tmp_path, "hung", hang=True, tools=[])
    with up(tmp_path, write(tmp_path, FREE_PORTS, replicas(engine.url), server)) as program:

        async def main() -> str:
            async with door(program) as mcp:
                await mcp.spawn(plan("free", {"text": "done"}), tools=[])
                return program.output.read_text()

        assert "tool_server_lost" not in asyncio.run(main()), "by then it had been waited for as long as one may be"


BREAKERS = {
    "an error that talks of a closed connection": ("closer", "{}"),
    "arguments that are nested too deeply to send": ("fine", '{"x":' + "[" * 400 + "]" * 400 + "}"),
}


@pytest.mark.parametrize("breaker", BREAKERS)
def test_one_run_cannot_break_off_the_calls_of_another(tmp_path: Path, engine: Engine, breaker: str) -> None:
    log = tmp_path / "calls"
    server = raw_server(
        tmp_path,
        "shared",
        log=str(log),
        tools=[{"name": name, "inputSchema": OBJECT} for name in ("slow", "closer", "fine")],
        on={"slow": {"sleep": 3}, "closer": {"error": {"code": -32000, "message": "Connection closed"}}},
    )
    tool, arguments = BREAKERS[breaker]
    with up(tmp_path, write(tmp_path, FREE_PORTS, replicas(engine.url), server)) as program:

        async def main() -> list[dict[str, Any]]:
            async with door(program) as mcp:
                await mcp.wait_for_names(lambda names: "slow" in names)
                victim = await mcp.spawn(plan("victim", {"tool": "slow"}, {"text": "done"}))
                deadline = time.monotonic() + 10
                while "call slow" not in log.read_text():
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.02)
                other = await mcp.spawn(plan("other", {"tool": tool, "arguments": arguments}, {"text": "done"}))
                return await mcp.finish(victim, other)

        victim, _ = asyncio.run(main())
    assert engine.told("victim") == ["fine"]
    assert victim["failedToolCalls"] == 0


def test_a_pattern_that_backtracks_does_not_stop_the_whole_process(tmp_path: Path, engine: Engine) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    server = raw_server(tmp_path, "odd", tools=[{"name": "t", "inputSchema": schema}])
    with up(tmp_path, write(tmp_path, FREE_PORTS, replicas(engine.url), server)) as program:

        async def main() -> dict[str, Any]:
            async with door(program) as mcp:
                await mcp.wait_for_names(lambda names: "t" in names)
                arguments = json.dumps({"x": "a" * 40 + "!"})  # hours, for whoever tries every way to read it
                handle = await mcp.spawn(plan("stuck", {"tool": "t", "arguments": arguments}, {"text": "done"}))
                return (await mcp.finish(handle))[0]

        assert asyncio.run(main())["status"] == "Finished"


def http_tools(name: str, port: int) -> str:
    return f'\n[[tools]]\nname = "{name}"\nurl = "http://127.0.0.1:{port}/mcp"\n'


def test_a_run_keeps_its_tools_when_another_server_brings_the_same_names(tmp_path: Path, engine: Engine) -> None:
    first, second = free_port(), free_port()
    config = write(tmp_path, FREE_PORTS, replicas(engine.url), http_tools("one", first), http_tools("two", second))
    servers = [launch(tmp_path, "first", "fake-mcp", "--port", str(first), "--delay-s", "0")]
    try:
        with up(tmp_path, config) as program:

            async def main() -> dict[str, Any]:
                async with door(program) as mcp:
                    await mcp.wait_for_names(lambda names: "lookup" in names)
                    step = {"wait_s": 8, "tool": "lookup", "arguments": '{"query": "x"}'}
                    handle = await mcp.spawn(plan("early", step, {"text": "done"}))
                    servers.append(await asyncio.to_thread(second_server))
                    await mcp.wait_for_names(lambda names: len(names) > 2)
                    return (await mcp.finish(handle))[0]

            def second_server() -> Program:
                return launch(tmp_path, "second", "fake-mcp", "--port", str(second), "--delay-s", "0")

            run = asyncio.run(main())
    finally:
        for server in servers:
            server.kill()
    assert run["failedToolCalls"] == 0, engine.told("early")
    offered = engine.offered("early")
    assert offered[0] == offered[-1]


def test_a_recovered_run_keeps_its_tools_when_their_server_is_back_a_little_later(
    tmp_path: Path, engine: Engine
) -> None:
    port = free_port()
    config = write(tmp_path, FREE_PORTS, replicas(engine.url), http_tools("one", port))
    tools = launch(tmp_path, "tools", "fake-mcp", "--port", str(port), "--delay-s", "0")
    try:
        with up(tmp_path, config) as program:

            async def begin() -> str:
                async with door(program) as mcp:
                    await mcp.wait_for_names(lambda names: "lookup" in names)
                    step = {"wait_s": 2, "tool": "lookup", "arguments": '{"query": "x"}'}
                    return await mcp.spawn(plan("recovered", step, {"text": "done"}))

            handle = asyncio.run(begin())
        tools.kill()
        with up(tmp_path, config) as program:
            tools = launch(tmp_path, "tools", "fake-mcp", "--port", str(port), "--delay-s", "0")

            async def end() -> dict[str, Any]:
                async with door(program) as mcp:
                    return (await mcp.finish(handle))[0]

            run = asyncio.run(end())
    finally:
        tools.kill()
    assert run["status"] == "Finished"
    offered = engine.offered("recovered")
    assert offered == [["deep_search", "lookup"]] * len(offered)
    assert run["failedToolCalls"] == 0
