"""A real tool server on the official SDK: `small_tool_server.py stdio` or `small_tool_server.py http PORT`.

Over HTTP it prints its port once it listens; port 0 picks a free one. `SMALL_TOOLS_LOG` names a file that gets a line
for every call of a tool that changes something.
"""

import asyncio
import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import ToolAnnotations

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


def main() -> None:
    if sys.argv[1] == "stdio":
        tools.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(tools.streamable_http_app(), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
