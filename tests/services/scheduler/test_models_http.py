"""The scheduler's HTTP door for models, without sockets."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx2
import pytest

from luftpause.core.model.ids import LauncherId, ModelName, ReplicaId
from luftpause.core.model.models import RAM, Device, ModelSpec
from luftpause.core.model.replicas import Endpoint, ReplicaSpec
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherJoined, ModelUp
from luftpause.ports.launcher import ModelOrder
from luftpause.ports.processes import LogSlice
from luftpause.services.scheduler import models_http
from luftpause.services.scheduler.http import SchedulerHttp
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings

T = TypeVar("T")
BOX = LauncherId("box")
NAME = ModelName("org/m:1")
PATH = "/models/org/m:1"


class Seat:
    """A launcher with one model, that remembers its orders and has written five lines."""

    def __init__(self) -> None:
        self.orders: list[ModelOrder] = []
        self.lines = [f"line {nth}" for nth in range(5)]

    def inventory(self) -> LauncherJoined:
        spec = ModelSpec(model=NAME, aliases=(ModelName("small"),), memory=100)
        return LauncherJoined(launcher=BOX, devices=(Device(device=RAM, memory=1000),), catalogue=(spec,))

    def ordered(self, order: ModelOrder) -> None:
        self.orders.append(order)

    async def log(self, model: ModelName, after: int) -> LogSlice:
        return LogSlice(lines=tuple(self.lines[after:]), next=len(self.lines))


class World:
    """The door, the scheduler behind it and a launcher that has joined."""

    def __init__(self) -> None:
        self.service = SchedulerService(SchedulerSettings())
        self.service.start()
        self.seat = Seat()
        self.service.launchers.joined(self.seat, self.seat.inventory())
        app = SchedulerHttp(self.service).app()
        self.client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://box")

    async def ask(self, method: str, path: str) -> tuple[int, dict[str, Any]]:
        answer = await self.client.request(method, path)
        return answer.status_code, answer.json()

    def up(self) -> None:
        spec = ReplicaSpec(replica=ReplicaId("m-1"), endpoint=Endpoint(url="http://e"), models=(NAME,))
        self.service.launchers.told(BOX, ModelUp(model=NAME, replica=spec, memory=120))


def run(work: Coroutine[None, None, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(10):
            return await work

    return asyncio.run(bounded())


def test_models_and_memories_are_listed_and_each_is_shown_by_any_of_its_names() -> None:
    async def story() -> None:
        world = World()
        _, listing = await world.ask("GET", "/models")
        assert listing["devices"] == [{"launcher": "box", "device": "ram", "budget": 1000, "taken": 0}]
        (model,) = listing["models"]
        assert (model["name"], model["state"], model["memory"]) == (NAME, "down", 100)
        for path in (PATH, "/models/small"):
            status, shown = await world.ask("GET", path)
            assert (status, shown["name"]) == (200, NAME)
        assert world.seat.orders == []

    run(story())


def test_an_operators_wishes_are_orders() -> None:
    async def story() -> None:
        world = World()
        status, model = await world.ask("POST", f"{PATH}/load")
        assert (status, model["state"]) == (200, "loading")
        assert isinstance(world.seat.orders[-1], LoadModel)
        world.up()
        _, model = await world.ask("POST", f"{PATH}/pin")
        assert (model["state"], model["pinned"], model["memory"], model["memory_measured"]) == ("up", True, 120, True)
        _, model = await world.ask("POST", f"{PATH}/unpin")
        assert model["pinned"] is False
        _, model = await world.ask("POST", "/models/small/unload?force")
        assert model["state"] == "stopping"
        order = world.seat.orders[-1]
        assert isinstance(order, UnloadModel)
        assert (await world.ask("POST", f"{PATH}/unload"))[1]["state"] == "stopping", "no matter how often"

    run(story())


@pytest.mark.parametrize("query", ["force=perhaps", "firmly", "force&keep_waiting=2", "x" * 5000])
def test_an_unload_that_asks_for_something_else_is_refused_and_unloads_nothing(query: str) -> None:
    async def story() -> None:
        world = World()
        world.up()
        status, body = await world.ask("POST", f"{PATH}/unload?{query}")
        assert (status, body["error"]["code"]) == (400, "bad_request")
        assert len(body["error"]["message"]) < 250
        assert world.seat.orders == []
        assert (await world.ask("POST", f"{PATH}/unload?force=false&keep_waiting=no"))[1]["state"] == "stopping"

    run(story())


@pytest.mark.parametrize("what", ["load", "unload", "pin", "unpin"])
def test_a_get_changes_nothing(what: str) -> None:
    async def story() -> None:
        world = World()
        answer = await world.client.get(f"{PATH}/{what}")
        assert answer.status_code in (404, 405)
        assert world.seat.orders == []

    run(story())


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("GET", "/logs"), ("POST", "/load"), ("POST", "/unload"), ("POST", "/pin")]
)
def test_a_model_that_nobody_has_is_a_404_that_names_those_that_are(method: str, path: str) -> None:
    async def story() -> None:
        world = World()
        for name in ("unheard-of", "..%2F..%2Fetc%2Fpasswd", "x" * 5000):
            status, body = await world.ask(method, f"/models/{name}{path}")
            assert status == 404
            assert body["error"]["code"] == "unknown_model"
            assert NAME in body["error"]["message"]
            assert len(body["error"]["message"]) < 400

    run(story())


def test_a_log_is_read_from_its_end_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_http, "_LOOK_S", 0.001)
    monkeypatch.setattr(models_http, "_FOLLOWED_S_MAX", 0.06)
    monkeypatch.setattr(models_http, "_QUIET_LOOKS", 20)

    async def story() -> None:
        world = World()
        assert (await world.ask("GET", f"{PATH}/logs?lines=2"))[1] == {
            "model": NAME,
            "lines": ["line 3", "line 4"],
            "next": 5,
        }
        for odd in ("0", "x", "-1", "9" * 30):
            assert (await world.ask("GET", f"{PATH}/logs?lines={odd}"))[0] == 200
        answer = await world.client.get(f"{PATH}/logs?lines=1&follow=true")
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [line for line in answer.text.split("\n\n") if line]
        assert json.loads(events[0].removeprefix("data: ")) == {"line": "line 4"}
        assert set(events[1:]) == {": still here"}

    run(story())
