"""Odd requests at the real MCP door: each is refused in words or served, and none waits for ever."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from stories.programs import Program, launch
from stories.set_ups import FREE_PORTS, MODEL, launched_engines, write

pytestmark = pytest.mark.timeout(120)
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "breaker", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("door")
    config = write(directory, FREE_PORTS, launched_engines("--ttft-ms", "1", "--token-ms", "1", instances=1))
    program = launch(directory, "up", "up", "--config", config)
    try:
        yield program
    finally:
        program.interrupt()


def call(up: Program, tool: str, arguments: str, *, timeout_s: float = 10, host: str = "") -> tuple[int, str]:
    """Call a tool with arguments as raw JSON text; return status and body."""
    address = up.url("runtime").removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    params = f'{{"name": "{tool}", "arguments": {arguments}, "_meta": {json.dumps(META)}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
    headers = {
        "Host": host or address,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    try:
        connection.request("POST", "/mcp", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def result(body: str) -> dict[str, Any]:
    """Return the result in a body, be it JSON or one server-sent event."""
    text = body if body.startswith("{") else body.split("data: ", 1)[1].splitlines()[0]
    answer: dict[str, Any] = json.loads(text)
    assert "result" in answer, answer
    found: dict[str, Any] = answer["result"]
    return found


def test_a_timeout_that_is_no_number_is_refused_instead_of_waiting_for_ever(up: Program) -> None:
    task = json.dumps({"task": "[stall] never", "model": MODEL})
    handle = result(call(up, "spawn", task)[1])["structuredContent"]["handle"]
    try:
        _, body = call(up, "await", f'{{"handles": ["{handle}"], "timeout": NaN}}', timeout_s=13)
        assert "timeout" in body
        assert "error" in body.lower()
    except TimeoutError:
        pytest.fail("the call was still waiting after 13 seconds")
    finally:
        call(up, "cancel", json.dumps({"handle": handle}))


@pytest.mark.parametrize("limit", ["maxToolCalls", "maxTokens"])
def test_a_whole_number_written_with_a_point_is_a_whole_number(up: Program, limit: str) -> None:
    _, body = call(up, "spawn", f'{{"task": "x", "model": "{MODEL}", "{limit}": 2.0}}')
    assert "handle" in result(body)["structuredContent"]


def test_half_a_surrogate_pair_in_the_model_is_refused_in_words(up: Program) -> None:
    _, body = call(up, "spawn", r'{"task": "x", "model": "\ud800"}')
    refused = result(body)
    assert refused["isError"]
    assert "surrogate" in refused["content"][0]["text"]


def test_a_refusal_does_not_repeat_a_huge_argument(up: Program) -> None:
    _, body = call(up, "spawn", json.dumps({"task": ["a" * 1_000_000]}))
    assert len(result(body)["content"][0]["text"]) < 10_000


@pytest.mark.parametrize("host", ["LOCALHOST:1", "127.0.0.2", "ip6-localhost"])
def test_mcp_answers_for_every_host_that_the_rest_of_the_door_answers_for(up: Program, host: str) -> None:
    address = up.url("runtime").removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", "/status", headers={"Host": host})
    status = connection.getresponse().status
    connection.close()
    assert status == 200
    assert call(up, "tools", "{}", host=host)[0] == 200
