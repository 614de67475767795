"""Real tool servers as child processes, and the adapter connected to them."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from luftpause.adapters.tools_mcp.tools import McpTools
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.core.runs.tools import ToolSpec
from luftpause.ports.tools import ToolOutcome

T = TypeVar("T")
SERVER = Path(__file__).with_name("small_tool_server.py")


def in_time(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(40):
            return await work

    return asyncio.run(bounded())


def stdio_spec(folder: Path, **changes: float) -> ToolServerSpec:
    env = {"SMALL_TOOLS_LOG": str(folder / "log")}
    spec = ToolServerSpec(name="small", command=("${python}", str(SERVER), "stdio"), env=env)
    return changed(spec, **changes)


def changed(spec: ToolServerSpec, **changes: float) -> ToolServerSpec:
    """A server as tests want it: patient, and back at once."""
    spec = replace(spec, timeout_s=changes.get("timeout_s", 20.0), backoff_s=changes.get("backoff_s", 0.05))
    return replace(
        spec,
        timeout_max_s=changes.get("timeout_max_s", spec.timeout_max_s),
        concurrency=int(changes.get("concurrency", 0)),
    )


@contextmanager
def http_server(folder: Path, port: int = 0, era: str = "http") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    command = [sys.executable, str(SERVER), era, str(port)]
    environment = {**os.environ, "SMALL_TOOLS_LOG": str(folder / "log")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()
            process.wait(10)


@asynccontextmanager
async def connected(*specs: ToolServerSpec) -> AsyncIterator[McpTools]:
    tools = McpTools(specs)
    tools.start()
    try:
        yield tools
    finally:
        await tools.close()


async def tool(tools: McpTools, name: str) -> ToolSpec:
    return next(each for each in await tools.catalogue([name]) if name in (each.name, each.qualified))


async def call(tools: McpTools, name: str, /, **arguments: object) -> ToolOutcome:
    return await tools.call(await tool(tools, name), arguments, "run_1/1/c1")


async def until_logged(folder: Path, line: str) -> None:
    """Return once a server wrote this line; `in_time` bounds the wait."""
    while True:
        if line in logged(folder):
            return
        await asyncio.sleep(0.01)


def logged(folder: Path) -> list[str]:
    path = folder / "log"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
