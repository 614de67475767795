"""A real tool server on the official SDK: `small_tool_server.py stdio`, `… http PORT` or `… session PORT`.

Over HTTP it prints its port once it listens; port 0 picks a free one. `session` is HTTP as before 2026, with sessions.
`SMALL_TOOLS_LOG` names a file that gets a line for every call of a tool that changes something.
"""

import asyncio
import contextlib
import os
import socket
import sys
import time
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import ToolAnnotations
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

READ_ONLY = ToolAnnotations(read_only_hint=True)
tools = MCPServer("small-tools", log_level="ERROR")


def log(what: str) -> None:
    with open(os.environ["SMALL_TOOLS_LOG"], "a", encoding="utf-8") as file:
        file.write(what + "\n")


@tools.tool(annotations=READ_ONLY)
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


@tools.tool()
def write(text: str) -> str:
    """Write something down."""
    log(f"write {text}")
    return "written"


@tools.tool(annotations=READ_ONLY)
def environment() -> str:
    """Names of the environment's variables."""
    return " ".join(sorted(os.environ))


@tools.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("it does not work")


@tools.tool(annotations=READ_ONLY)
def refuse(code: int, message: str) -> str:
    """Answer with an error of the protocol."""
    raise MCPError(code=code, message=message)


@tools.tool()
async def hang() -> str:
    """Never answer."""
    log("hang")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        log("hang cancelled")
        raise
    return "never"


@tools.tool()
def die() -> str:
    """End the server in the middle of the call."""
    log("die")
    os._exit(3)


@tools.tool(annotations=READ_ONLY)
def die_once() -> str:
    """End the server in the middle of the first call, answer the second."""
    path = os.environ["SMALL_TOOLS_LOG"] + ".died"
    if os.path.exists(path):
        return "alive again"
    with open(path, "w", encoding="utf-8"):
        os._exit(3)


@tools.tool(annotations=READ_ONLY)
async def meet(name: str) -> str:
    """Wait until somebody writes the file of this name."""
    log(f"meet {name}")
    path = Path(f"{os.environ['SMALL_TOOLS_LOG']}.{name}")
    async with asyncio.timeout(30):
        while True:
            if await asyncio.to_thread(path.exists):
                return f"met {name}"
            await asyncio.sleep(0.01)


@tools.tool(annotations=READ_ONLY)
async def crawl(steps: int, pause_s: float, context: Context) -> str:
    """Take a while and say so."""
    for step in range(steps):
        await asyncio.sleep(pause_s)
        await context.report_progress(step + 1, steps)
    return "arrived"


@tools.tool(annotations=READ_ONLY)
def long(length: int) -> str:
    """Say a lot."""
    return "x" * length


@tools.tool(annotations=READ_ONLY)
def key(context: Context) -> str:
    """Repeat the key of this call, as the header has it."""
    request = context.request_context.request
    return "none" if request is None else str(request.headers.get("idempotency-key"))


@tools.tool()
async def grow(name: str, context: Context) -> str:
    """Add a tool."""
    tools.add_tool(lambda: "new", name=name, description="New")
    await context.notify_tools_changed()
    with contextlib.suppress(Exception):
        await context.session.send_tool_list_changed()
    return "grown"


@tools.tool()
def complain(lines: int) -> str:
    """Write into the standard error, and nonsense into the standard output."""
    for line in range(lines):
        sys.stderr.write(f"complaint {line} \x1b[31m\n")
    sys.stderr.flush()
    os.write(1, b"this is no message\n")
    return "complained"


def before_2026(app: ASGIApp) -> ASGIApp:
    """Answer as a server does that has never heard of the newer protocol."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if (b"mcp-protocol-version", b"2026-07-28") in scope.get("headers", ()):
            await Response(status_code=400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer


def listening(port: int) -> socket.socket:
    """Listen, as soon as one that was killed a moment ago does not any more."""
    for _ in range(500):
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
        time.sleep(0.01)
    raise OSError(f"port {port} is taken")


def main() -> None:
    if sys.argv[1] == "stdio":
        tools.run("stdio")
        return
    listener = listening(int(sys.argv[2]))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    app = tools.streamable_http_app()
    config = uvicorn.Config(before_2026(app) if sys.argv[1] == "session" else app, log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
