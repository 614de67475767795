import asyncio

import httpx2
import pytest

from luftpause.services.runtime.mcp_door import subscriptions
from services.runtime.mcp_door.doors import ASKS, door, until_asked
from services.runtime.mcp_door.wire import Wire
from services.runtime.runtime_fakes import in_time

ID = "io.modelcontextprotocol/subscriptionId"


def test_a_stream_tells_of_its_tasks_and_ends_with_the_last() -> None:
    async def live() -> None:
        async with door() as it, Wire.at(it.url) as wire:
            task = (await wire.call("run", {"task": "x", **ASKS}))["taskId"]
            await until_asked(it, task)
            listening = asyncio.create_task(wire.tell_of_tasks([task, "run_x", 5, task]))
            asked = await wire.ok("tasks/get", {"taskId": task}, name=task)
            answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
            # The answer may come before the stream has begun: it then tells the end alone.
            await wire.ok("tasks/update", {"taskId": task, "inputResponses": answers}, name=task)
            acknowledged, *told, last = await listening
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"]["notifications"] == {"taskIds": [task]}
            assert {each["method"] for each in told} == {"notifications/tasks"}
            assert {each["params"]["taskId"] for each in told} == {task}
            assert told[-1]["params"]["status"] == "completed"
            assert "ttlMs" in told[-1]["params"]
            assert told[-1]["params"]["result"]["structuredContent"]["status"] == "Finished"
            assert {each["params"]["_meta"][ID] for each in (acknowledged, *told)} == {7}
            assert last["result"]["_meta"][ID] == 7

    in_time(live())


def test_who_does_not_know_tasks_may_not_listen_to_them() -> None:
    async def live() -> None:
        async with door() as it, Wire.at(it.url, extensions={}) as wire:
            asked = {"notifications": {"taskIds": ["run_x"]}}
            assert (await wire.refused("subscriptions/listen", asked))["code"] == -32021

    in_time(live())


def test_a_stream_without_tasks_is_acknowledged_and_stays_open() -> None:
    async def live() -> None:
        async with door() as it, Wire.at(it.url) as wire, httpx2.AsyncClient(base_url=it.url) as http:
            body, headers = wire.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, None)
            async with http.stream("POST", "/mcp", json=body, headers=headers) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: "):
                        assert "notifications/subscriptions/acknowledged" in line
                        break

    in_time(live())


def test_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "STREAMS_MAX", 0)

    async def live() -> None:
        async with door() as it, Wire.at(it.url) as wire:
            error = await wire.refused("subscriptions/listen", {"notifications": {"taskIds": ["run_x"]}})
            assert error["message"] == "there are too many subscriptions"

    in_time(live())
