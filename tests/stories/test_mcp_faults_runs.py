"""Runs that must not be lost: family, outages, damage and shutdown, against the real program."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from stories.programs import Program, launch, running
from stories.set_ups import FREE_PORTS, MODEL, free_port, replicas, tools, write

pytestmark = pytest.mark.timeout(180)


@contextmanager
def killed_at_the_end(program: Program) -> Iterator[Program]:
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.kill()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[str]:
    with running(tmp_path, "engine", "fake-engine", "--port", "0", "--model", MODEL, "--token-ms", "5") as program:
        yield program.url("engine")


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await asyncio.wait_for(client.call_tool(tool, arguments), 60)
    assert not result.is_error, result.content
    answer = result.structured_content
    assert isinstance(answer, dict)
    return answer


async def spawn(client: Client, task: str, **more: object) -> str:
    return str((await call(client, "spawn", task=task, model=MODEL, **more))["handle"])


async def finish(client: Client, *handles: str, timeout_s: float = 20) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = (await call(client, "await", handles=handles, timeout=timeout_s))["runs"]
    return runs


def mcp(program: Program) -> Client:
    return Client(program.url("runtime") + "/mcp")


def test_cancelling_a_finished_parent_ends_its_running_children(tmp_path: Path, engine: str) -> None:
    config = write(tmp_path, FREE_PORTS, replicas(engine))
    with killed_at_the_end(launch(tmp_path, "up", "up", "--config", config)) as up:

        async def main() -> list[str]:
            async with mcp(up) as client:
                parent = await spawn(client, "[tokens:1] parent")
                child = await spawn(client, "[stall] child", parent=parent)
                grandchild = await spawn(client, "[stall] grandchild", parent=child)
                assert (await finish(client, parent))[0]["status"] == "Finished"
                await call(client, "cancel", handle=parent)
                return [run["status"] for run in await finish(client, parent, child, grandchild, timeout_s=3)]

        assert asyncio.run(main()) == ["Finished", "Cancelled", "Cancelled"]


def test_a_dataplane_that_is_away_for_a_while_fails_no_run(tmp_path: Path, engine: str) -> None:
    link, http, door, port = (free_port() for _ in range(4))
    ports = f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = {door}\n[runtime]\nport = {port}\n"
    config = write(tmp_path, replicas(engine), tools(0.2), ports)
    with ExitStack() as stack:
        stack.enter_context(running(tmp_path, "scheduler", "scheduler", "--config", config))

        def start(service: str) -> Program:
            return stack.enter_context(killed_at_the_end(launch(tmp_path, service, service, "--config", config)))

        dataplane, runtime = start("dataplane"), start("runtime")

        async def main() -> dict[str, Any]:
            async with mcp(runtime) as client:
                handle = await spawn(client, "[tools:2] a run in an outage")
                dataplane.kill()
                during = (await finish(client, handle, timeout_s=6))[0]
                assert during["status"] == "Running", during
                await asyncio.to_thread(start, "dataplane")
                return (await finish(client, handle, timeout_s=30))[0]

        assert asyncio.run(main())["status"] == "Finished"


def journal_of_one_finished_and_one_open_run(directory: Path, config: str) -> tuple[Path, str, str]:
    with killed_at_the_end(launch(directory, "up", "up", "--config", config)) as up:

        async def main() -> tuple[str, str]:
            async with mcp(up) as client:
                over = await spawn(client, "[tools:1] over")
                assert (await finish(client, over))[0]["status"] == "Finished"
                return over, await spawn(client, "[tokens:400] open", maxTokens=0)

        over, unfinished = asyncio.run(main())
    return directory / "state" / "runs.jsonl", over, unfinished


def after_restart(directory: Path, config: str, *handles: str) -> list[dict[str, Any]]:
    with killed_at_the_end(launch(directory, "up", "up", "--config", config)) as up:

        async def main() -> list[dict[str, Any]]:
            async with mcp(up) as client:
                return await finish(client, *handles)

        return asyncio.run(main())


def test_a_finished_run_keeps_its_result_when_an_earlier_line_of_it_is_damaged(tmp_path: Path, engine: str) -> None:
    config = write(tmp_path, FREE_PORTS, replicas(engine), tools(0))
    file, over, _ = journal_of_one_finished_and_one_open_run(tmp_path, config)
    lines = file.read_bytes().splitlines(keepends=True)
    place = next(
        n for n, line in enumerate(lines) if over.encode() in line and json.loads(line)["kind"] == "turn_taken"
    )
    lines[place] = lines[place].replace(b'"kind":"turn_taken"', b'"kind":"turn_tXken"')
    file.write_bytes(b"".join(lines))
    run = after_restart(tmp_path, config, over)[0]
    assert (run["status"], run["error"]) == ("Finished", None)
    assert run["result"]


def test_a_torn_end_of_several_lines_fails_no_unfinished_run(tmp_path: Path, engine: str) -> None:
    config = write(tmp_path, FREE_PORTS, replicas(engine), tools(0))
    file, over, unfinished = journal_of_one_finished_and_one_open_run(tmp_path, config)
    with file.open("ab") as journal:
        journal.write(b"garbage\n\n" + bytes(64))
    runs = after_restart(tmp_path, config, over, unfinished)
    assert [(run["status"], run["error"]) for run in runs] == [("Finished", None)] * 2


def test_a_cancel_that_cannot_be_recorded_is_not_answered_as_if_all_were_well(tmp_path: Path, engine: str) -> None:
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("needs prlimit to fill the disk of another process")
    config = write(tmp_path, FREE_PORTS, replicas(engine))
    with killed_at_the_end(launch(tmp_path, "up", "up", "--config", config)) as up:

        async def main() -> None:
            async with mcp(up) as client:
                handle = await spawn(client, "[stall] open")
                size = (tmp_path / "state" / "runs.jsonl").stat().st_size
                resource.prlimit(up.process.pid, resource.RLIMIT_FSIZE, (size, size))
                assert (await client.call_tool("spawn", {"task": "one more", "model": MODEL})).is_error
                cancelled = await client.call_tool("cancel", {"handle": handle})
                assert cancelled.is_error, cancelled.structured_content
                # Nothing will ever end this run here, so nobody should wait for it in silence.
                began = time.monotonic()
                await client.call_tool("await", {"handles": [handle], "timeout": 50})
                assert time.monotonic() - began < 40

        asyncio.run(main())
