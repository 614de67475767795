"""A sub-agent whose model writes its tool calls as text gets on as any other."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from luftpause.testkit.fake_engine.spoken_calls import FORMS
from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, MODEL, replicas, tools, write

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Program]:
    with (
        running(tmp_path, "engine", "fake-engine", "--port", "0", "--model", MODEL, "--token-ms", "1") as engine,
        running(
            tmp_path, "up", "up", "--config", write(tmp_path, FREE_PORTS, replicas(engine.url("engine")), tools(0))
        ) as program,
    ):
        yield program


async def runs_of(program: Program, *tasks: str, **more: object) -> list[dict[str, Any]]:
    async with asyncio.timeout(60), Client(program.url("runtime") + "/mcp") as client:
        handles = []
        for task in tasks:
            spawned = await client.call_tool("spawn", {"task": task, "model": MODEL, **more})
            assert spawned.structured_content is not None, spawned.content
            handles.append(spawned.structured_content["handle"])
        ended = await client.call_tool("await", {"handles": handles, "timeout": 50})
        assert ended.structured_content is not None, ended.content
        runs: list[dict[str, Any]] = ended.structured_content["runs"]
        return runs


def counted(program: Program) -> dict[str, int]:
    """How many calls were recovered, by the way in which they were written."""
    with urllib.request.urlopen(program.url("runtime") + "/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    found = [
        line.partition("{")[2] for line in lines if line.startswith("luftpause_runtime_recovered_tool_calls_total")
    ]
    return {line.split('"')[1]: int(float(line.rpartition(" ")[2])) for line in found}


def test_whatever_the_family_the_tool_is_called_and_its_answer_heard(up: Program) -> None:
    tasks = [f"Where is it? [tools:2] [tool:lookup] [as-text:{form}]" for form in FORMS]
    runs = asyncio.run(runs_of(up, *tasks, tools=["lookup"]))
    assert [(run["status"], run["toolCalls"], run["failedToolCalls"]) for run in runs] == [("Finished", 2, 0)] * len(
        FORMS
    )
    assert all("the last of 2 tool results" in run["result"] for run in runs), json.dumps(runs)
    recovered = counted(up)
    assert sum(recovered.values()) == 2 * len(FORMS)
    assert recovered["hermes"] == recovered["deepseek"] == recovered["glm"] == 2


def test_a_call_that_the_engine_cut_is_not_made_and_the_model_hears_why(up: Program) -> None:
    task = "Where is it, then? [tools:1] [tool:lookup]"
    runs = asyncio.run(
        runs_of(up, f"{task} [as-text:hermes]", f"{task} [as-text:mistral]", task, maxTokens=5, tools=["lookup"])
    )
    assert [(run["status"], run["toolCalls"], run["failedToolCalls"]) for run in runs] == [("Finished", 1, 1)] * 3


def test_the_same_text_is_an_answer_where_the_run_has_no_such_tool(up: Program) -> None:
    (run,) = asyncio.run(runs_of(up, "Where? [as-text:hermes]", tools=[]))
    assert (run["status"], run["toolCalls"]) == ("Finished", 0)
    assert counted(up) == {}
