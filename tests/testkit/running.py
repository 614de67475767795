"""What the tests of the test kit share: a bounded `run`, one-shot HTTP, and waiting for a condition."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

Result = TypeVar("Result")
BOUND_S = 50.0


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on a fresh loop, for at most BOUND_S."""

    async def bounded() -> Result:
        async with asyncio.timeout(BOUND_S):
            return await coroutine

    return asyncio.run(bounded())


async def request(url: str, *, method: str = "GET", body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Send one request on a connection of its own; return status, headers and what came of the body."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = f"{method} {target} HTTP/1.1\r\nhost: {parts.netloc}\r\nconnection: close\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    top, _, rest = answer.partition(b"\r\n\r\n")
    status_line, *lines = top.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status_line.split()[1]), headers, rest


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Return when the condition holds; `run` bounds the wait."""
    while True:
        if await holds():
            return
        await asyncio.sleep(0.005)
