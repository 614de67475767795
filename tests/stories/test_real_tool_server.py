"""A tool server that strangers wrote, installed from the package registry into an environment of its own."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from stories.programs import running
from stories.set_ups import FREE_PORTS, MODEL, replicas, write

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]
TIME = "mcp-server-time==2026.10.19"
WIKIPEDIA = "wikipedia-mcp==2.0.1"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the server in it."""
    return installed(tmp_path_factory.mktemp("tool-server"), TIME)


@pytest.fixture(scope="module")
def wikipedia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of another one."""
    return installed(tmp_path_factory.mktemp("wikipedia"), WIKIPEDIA).with_name("wikipedia-mcp")


def installed(folder: Path, package: str) -> Path:
    """The interpreter of a new environment with a package; skips the test where there is none to be had."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    python = folder / "bin/python"
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    command = [str(python), "-m", "pip", "install", *quiet, package]
    done = subprocess.run(command, check=False, timeout=400, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{package} could not be installed: {done.stderr.strip()[-200:]}")
    return python


def config_of(folder: Path, engine: str, server: str) -> str:
    return write(folder, FREE_PORTS, replicas(engine), server)


def test_sub_agents_call_it_and_hear_its_errors(tmp_path: Path, python: Path) -> None:
    command = json.dumps([str(python), "-m", "mcp_server_time", "--local-timezone", "UTC"])
    server = f'\n[[tools]]\nname = "time"\ncommand = {command}\n'
    asked = "What time is it? [tools:1] [tool:get_current_time] [arg:timezone={zone}]"
    tasks = [asked.format(zone=zone) for zone in ("Europe/Oslo", "Europe/Nowhere")]
    with (
        running(tmp_path, "engine", "fake-engine", "--port", "0", "--model", MODEL, "--token-ms", "1") as engine,
        running(
            tmp_path, "up", "up", "--config", write(tmp_path, FREE_PORTS, replicas(engine.url("engine")), server)
        ) as up,
    ):

        async def main() -> list[dict[str, Any]]:
            async with asyncio.timeout(90), Client(up.url("runtime") + "/mcp") as client:
                handles = []
                for task in tasks:
                    arguments = {"task": task, "model": MODEL, "tools": ["time__get_current_time"]}
                    spawned = await client.call_tool("spawn", arguments)
                    assert spawned.structured_content is not None, spawned.content
                    handles.append(spawned.structured_content["handle"])
                ended = await client.call_tool("await", {"handles": handles, "timeout": 60})
                assert ended.structured_content is not None, ended.content
                runs: list[dict[str, Any]] = ended.structured_content["runs"]
                return runs

        told, failed = asyncio.run(main())
    assert (told["status"], told["failedToolCalls"]) == ("Finished", 0)
    assert "Europe/Oslo" in told["result"]
    assert (failed["status"], failed["failedToolCalls"]) == ("Finished", 1)
    assert "Error" in failed["result"]


def test_a_server_of_many_tools_is_given_whole_and_its_failures_are_its_own(tmp_path: Path, wikipedia: Path) -> None:
    """Whether the encyclopaedia can be reached from here or not: its answer, or its error, reaches the sub-agent."""
    server = f'\n[[tools]]\nname = "wikipedia"\ncommand = {json.dumps([str(wikipedia)])}\ntimeout = "60s"\n'
    task = "What is luft? [tools:1] [tool:search_wikipedia] [arg:query=Luft]"
    with (
        running(tmp_path, "engine", "fake-engine", "--port", "0", "--model", MODEL, "--token-ms", "1") as engine,
        running(tmp_path, "up", "up", "--config", config_of(tmp_path, engine.url("engine"), server)) as up,
    ):

        async def main() -> tuple[list[str], dict[str, Any]]:
            async with asyncio.timeout(150), Client(up.url("runtime") + "/mcp") as client:
                names: list[str] = []
                while "search_wikipedia" not in names:
                    listed = (await client.call_tool("tools", {})).structured_content
                    assert listed is not None
                    names = [tool["name"] for tool in listed["tools"]]
                ran = await client.call_tool("run", {"task": task, "model": MODEL})
                assert ran.structured_content is not None, ran.content
                return names, ran.structured_content

        names, run = asyncio.run(main())
    assert {"search_wikipedia", "get_article", "get_summary"} <= set(names)
    assert (run["status"], run["toolCalls"]) == ("Finished", 1)
    assert run["result"]
