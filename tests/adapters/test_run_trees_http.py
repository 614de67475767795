"""A runtime's runs and a person's decision, over HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from adapters.turns_http.scripted_door import Answer, Door, hang_up, silence, status
from luftpause.adapters import run_trees_http
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.run_trees_http import HttpRunTrees
from luftpause.ports.run_trees import Costs, NotDecidedError, PendingApproval, RuntimeAwayError, RunTree

T = TypeVar("T")
ROW = {
    "handle": "h1",
    "task": "look <b>around",
    "status": "AwaitingApproval",
    "phase": "calling_tools",
    "model": "m",
    "class": "batch",
    "principal": "alice",
    "caller": "chat",
    "parent": "h0",
    "origin": {"door": "llm", "run": "r"},
    "error": None,
    "pending_approvals": [{"call": "c1", "tool": "rm", "arguments": "{}", "reason": "it destroys"}],
    "subtree": {"turns": 2, "prompt_tokens": 9, "tool_seconds": 1.5},
}


def answer(body: object, how: str = "200 OK") -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {how}\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw)
        await writer.drain()

    return write


def asked(work: Callable[[HttpRunTrees, str], Awaitable[T]], *answers: Answer, token: str = "") -> tuple[T, Door]:
    async def ask() -> tuple[T, Door]:
        door = Door(list(answers))
        server = await asyncio.start_server(door.visit, "127.0.0.1", 0)
        engines = HttpEngines()
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        trees = HttpRunTrees(engines, token)
        trees.know(url + "/")
        trees.know(url)
        assert trees.known == (url,)
        try:
            async with asyncio.timeout(20):
                return await work(trees, url), door
        finally:
            await engines.close()
            server.close()
            for visit in door.visits:
                visit.cancel()
            await asyncio.gather(*door.visits, return_exceptions=True)

    return asyncio.run(ask())


def looked(*answers: Answer, token: str = "") -> tuple[RunTree, Door]:
    return asked(lambda trees, url: trees.look(url), *answers, token=token)


def decided(*answers: Answer) -> tuple[bool, Door]:
    return asked(lambda trees, url: trees.decide(url, "h1", "c1", allow=True), *answers)


def test_runs_are_read_with_what_waits_for_a_person() -> None:
    tree, door = looked(answer({"runs": [ROW], "omitted": 4, "origins": []}), token="sesame")
    (run,) = tree.runs
    assert (run.handle, run.task, run.status, run.parent, run.above) == (
        "h1",
        "look <b>around",
        "AwaitingApproval",
        "h0",
        "r",
    )
    assert (run.principal, run.caller) == ("alice", "chat")
    assert list(run.approvals) == [PendingApproval(call="c1", tool="rm", arguments="{}", reason="it destroys")]
    assert (run.subtree, tree.omitted) == (Costs(turns=2, prompt_tokens=9, tool_seconds=1.5), 4)
    assert door.asked[0].headers["authorization"] == "Bearer sesame"


def test_without_a_token_none_is_sent() -> None:
    tree, door = looked(answer({"runs": []}))
    assert (list(tree.runs), door.asked[0].headers.get("authorization")) == ([], None)


@pytest.mark.parametrize("odd", [answer(b"<html>"), answer({"runs": 5}), status(500), hang_up, silence])
def test_a_runtime_that_does_not_tell_is_away(odd: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_trees_http, "TIMEOUT_S", 0.2)
    with pytest.raises(RuntimeAwayError):
        looked(odd)
    with pytest.raises((RuntimeAwayError, NotDecidedError)):
        decided(odd)


@pytest.mark.parametrize("was_waiting", [True, False])
def test_a_decision_goes_to_the_runtime_with_our_token_and_comes_back(was_waiting: bool) -> None:
    was_decided, door = asked(
        lambda trees, url: trees.decide(url, "h1", "c1", allow=True), answer({"decided": was_waiting}), token="sesame"
    )
    assert was_decided is was_waiting
    assert json.loads(door.asked[0].body) == {"handle": "h1", "call": "c1", "allow": True}
    assert door.asked[0].headers["authorization"] == "Bearer sesame"


def test_a_refusal_is_told_in_the_runtimes_words() -> None:
    with pytest.raises(NotDecidedError, match="there is no run 'h1'"):
        decided(answer({"error": {"code": 1, "message": "there is no run 'h1'"}}, "404 Not Found"))
