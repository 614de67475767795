"""Real tool servers as child processes, and the adapter connected to them."""

import asyncio
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from luftpause.adapters.tools_mcp.tools import McpTools
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.core.runs.tools import ToolSpec
from luftpause.ports.tools import ToolOutcome

T = TypeVar("T")
NURSERY = Path(__file__).with_name("nursery.py")


@cache
def nursery() -> str:
    """The socket at which servers are born; the process behind it ends with ours."""
    folder = tempfile.mkdtemp(prefix="nursery-")
    path = str(Path(folder) / "socket")
    process = subprocess.Popen([sys.executable, str(NURSERY), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end() -> None:
        with process:
            process.kill()
        shutil.rmtree(folder)

    atexit.register(end)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return path


def small_tool_server(*arguments: str) -> list[str]:
    """The command of a real tool server on the official SDK. No site packages: whoever forks it has them already."""
    return [sys.executable, "-I", "-S", str(NURSERY), nursery(), *arguments]


def in_time(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(40):
            return await work

    return asyncio.run(bounded())


def stdio_spec(folder: Path, **changes: float) -> ToolServerSpec:
    env = {"SMALL_TOOLS_LOG": str(folder / "log")}
    spec = ToolServerSpec(name="small", command=tuple(small_tool_server("stdio")), env=env)
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
    command = small_tool_server(era, str(port))
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
