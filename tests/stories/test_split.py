"""The services as separate processes: they find each other, and survive each other's deaths."""

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mcp import Client
from openai import OpenAI

from stories.programs import Program, launch, running
from stories.set_ups import MODEL, free_port, replicas, tools, write

pytestmark = pytest.mark.timeout(180)
WAIT_S = 30.0
Status = dict[str, list[dict[str, object]]]


@dataclass
class Split:
    """Three services and two engines, each its own process."""

    directory: Path
    config: str
    programs: dict[str, Program] = field(default_factory=dict)

    def start(self, service: str) -> None:
        self.programs[service] = launch(self.directory, service, service, "--config", self.config)

    def url(self, service: str) -> str:
        return self.programs[service].url(service)

    def client(self) -> OpenAI:
        return OpenAI(base_url=self.url("dataplane") + "/v1", api_key="unused", timeout=60, max_retries=0)

    def status(self) -> Status:
        with urllib.request.urlopen(self.url("scheduler") + "/status", timeout=10) as response:
            body: Status = json.load(response)
        return body

    def wait_for_status(self, holds: Callable[[Status], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not holds(self.status()):
            assert time.monotonic() < deadline, self.status()
            threading.Event().wait(0.05)


@pytest.fixture
def split(tmp_path: Path) -> Iterator[Split]:
    with ExitStack() as stack:
        engines = [
            stack.enter_context(
                running(tmp_path, f"engine{n}", "fake-engine", "--port", "0", "--model", MODEL, "--token-ms", "20")
            )
            for n in (1, 2)
        ]
        link, http, door, mcp = (free_port() for _ in range(4))
        config = write(
            tmp_path,
            replicas(*(engine.url("engine") for engine in engines)),
            tools(0.3),
            f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = {door}\n[runtime]\nport = {mcp}\n",
        )
        made = Split(tmp_path, config)
        for service in ("scheduler", "dataplane", "runtime"):
            made.start(service)
        try:
            yield made
        finally:
            for program in made.programs.values():
                if program.process.poll() is None:
                    program.process.terminate()
            for program in made.programs.values():
                program.process.wait(20)


def say(client: OpenAI, text: str, run: str | None = None) -> tuple[str, str]:
    """Take a streamed turn and return its run and its text."""
    headers = {} if run is None else {"x-luftpause-run-id": run}
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=[{"role": "user", "content": text}], stream=True, extra_headers=headers
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in raw.parse() if chunk.choices]
    return raw.headers["x-luftpause-run-id"], "".join(pieces)


def test_a_turn_and_a_sub_agent_come_through_the_three_processes(split: Split) -> None:
    with split.client() as client:
        run, text = say(client, "hello", "my-run")
    assert run == "my-run"
    assert text

    async def sub_agent() -> dict[str, object]:
        async with Client(split.url("runtime") + "/mcp") as session:
            spawned = await session.call_tool("spawn", {"task": "look at the sky"})
            assert spawned.structured_content is not None
            handle = spawned.structured_content["handle"]
            awaited = await session.call_tool("await", {"handles": [handle], "timeout": 30})
            assert awaited.structured_content is not None
            run: dict[str, object] = awaited.structured_content["runs"][0]
            return run

    outcome = asyncio.run(sub_agent())
    assert outcome["status"] == "Finished", outcome
    assert outcome["toolCalls"] == 1


def test_a_killed_scheduler_loses_no_turn_and_no_run(split: Split) -> None:
    answers: dict[str, str] = {}

    def stream(name: str, text: str) -> None:
        with split.client() as client:
            answers[name] = say(client, text, name)[1]

    streaming = threading.Thread(target=stream, args=("before", "[tokens:150] a long answer"))
    streaming.start()
    split.wait_for_status(lambda status: any(replica["in_flight"] for replica in status["replicas"]))
    split.programs["scheduler"].kill()
    held = threading.Thread(target=stream, args=("meanwhile", "a short answer"))
    held.start()
    split.start("scheduler")
    for thread in (streaming, held):
        thread.join(WAIT_S)
        assert not thread.is_alive()
    assert answers["before"]
    assert answers["meanwhile"]
    split.wait_for_status(
        lambda status: (
            sum(int(str(runs["count"])) for runs in status["runs"]) == 2
            and not any(replica["in_flight"] for replica in status["replicas"])
        )
    )


def test_a_killed_runtime_finishes_its_sub_agents_after_its_restart(split: Split) -> None:
    async def spawn() -> list[str]:
        async with Client(split.url("runtime") + "/mcp") as session:
            handles = []
            for task in ("first", "second [tools:3]", "third"):
                spawned = await session.call_tool("spawn", {"task": task})
                assert spawned.structured_content is not None
                handles.append(str(spawned.structured_content["handle"]))
            return handles

    async def results(handles: list[str]) -> list[dict[str, object]]:
        async with Client(split.url("runtime") + "/mcp") as session:
            awaited = await session.call_tool("await", {"handles": handles, "mode": "all", "timeout": 60})
            assert awaited.structured_content is not None
            runs: list[dict[str, object]] = awaited.structured_content["runs"]
            return runs

    handles = asyncio.run(spawn())
    split.programs["runtime"].kill()
    split.start("runtime")
    runs = asyncio.run(results(handles))
    assert [run["handle"] for run in runs] == handles
    assert [run["status"] for run in runs] == ["Finished"] * 3, runs
    assert runs[1]["toolCalls"] == 3


def test_a_dataplane_waits_for_a_scheduler_that_comes_later(tmp_path: Path) -> None:
    with ExitStack() as stack:
        engine = stack.enter_context(running(tmp_path, "engine", "fake-engine", "--port", "0", "--model", MODEL))
        config = write(
            tmp_path,
            replicas(engine.url("engine")),
            f"[scheduler]\nport = {free_port()}\nhttp_port = 0\n[dataplane]\nport = 0\n",
        )
        door = stack.enter_context(running(tmp_path, "dataplane", "dataplane", "--config", config))
        answers: list[str] = []

        def ask() -> None:
            with OpenAI(base_url=door.url("dataplane") + "/v1", api_key="unused", max_retries=0) as client:
                answers.append(say(client, "hello")[1])

        asking = threading.Thread(target=ask)
        asking.start()
        stack.enter_context(running(tmp_path, "scheduler", "scheduler", "--config", config))
        asking.join(WAIT_S)
        assert answers
        assert answers[0]
