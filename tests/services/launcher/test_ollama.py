"""Models of an Ollama that runs already, spoken to over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.residency.events import LoadFailed, ModelDown, ModelUp
from luftpause.services.launcher import ollama as ollama_module
from luftpause.services.launcher.planning import ModelPlan
from services.launcher.launcher_world import engine, launched, model, run


@dataclass
class FakeOllama:
    """What Ollama does with a model: keeps it, tells of it, lets it go. `status`: of its answers to loads."""

    status: int = 200
    stuck: bool = False
    loaded: set[str] = field(default_factory=set)
    asked: list[tuple[str, object]] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[16:]) for line in head.split("\r\n") if line.lower().startswith("content-length: ")), 0)
        body = json.loads(await reader.readexactly(length)) if length else None
        path = head.split(" ")[1]
        self.asked.append((path, body))
        answer = {"models": [{"name": f"{each}:latest", "size": 9, "size_vram": 7} for each in self.loaded]}
        if isinstance(body, dict) and self.status == 200:
            if body["keep_alive"]:
                self.loaded.add(body["model"])
            elif not self.stuck:
                self.loaded.discard(body["model"])
        said = json.dumps(answer if path == "/api/ps" else {"done": True, "error": "no such model"}).encode()
        status = 200 if path == "/api/ps" else self.status
        writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (status, len(said), said))
        writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ModelPlan]:
        async with await asyncio.start_server(self.serve, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield replace(model(engine()), engines=(), ollama_url=self.url)


def test_a_model_is_loaded_to_stay_and_unloaded_when_ordered() -> None:
    async def story() -> None:
        fake = FakeOllama()
        async with fake.running() as plan, launched(plan) as world:
            world.scheduler.load()
            up = await world.scheduler.until(ModelUp)
            assert (up.memory, up.replica.engine, up.replica.endpoint.url) == (7, EngineKind.OLLAMA, fake.url)
            assert fake.asked[0] == ("/api/generate", {"model": "toy", "keep_alive": -1, "stream": False})
            assert world.launcher.inventory().engines[0].replica == up.replica
            world.scheduler.unload()
            assert (await world.scheduler.until(ModelDown)).why == "unloaded as asked"
            assert fake.loaded == set()
            assert world.launcher.inventory().engines == ()

    run(story())


def test_a_load_that_it_refuses_fails_with_its_words() -> None:
    async def story() -> str:
        async with FakeOllama(status=404).running() as plan, launched(plan) as world:
            world.scheduler.load()
            return (await world.scheduler.until(LoadFailed)).cause

    assert run(story()).startswith('Ollama answered 404: {"done": true')


def test_an_ollama_that_is_not_there_is_said_so() -> None:
    async def story() -> str:
        async with launched(replace(model(engine()), engines=(), ollama_url="http://127.0.0.1:1")) as world:
            world.scheduler.load()
            return (await world.scheduler.until(LoadFailed)).cause

    assert "does not answer" in run(story())


def test_one_that_does_not_let_go_is_told_down_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ollama_module, "_UNLOAD_S_MAX", 0.05)

    async def story() -> str:
        async with FakeOllama(stuck=True).running() as plan, launched(plan) as world:
            world.scheduler.load()
            await world.scheduler.until(ModelUp)
            world.scheduler.unload()
            return (await world.scheduler.until(ModelDown)).why

    assert run(story()) == "Ollama did not unload it within 0.05 s"
