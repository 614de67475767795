"""The MCP door of the real program, killed or left in the middle: nothing is lost, asked or done twice."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.session import ElicitationFnT
from mcp_types import ElicitRequestParams, ElicitResult

from services.runtime.mcp_door.wire import Wire
from stories.programs import Program, launch, running
from stories.set_ups import FREE_PORTS, MODEL, replicas, write

pytestmark = pytest.mark.timeout(180)
RUNS = 6
DELETE: dict[str, Any] = {"task": "[tools:1] [tool:delete_note] clean up", "tools": ["delete_note"]}
"""Names its tool, so that the spawn waits for the tool's server."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[str]:
    options = ("--port", "0", "--model", MODEL, "--ttft-ms", "1", "--token-ms", "2")
    with running(tmp_path, "engine", "fake-engine", *options) as program:
        yield program.url("engine")


def tools(effects: Path) -> str:
    words = ["${python}", "-m", "luftpause", "fake-mcp", "--stdio", "--delay-s", "0", "--deep-delay-s", "0"]
    command = json.dumps([*words, "--destructive", "--effects", str(effects)])
    return f'[[tools]]\nname = "notes"\ncommand = {command}\n'


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await asyncio.wait_for(client.call_tool(tool, arguments), 60)
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


class Yes:
    """A person who allows everything, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"allow": True})


def at(up: Program, mode: Literal["auto", "legacy"] = "auto", person: ElicitationFnT | None = None) -> Client:
    return Client(up.url("runtime") + "/mcp", mode=mode, elicitation_callback=person)


RUN: dict[str, object] = {"task": "[tools:0] [tokens:300] tell a story", "maxTokens": 0, "idempotencyKey": "story"}


async def before(up: Program) -> dict[str, Any]:
    """Begin an await, a run, two tasks and a question, and leave them open."""
    url = up.url("runtime")
    async with at(up) as client, Wire.at(url) as tasks, Wire.at(url, {}) as plain:
        begun: dict[str, Any] = {"deleting": (await call(client, "spawn", **DELETE))["handle"]}
        shown = (await call(client, "await", handles=[begun["deleting"]]))["runs"][0]
        assert shown["status"] == "AwaitingApproval"
        begun["telling"] = (await call(client, "spawn", **{**RUN, "idempotencyKey": "waited for"}))["handle"]
        begun["task"] = (await tasks.call("run", RUN | {"idempotencyKey": "task"}))["taskId"]
        begun["asking task"] = (await tasks.call("run", DELETE))["taskId"]
        begun["asked"] = await plain.call("run", DELETE)
        assert begun["asked"]["resultType"] == "input_required"

    async def leave_open(tool: str, **arguments: object) -> None:
        async with at(up) as client:
            await call(client, tool, **arguments)

    waiting = [
        asyncio.create_task(leave_open("await", handles=[begun["telling"]])),
        asyncio.create_task(leave_open("run", **RUN)),
    ]
    async with httpx2.AsyncClient(base_url=url) as http:
        while len((await http.get("/status")).json()["runs"]) < RUNS:
            continue
    up.kill()
    await asyncio.gather(*waiting, return_exceptions=True)
    return begun


async def after(up: Program, begun: dict[str, Any]) -> None:
    person = Yes()
    url = up.url("runtime")
    async with at(up, "legacy", person) as session, at(up) as client, Wire.at(url) as tasks, Wire.at(url, {}) as plain:
        runs = (await call(session, "await", handles=[begun["deleting"], begun["telling"]]))["runs"]
        assert [run["status"] for run in runs] == ["Finished", "Finished"], runs
        assert len(person.asked) == 1
        again = await call(client, "run", **RUN)
        assert again["status"] == "Finished"
        assert len((await call(client, "status"))["runs"]) == RUNS
        asked = begun["asked"]
        answers = {key: {"action": "accept", "content": {"allow": True}} for key in asked["inputRequests"]}
        more = {"inputResponses": answers, "requestState": asked["requestState"]}
        done = await plain.ok("tools/call", {"name": "run", "arguments": DELETE, **more}, name="run")
        assert done["structuredContent"]["status"] == "Finished"
        task = begun["asking task"]
        shown = await tasks.ok("tasks/get", {"taskId": task}, name=task)
        assert shown["status"] == "input_required"
        answers = {key: {"action": "decline"} for key in shown["inputRequests"]}
        await tasks.ok("tasks/update", {"taskId": task, "inputResponses": answers}, name=task)
        await tasks.tell_of_tasks([task, begun["task"]])
        for each in (task, begun["task"]):
            shown = await tasks.ok("tasks/get", {"taskId": each}, name=each)
            assert shown["status"] == "completed"
            assert shown["result"]["structuredContent"]["status"] == "Finished"


def test_everything_that_was_open_at_a_kill_goes_on(tmp_path: Path, engine: str) -> None:
    effects = tmp_path / "effects"
    default = f'\n[runtime]\nport = 0\ndefault_model = "{MODEL}"\n'
    ports = FREE_PORTS.replace("[runtime]\nport = 0\n", "") + default
    config = write(tmp_path, ports, replicas(engine), tools(effects))
    first = launch(tmp_path, "up", "up", "--config", config)
    try:
        begun = asyncio.run(before(first))
    finally:
        if first.process.poll() is None:
            first.kill()
    assert not effects.exists()
    with running(tmp_path, "up", "up", "--config", config) as second:
        asyncio.run(after(second, begun))
    assert len(effects.read_text().splitlines()) == 2


async def leave(
    up: Program, tool: str, arguments: dict[str, Any], reached: asyncio.Event, person: ElicitationFnT | None = None
) -> None:
    """Call a tool and leave in the middle: in a session if a person could be asked there."""
    mode: Literal["auto", "legacy"] = "auto" if person is None else "legacy"

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        if person is None:
            reached.set()

    async def stay() -> None:
        async with at(up, mode, person) as client:
            await client.call_tool(tool, arguments, progress_callback=hear)

    staying = asyncio.create_task(stay())
    await asyncio.wait_for(reached.wait(), 30)
    staying.cancel()
    await asyncio.gather(staying, return_exceptions=True)


def test_a_client_that_leaves_takes_its_question_along_and_what_it_cancels(tmp_path: Path, engine: str) -> None:
    ports = FREE_PORTS.replace("[runtime]\nport = 0\n", "")
    own = f'\n[runtime]\nport = 0\ndefault_model = "{MODEL}"\norphan_grace = "50ms"\n'
    config = write(tmp_path, ports + own, replicas(engine), tools(tmp_path / "effects"))

    async def main(up: Program) -> None:
        asked = asyncio.Event()

        async def never(context: object, params: ElicitRequestParams) -> ElicitResult:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        async with at(up, "legacy", Yes()) as client:
            handle = (await call(client, "spawn", **DELETE))["handle"]
            await leave(up, "await", {"handles": [handle]}, asked, never)
            assert (await call(client, "await", handles=[handle]))["runs"][0]["status"] == "Finished"
            await leave(up, "run", {"task": "[stall] for ever"}, asyncio.Event())
            # Looked at, not waited for: an orphan that somebody waits for goes on.
            async with asyncio.timeout(30):
                while {run["status"] for run in (await call(client, "status"))["runs"]} != {"Finished", "Cancelled"}:
                    continue

    with running(tmp_path, "up", "up", "--config", config) as up:
        asyncio.run(main(up))
