"""`run` as a task of the extension, on the wire."""

import time
from datetime import datetime
from typing import Any

import httpx2
import pytest

from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.mcp_door.run_tasks import task_of
from luftpause.services.runtime.mcp_door.task_desk import POLL_MS, TaskStatus, TaskView, created_on_wire, on_wire
from luftpause.services.runtime.mcp_door.tasks import TASKS_EXTENSION
from services.runtime.mcp_door.doors import ASKS, complaint, content, door, until_asked
from services.runtime.mcp_door.wire import Wire
from services.runtime.runtime_fakes import MemoryJournal, hold, in_time

Json = dict[str, Any]
ALLOW: Json = {"action": "accept", "content": {"allow": True}}


async def until_over(wire: Wire, task: str) -> Json:
    """What `tasks/get` says once a task is over."""
    await wire.tell_of_tasks([task])
    return await wire.ok("tasks/get", {"taskId": task}, name=task)


def test_run_becomes_a_task_and_its_result_is_that_of_the_plain_call() -> None:
    async def live() -> None:
        async with door() as it, Wire.at(it.url) as wire, it.client() as client:
            created = await wire.call("run", {"task": "find the moon"})
            assert created["resultType"] == "task"
            assert (created["ttlMs"], created["pollIntervalMs"]) == (None, POLL_MS)
            assert not {"result", "error", "inputRequests", "requestState"} & set(created)
            done = await until_over(wire, created["taskId"])
            assert (done["status"], done["resultType"]) == ("completed", "complete")
            run = done["result"]["structuredContent"]
            assert (run["status"], run["result"]) == ("Finished", "I heard: moon is there")
            assert run["handle"] == created["taskId"]
            assert done["createdAt"] <= done["lastUpdatedAt"]
            plain = content(await client.call_tool("run", {"task": "find the moon"}))
            assert {**plain, "handle": ""} == {**run, "handle": ""}

    in_time(live())


def test_an_approval_inside_is_asked_by_the_task_and_answered_with_an_update() -> None:
    async def live() -> None:
        async with door() as it, Wire.at(it.url) as wire:
            task = (await wire.call("run", {"task": "find the moon", **ASKS}))["taskId"]
            await until_asked(it, task)
            asked = await wire.ok("tasks/get", {"taskId": task}, name=task)
            assert asked["status"] == "input_required"
            (key,) = asked["inputRequests"]
            assert asked["inputRequests"][key]["method"] == "elicitation/create"
            assert asked["inputRequests"][key]["params"]["requestedSchema"]["required"] == ["allow"]
            odd = {"no such key": ALLOW, key + "x": ALLOW}
            assert await acked(wire, "tasks/update", task, inputResponses=odd)
            assert (await wire.ok("tasks/get", {"taskId": task}, name=task))["status"] == "input_required"
            for _ in range(2):
                assert await acked(wire, "tasks/update", task, inputResponses={key: ALLOW})
            done = await until_over(wire, task)
            assert done["result"]["structuredContent"]["result"] == "I heard: moon is there"
            assert await acked(wire, "tasks/update", task, inputResponses={key: ALLOW})
            assert len(it.world.tools.made) == 1

    in_time(live())


async def acked(wire: Wire, method: str, task: str, **more: object) -> bool:
    answer = await wire.ok(method, {"taskId": task, **more}, name=task)
    return set(answer) == {"resultType", "_meta"} and answer["resultType"] == "complete"


def test_a_task_was_last_updated_when_anything_of_it_was_last_put_on_record() -> None:
    async def live() -> None:
        journal = MemoryJournal(now_s=time.time() + 1000)
        async with door(journal=journal) as it, Wire.at(it.url) as wire:
            task = (await wire.call("run", {"task": "find the moon", **ASKS}))["taskId"]
            await until_asked(it, task)
            asked = await wire.ok("tasks/get", {"taskId": task}, name=task)
            it.world.journal.now_s += 60.0
            it.world.turns.say = hold
            assert await acked(wire, "tasks/update", task, inputResponses=dict.fromkeys(asked["inputRequests"], ALLOW))
            answered = await wire.ok("tasks/get", {"taskId": task}, name=task)
            assert answered["status"] == "working"
            assert seconds_between(asked, answered) >= 60
        later = MemoryJournal(kept=journal.kept, epoch=journal.epoch, utc_s=journal.utc_s, now_s=journal.now_s + 3600)
        async with door(journal=later) as it, Wire.at(it.url) as wire:
            done = await until_over(wire, task)
            assert done["createdAt"] == asked["createdAt"]
            assert seconds_between(asked, done) >= 3660, "time without a runtime is time too"

    in_time(live())


def seconds_between(before: Json, after: Json) -> float:
    first, last = (datetime.fromisoformat(each["lastUpdatedAt"]) for each in (before, after))
    return (last - first).total_seconds()


def test_a_cancelled_task_is_cancelled_and_one_that_is_over_stays_as_it_is() -> None:
    async def live() -> None:
        async with door(hold) as it, Wire.at(it.url) as wire:
            task = (await wire.call("run", {"task": "x"}))["taskId"]
            for _ in range(2):
                assert await acked(wire, "tasks/cancel", task)
            ended = await wire.ok("tasks/get", {"taskId": task}, name=task)
            assert ended["status"] == "cancelled"
            assert "result" not in ended
            assert ended["statusMessage"] == "cancelled: on request"

    in_time(live())


