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
    """What Ollama (0.12) does with a model: keeps it, tells of it, lets it go.

    `refuses`: the status and words of its answers to loads; `embeds`: the model cannot generate; `stuck`: it keeps all.
    """

    refuses: tuple[int, str] | None = None
    embeds: bool = False
    stuck: bool = False
    loaded: set[str] = field(default_factory=set)
    asked: list[tuple[str, object]] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[16:]) for line in head.split("\r\n") if line.lower().startswith("content-length: ")), 0)
        body = json.loads(await reader.readexactly(length)) if length else {}
        path = head.split(" ")[1]
        self.asked.append((path, body))
        status, answer = self.answer(path, body)
        said = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (status, len(said), said))
        writer.close()

    def answer(self, path: str, body: dict[str, object]) -> tuple[int, object]:
        if path == "/api/ps":
            return 200, {"models": [self.row(each) for each in sorted(self.loaded)]}
        name = str(body["model"])
        if path == "/api/generate" and body["keep_alive"] == 0:  # before it looks at what the model can do
            if not self.stuck:
                self.loaded.discard(name)
            return 200, {"model": name, "response": "", "done": True, "done_reason": "unload"}
        if self.refuses is not None:
            return self.refuses[0], {"error": self.refuses[1]}
        if path == "/api/generate" and self.embeds:
            return 400, {"error": f'"{name}" does not support generate'}
        self.loaded.add(name)
        if path == "/api/embed":
            return 200, {"model": name, "embeddings": []}
        return 200, {"model": name, "response": "", "done": True, "done_reason": "load"}

    @staticmethod
    def row(name: str) -> dict[str, object]:
        tagged = f"{name}:latest"
        details = {"format": "gguf", "family": "llama", "parameter_size": "1B", "quantization_level": "Q4_0"}
        sizes = {"size": 9, "size_vram": 7, "context_length": 4096}
        return {
            "name": tagged,
            "model": tagged,
            "digest": "0" * 64,
            "details": details,
            "expires_at": "2318-01-01T00:00:00Z",
            **sizes,
        }

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
            assert fake.asked[1] == ("/api/ps", {})
            assert world.launcher.inventory().engines[0].replica == up.replica
            world.scheduler.unload()
            assert (await world.scheduler.until(ModelDown)).why == "unloaded as asked"
            assert fake.loaded == set()
            assert world.launcher.inventory().engines == ()

    run(story())


@pytest.mark.parametrize(
    "refuses",
    [(404, "model 'toy' not found"), (500, "model requires more system memory (9.2 GiB) than is available (7.5 GiB)")],
)
def test_a_load_that_it_refuses_fails_with_its_words(refuses: tuple[int, str]) -> None:
    async def story() -> LoadFailed:
        async with FakeOllama(refuses=refuses).running() as plan, launched(plan) as world:
            world.scheduler.load()
            return await world.scheduler.until(LoadFailed)

    told = run(story())
    assert told.cause == f"Ollama answered {refuses[0]}: {refuses[1]}"
    assert told.out_of_memory is ("memory" in refuses[1])


def test_a_model_that_only_embeds_is_loaded_and_unloaded_too() -> None:
    async def story() -> None:
        fake = FakeOllama(embeds=True)
        async with fake.running() as plan, launched(plan) as world:
            world.scheduler.load()
            assert (await world.scheduler.until(ModelUp)).memory == 7
            assert ("/api/embed", {"model": "toy", "keep_alive": -1, "input": ""}) in fake.asked
            world.scheduler.unload()
            assert (await world.scheduler.until(ModelDown)).why == "unloaded as asked"
            assert fake.loaded == set()

    run(story())


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
