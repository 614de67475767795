"""Several principals at the doors of a whole program: each has its own runs, and no token goes any further."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stories.programs import Program, running
from stories.raw_wire import WAIT_S, Answer, Engine, ask, chat_body, whole
from stories.set_ups import FREE_PORTS, MODEL, replicas, write

pytestmark = pytest.mark.timeout(120)

PRINCIPALS = """
[[principals]]
name = "alice"
token_env = "ALICE_TOKEN"
[[principals]]
name = "nightly"
token_env = "NIGHTLY_TOKEN"
classes = ["batch"]
"""
TOOLS = """
[[tools]]
name = "facts"
command = ["${python}", "-m", "luftpause", "fake-mcp", "--stdio", "--delay-s", "0"]
"""
TOKENS = {"LUFTPAUSE_TOKEN": "t-operator", "ALICE_TOKEN": "t-alice\n", "NIGHTLY_TOKEN": "t-nightly"}
OPERATOR, ALICE, NIGHTLY = (f"authorization: Bearer t-{name}" for name in ("operator", "alice", "nightly"))
MESSAGES = json.dumps({"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()
RESPONSES = json.dumps({"model": MODEL, "input": "hi"}).encode()
PATHS = [("/v1/chat/completions", chat_body()), ("/v1/messages", MESSAGES), ("/v1/responses", RESPONSES)]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def up(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("principals")
    config = write(directory, FREE_PORTS, replicas(engine.url), PRINCIPALS, TOOLS)
    with running(directory, "up", "up", "--config", config, "--log-level", "debug", env=TOKENS) as program:
        yield program


def post(up: Program, path: str, body: bytes, *lines: str) -> Answer:
    return ask(up.url("dataplane"), body, *lines, start=f"POST {path} HTTP/1.1")


def end_run(up: Program, run: str, who: str) -> int:
    return ask(up.url("dataplane"), b"", who, start=f"DELETE /v1/runs/{run} HTTP/1.1").status


@pytest.mark.parametrize(("path", "body"), PATHS)
def test_a_wrong_token_and_a_class_that_is_not_allowed_are_told_in_the_dialect(
    up: Program, path: str, body: bytes
) -> None:
    unknown = post(up, path, body, "x-api-key: t-nobody")
    forbidden = post(up, path, body, NIGHTLY, "x-luftpause-class: interactive")

    for answer, code, kind in ((unknown, 401, "authentication_error"), (forbidden, 403, "permission_error")):
        told = json.loads(answer.body)
        assert (answer.status, told["error"]["type"]) == (code, kind)
        assert (told.get("type") == "error") == (path == "/v1/messages")
        assert answer.headers["x-luftpause-run-id"].startswith("run_")
    assert "only for 'batch'" in forbidden.body.decode()


def test_a_run_belongs_to_whoever_began_it(up: Program) -> None:
    run = post(up, *PATHS[0], ALICE).headers["x-luftpause-run-id"]

    assert end_run(up, run, NIGHTLY) == 404
    assert end_run(up, run, OPERATOR) == 404
    assert post(up, *PATHS[0], NIGHTLY, f"x-luftpause-run-id: {run}").status == 404
    assert end_run(up, run, ALICE) == 204


def test_a_request_that_names_no_class_gets_the_first_that_its_principal_may_have(up: Program) -> None:
    run = post(up, *PATHS[0], NIGHTLY).headers["x-luftpause-run-id"]

    seen = json.loads(ask(up.url("scheduler"), b"", OPERATOR, start="GET /status HTTP/1.1").body)
    assert "batch" in {row["class"] for row in seen["runs"]}
    assert end_run(up, run, NIGHTLY) == 204


@pytest.mark.parametrize("path", ["/status", "/timeline", "/metrics", "/nothing"])
def test_only_the_operator_may_use_the_scheduler(up: Program, path: str) -> None:
    answers = [ask(up.url("scheduler"), b"", who, start=f"GET {path} HTTP/1.1") for who in (ALICE, NIGHTLY, OPERATOR)]

    assert [answer.status == 401 for answer in answers] == [True, True, False]
    assert ask(up.url("scheduler"), start="GET /health HTTP/1.1").status == 200


def test_the_page_that_asks_for_the_token_needs_none(up: Program) -> None:
    page = ask(up.url("scheduler"), start="GET / HTTP/1.1")
    assert (page.status, b"asks for a token" in page.body) == (200, True)


def mcp(up: Program, who: str, tool: str, **arguments: object) -> dict[str, Any]:
    """Call a tool and return its result."""
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    name, _, value = who.partition(": ")
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": "tools/call",
        "mcp-name": tool,
        name: value,
    }
    connection = http.client.HTTPConnection(up.url("runtime").removeprefix("http://"), timeout=20)
    try:
        connection.request("POST", "/mcp", json.dumps(call), headers)
        body = connection.getresponse().read().decode()
    finally:
        connection.close()
    lines = body.splitlines() if body.startswith("{") else [x[6:] for x in body.splitlines() if x.startswith("data: {")]
    result: dict[str, Any] = json.loads(lines[-1])["result"]
    return result


def says(delta: dict[str, object], reason: str) -> bytes:
    """A streamed reply of one piece."""
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": reason}
    body = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def looks_up_once(body: bytes) -> bytes:
    """What a model says that calls `lookup` once."""
    function = {"name": "lookup", "arguments": '{"query": "moon"}'}
    call = {"index": 0, "id": "call_0", "type": "function", "function": function}
    if any(message["role"] == "tool" for message in json.loads(body)["messages"]):
        return says({"content": "found"}, "stop")
    return says({"tool_calls": [call]}, "tool_calls")


def handles(up: Program, who: str) -> set[str]:
    answer = ask(up.url("runtime"), b"", who, start="GET /status HTTP/1.1")
    return {run["handle"] for run in json.loads(answer.body)["runs"]}


def test_a_sub_agent_belongs_to_the_client_that_spawned_it_also_at_the_llm_door(up: Program, engine: Engine) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def reply(body: bytes) -> bytes:
        if b"find the moon" in body:
            begun.set()
            may_end.wait(WAIT_S)
        return whole()

    engine.reply = reply
    try:
        spawned = mcp(up, ALICE, "spawn", task="find the moon", model=MODEL, tools=[])
        handle = spawned["structuredContent"]["handle"]
        assert begun.wait(WAIT_S)
        assert post(up, *PATHS[0], NIGHTLY, "x-luftpause-class: batch", f"x-luftpause-run-id: {handle}").status == 404
        assert end_run(up, handle, OPERATOR) == 404
    finally:
        may_end.set()
        engine.reply = lambda _: whole()

    assert mcp(up, NIGHTLY, "await", handles=[handle])["isError"]
    assert mcp(up, NIGHTLY, "cancel", handle=handle)["isError"]
    assert handle not in json.dumps(mcp(up, NIGHTLY, "status")["structuredContent"])
    assert handle in handles(up, ALICE)
    assert handle in handles(up, OPERATOR)
    assert handle not in handles(up, NIGHTLY)
    assert mcp(up, ALICE, "cancel", handle=handle)["structuredContent"]["handle"] == handle


def test_the_operator_decides_for_others_at_the_page_and_not_as_an_agent(up: Program, engine: Engine) -> None:
    engine.reply = looks_up_once
    try:
        order = {"task": "look it up", "model": MODEL, "tools": ["lookup"], "approveTools": ["lookup"]}
        handle = mcp(up, ALICE, "spawn", **order)["structuredContent"]["handle"]
        (asked,) = mcp(up, ALICE, "await", handles=[handle])["structuredContent"]["runs"]
        assert asked["status"] == "AwaitingApproval", asked["error"]
        tools = json.loads(ask(up.url("scheduler"), b"", OPERATOR, start="GET /status HTTP/1.1").body)["tools"]
        assert [(tool["tool"], tool["running"]) for tool in tools if tool["running"]] == [("a person", 1)]
        seen = json.loads(ask(up.url("runtime"), b"", OPERATOR, start="GET /status HTTP/1.1").body)["runs"]
        (waiting,) = [each for each in seen if each["pending_approvals"]]
        assert (waiting["handle"], waiting["principal"]) == (handle, "alice")
        assert mcp(up, OPERATOR, "approve", handle=handle, allow=True)["isError"]

        call = waiting["pending_approvals"][0]["call"]
        body = json.dumps({"handle": handle, "call": call, "allow": True}).encode()
        answers = [ask(up.url("scheduler"), body, who, start="POST /approvals HTTP/1.1") for who in (ALICE, OPERATOR)]
        assert [answer.status for answer in answers] == [401, 200], answers[1].body
        assert json.loads(answers[1].body) == {"decided": True}
        (ended,) = mcp(up, ALICE, "await", handles=[handle])["structuredContent"]["runs"]
        assert (ended["status"], ended["toolCalls"]) == ("Finished", 1)
    finally:
        engine.reply = lambda _: whole()


def test_a_sub_agent_gets_only_a_class_that_its_principal_may_have(up: Program) -> None:
    refused = mcp(up, NIGHTLY, "spawn", task="hi", model=MODEL, serviceClass="interactive")

    assert refused["isError"]
    assert "only for 'batch'" in refused["content"][0]["text"]
    handle = mcp(up, NIGHTLY, "spawn", task="hi", model=MODEL, tools=[])["structuredContent"]["handle"]
    seen = json.loads(ask(up.url("runtime"), b"", NIGHTLY, start="GET /status HTTP/1.1").body)["runs"]
    assert {run["handle"]: run["class"] for run in seen}[handle] == "batch"


def test_a_wrong_token_at_the_mcp_door_is_told_as_json_rpc(up: Program) -> None:
    answer = ask(up.url("runtime"), b"{}", "authorization: Bearer t-nobody", start="POST /mcp HTTP/1.1")

    assert answer.status == 401
    assert "token" in json.loads(answer.body)["error"]["message"]
    assert json.loads(answer.body)["jsonrpc"] == "2.0"


PRESENTED = [ALICE, "x-api-key: t-alice", "x-goog-api-key: t-alice", "cookie: luftpause=t-alice", "api-key: t-alice"]


@pytest.mark.parametrize(("path", "body"), PATHS)
def test_no_credential_of_a_client_reaches_an_engine_or_a_log(
    up: Program, engine: Engine, path: str, body: bytes
) -> None:
    before = len(engine.heads)
    for line in PRESENTED:
        post(up, path, body, *({line, ALICE}))
    post(up, f"{path}?key=t-alice&beta=true", body)

    sent = engine.heads[before:]
    asked = [each for each in engine.bodies[before:] if each != b"{}"]  # the door may ask first what it speaks
    assert len(asked) == len(PRESENTED) + 1
    for head in sent:
        assert b"t-alice" not in head
        assert b"authorization" not in head.lower()
    assert b"t-" + b"alice" not in up.output.read_bytes()


def test_a_token_in_the_query_opens_no_other_door(up: Program) -> None:
    assert ask(up.url("dataplane"), start="GET /v1/models?key=t-alice HTTP/1.1").status == 200
    assert ask(up.url("runtime"), start="GET /status?key=t-alice HTTP/1.1").status == 401
    assert ask(up.url("scheduler"), start="GET /status?key=t-operator HTTP/1.1").status == 401


def test_principals_alone_leave_the_scheduler_closed(tmp_path: Path, engine: Engine) -> None:
    config = write(tmp_path, FREE_PORTS, replicas(engine.url), PRINCIPALS)
    env = {**TOKENS, "LUFTPAUSE_TOKEN": ""}
    with running(tmp_path, "up", "up", "--config", config, env=env) as alone:
        assert post(alone, *PATHS[0], ALICE).status == 200
        assert post(alone, *PATHS[0]).status == 401
        assert ask(alone.url("scheduler"), start="GET /status HTTP/1.1").status == 401
        assert ask(alone.url("scheduler"), b"", "authorization: Bearer", start="GET /status HTTP/1.1").status == 401
        said = alone.output.read_text()
        assert said.count("LUFTPAUSE_TOKEN is not set") == 1
        assert "Bearer $ALICE_TOKEN" in said
        assert "--token-env ALICE_TOKEN" in said