def test_a_failed_run_is_a_completed_task_with_an_error_for_a_result() -> None:
    async def say(_request: TurnRequest) -> TurnReply:
        raise TurnFailedError("no such luck")

    async def live() -> None:
        async with door(say) as it, Wire.at(it.url) as wire, it.client() as client:
            task = (await wire.call("run", {"task": "x"}))["taskId"]
            done = await until_over(wire, task)
            assert (done["status"], done["result"]["isError"]) == ("completed", True)
            assert done["result"]["structuredContent"]["error"] == "no such luck"
            assert "no such luck" in complaint(await client.call_tool("run", {"task": "x"}))

    in_time(live())


def test_tasks_go_on_after_a_restart_and_are_asked_again_what_was_not_answered() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        async with door(journal=journal) as it, Wire.at(it.url) as wire:
            task = (await wire.call("run", {"task": "find the moon", **ASKS}))["taskId"]
            await until_asked(it, task)
            before = await wire.ok("tasks/get", {"taskId": task}, name=task)
        async with door(journal=MemoryJournal(kept=journal.kept, epoch=journal.epoch)) as it, Wire.at(it.url) as wire:
            asked = await wire.ok("tasks/get", {"taskId": task}, name=task)
            assert (asked["status"], asked["createdAt"]) == ("input_required", before["createdAt"])
            assert asked["inputRequests"] == before["inputRequests"]
            answers = dict.fromkeys(asked["inputRequests"], ALLOW)
            assert await acked(wire, "tasks/update", task, inputResponses=answers)
            assert (await until_over(wire, task))["status"] == "completed"

    in_time(live())


def test_who_did_not_say_it_knows_tasks_waits_in_the_call_and_may_not_ask_for_any() -> None:
    async def live() -> None:
        async with door() as it, Wire.at(it.url, extensions={}) as wire:
            done = await wire.call("run", {"task": "find the moon"})
            assert done["structuredContent"]["status"] == "Finished"
            task = done["structuredContent"]["handle"]
            error = await wire.refused("tasks/get", {"taskId": task}, name=task)
            assert error["code"] == -32021
            assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS_EXTENSION: {}}}

    in_time(live())


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_header_names_the_task_and_unknown_ones_are_refused(method: str) -> None:
    async def live() -> None:
        async with door(hold) as it, Wire.at(it.url) as wire:
            task = (await wire.call("run", {"task": "x"}))["taskId"]
            for name in ("another", None):
                assert (await wire.refused(method, {"taskId": task}, name=name))["code"] == -32020
            error = await wire.refused(method, {"taskId": "run_x"}, name="run_x")
            assert (error["code"], error["message"]) == (-32602, "there is no task 'run_x'")

    in_time(live())


def test_sessions_have_no_tasks() -> None:
    async def live() -> None:
        async with door() as it, httpx2.AsyncClient(base_url=it.url) as http:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            headers = {"accept": "application/json, text/event-stream"}
            opened = await http.post("/mcp", json=rpc("initialize", hello), headers=headers)
            headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await http.post("/mcp", json=ready, headers=headers)
            answer = await http.post("/mcp", json=rpc("tasks/get", {"taskId": "x"}), headers=headers)
            assert '"code":-32601' in answer.text.replace(" ", "")

    in_time(live())


def rpc(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_what_belongs_to_a_status_is_told_with_it_only() -> None:
    def view(status: TaskStatus) -> TaskView:
        return TaskView(
            task="t",
            status=status,
            created=1.0,
            updated=2.5,
            input_requests={"k": {}},
            result={"content": []},
            error={"code": 1, "message": "m"},
        )

    extra = {status: set(on_wire(view(status))) & {"inputRequests", "result", "error"} for status in TaskStatus}
    assert extra == {
        TaskStatus.WORKING: set(),
        TaskStatus.INPUT_REQUIRED: {"inputRequests"},
        TaskStatus.COMPLETED: {"result"},
        TaskStatus.FAILED: {"error"},
        TaskStatus.CANCELLED: set(),
    }
    assert created_on_wire(view(TaskStatus.WORKING)) == {
        "resultType": "task",
        "taskId": "t",
        "status": "working",
        "createdAt": "1970-01-01T00:00:01.000Z",
        "lastUpdatedAt": "1970-01-01T00:00:02.500Z",
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def test_a_run_that_a_budget_ended_is_a_completed_task() -> None:
    async def live() -> None:
        async with door(hold) as it, Wire.at(it.url) as wire:
            task = (await wire.call("run", {"task": "x", "budgetSeconds": 1}))["taskId"]
            done = await until_over(wire, task)
            assert (done["status"], done["result"]["isError"]) == ("completed", True)
            assert done["result"]["structuredContent"]["error"] == "budget exceeded: seconds 1/1"
            (view,) = it.world.service.glance().views()
            assert task_of(view, 0.0).status is TaskStatus.COMPLETED

    in_time(live())
