"""What the door seals and whom it tells what, whatever the tools do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcp_types import CallToolResult, TextContent, Tool

from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import Principal
from luftpause.ports.asgi import PRINCIPAL_KEY, Receive, Scope, Send
from luftpause.services.runtime.http import app_around, build_app
from luftpause.services.runtime.mcp_door.calls import OfferedTool, ToolCall
from luftpause.services.runtime.mcp_door.door import McpDoor
from luftpause.services.runtime.mcp_door.run_tasks import RunTasks
from luftpause.services.runtime.mcp_door.runtime_door import DoorParts, RuntimeDoor
from luftpause.services.runtime.mcp_door.subscriptions import Subscriptions
from luftpause.services.runtime.mcp_door.tasks import Tasks
from luftpause.services.runtime.mcp_door.waiting import Waiting
from luftpause.testkit.serving import bind, serving, url_of
from services.runtime.mcp_door.doors import ASKS, KEY, Door, FakeDecisions, until_asked
from services.runtime.mcp_door.wire import Wire
from services.runtime.runtime_fakes import World, in_time, runtime


@asynccontextmanager
async def shared_door(world: World, key: bytes = KEY) -> AsyncIterator[Door]:
    """A door at which the header `x-who` says who comes."""
    decisions = FakeDecisions()
    app = build_app(world.service, DoorParts(decisions=decisions, state_key=key, version="0.1"))

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            who = dict(scope["headers"]).get(b"x-who", b"alice").decode()
            scope[PRINCIPAL_KEY] = Principal(name=PrincipalId(who))
        await app(scope, receive, send)

    listener = bind("127.0.0.1", 0)
    async with serving(told, listener, lifespan=True):
        yield Door(world, url_of(listener), decisions)


def test_tasks_handles_and_state_are_their_principals_alone() -> None:
    async def live() -> None:
        async with runtime() as world, shared_door(world) as it:
            async with Wire.at(it.url) as alice, Wire.at(it.url, headers={"x-who": "bob"}) as bob:
                task = (await alice.call("run", {"task": "x", **ASKS}))["taskId"]
                await until_asked(it, task, principal=PrincipalId("alice"))
                for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                    assert (await bob.refused(method, {"taskId": task}, name=task))["code"] == -32602
                for tool, arguments in (
                    ("await", {"handles": [task]}),
                    ("approve", {"handle": task, "allow": True}),
                    ("cancel", {"handle": task}),
                    ("transcript", {"handle": task}),
                    ("send", {"handle": task, "message": "x"}),
                ):
                    told = (await bob.call(tool, arguments))["content"][0]["text"]
                    assert told == f"{tool}: there is no run {task!r}"
                (acknowledged, *told, _) = await bob.tell_of_tasks([task])
                assert acknowledged["params"]["notifications"] == {"taskIds": []}
                assert told == []
            async with Wire.at(it.url, extensions={}) as alice, Wire.at(it.url, {}, headers={"x-who": "bob"}) as bob:
                asked = await alice.call("run", {"task": "x", **ASKS})
                back = {"name": "run", "arguments": {"task": "x", **ASKS}, "requestState": asked["requestState"]}
                assert (await bob.refused("tools/call", back, name="run"))["code"] == -32602
                assert (await alice.ok("tools/call", back, name="run"))["inputRequests"] == asked["inputRequests"]

    in_time(live())


def test_state_sealed_with_another_key_is_refused() -> None:
    async def live() -> None:
        async with runtime() as world:
            async with shared_door(world) as it, Wire.at(it.url, extensions={}) as wire:
                asked = await wire.call("run", {"task": "x", **ASKS})
            async with shared_door(world, bytes(32)) as it, Wire.at(it.url, extensions={}) as wire:
                back = {"name": "run", "arguments": {"task": "x", **ASKS}, "requestState": asked["requestState"]}
                assert (await wire.refused("tools/call", back, name="run"))["code"] == -32602

    in_time(live())


@pytest.mark.parametrize("key", [b"short", b""])
def test_a_key_that_is_too_short_is_refused(key: bytes) -> None:
    async def live() -> None:
        async with runtime() as world:
            with pytest.raises(ValueError, match="at least 32 bytes"):
                RuntimeDoor(world.service, DoorParts(decisions=FakeDecisions(), state_key=key, version="1"))

    in_time(live())


def test_any_tools_can_stand_behind_the_door() -> None:
    async def hello(call: ToolCall) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=f"hello {call.principal.name}")])

    async def live() -> None:
        async with runtime() as world:
            tasks = Tasks(RunTasks(world.service, Waiting(world.service)))
            tool = OfferedTool(tool=Tool(name="hello", input_schema={"type": "object"}), answer=hello)
            door = McpDoor([tool], tasks, Subscriptions(tasks.desk), version="9", state_key=KEY)

            async def nothing() -> None:
                return

            listener = bind("127.0.0.1", 0)
            async with (
                serving(app_around(world.service, door.server, nothing), listener, lifespan=True),
                Wire.at(url_of(listener)) as wire,
            ):
                said = await wire.call("hello", {})
                assert said["content"][0]["text"] == "hello anonymous"
                listed = await wire.ok("tools/list", {})
                assert ([each["name"] for each in listed["tools"]], listed["cacheScope"]) == (["hello"], "public")
                found = await wire.ok("server/discover", {})
                assert found["capabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}

    in_time(live())
