"""How to reach a tool server: a child process with a small environment, or a URL."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, create_memory_object_stream, create_task_group
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from luftpause.adapters.tools_mcp.child import ANSWER_BYTES_MAX, Streams, child_streams
from luftpause.adapters.tools_mcp.isolation import End, IsolatingClient
from luftpause.adapters.tools_mcp.listing import tidy

INHERITED: Final = ("PATH", "HOME", "LANG", "TMPDIR")
INHERITED_PREFIX: Final = "LC_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServerSpec:
    """A configured tool server: `command` or `url`, one of the two.

    Attributes:
        command: program and arguments; `${python}` in any of them is this interpreter.
        env: what the child gets beside the allow-listed variables.
        token: sent as a bearer token to `url`, unless empty.
        timeout_s: a call that takes longer has failed, counted from when it is sent.
        timeout_max_s: each sign of progress gives a call another `timeout_s`, up to this.
        concurrency: calls that it gets at once, the others wait; 0 for as many as come.
        connect_timeout_s: an attempt to start and list it that takes longer has failed.
        backoff_s: pause before the next attempt; it doubles up to `backoff_max_s` until a connection has lasted for
            `settled_s`.
        grace_s: a call waits for a server that went away no longer ago than this.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    timeout_s: float = 120.0
    timeout_max_s: float = 600.0
    concurrency: int = 0
    connect_timeout_s: float = 30.0
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    settled_s: float = 30.0
    grace_s: float = 15.0


def child_environment(extra: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a child may see of our environment, and what it was given on top. Never any of our secrets."""
    allowed = {name: value for name, value in ours.items() if name in INHERITED or name.startswith(INHERITED_PREFIX)}
    return {**allowed, **extra}


@asynccontextmanager
async def transport(spec: ToolServerSpec, on_end: Callable[[End], None]) -> AsyncIterator[Streams]:
    """Open the way to a server. `on_end` is called when the way ends by itself, and never for what a server says."""
    async with _child(spec) if spec.command else _remote(spec, on_end) as (read, write):
        sender, receiver = create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            # The SDK says nothing when an idle connection ends; the end of what can be read from it does.
            async with sender:
                try:
                    while True:
                        item = await read.receive()
                        if isinstance(item, SessionMessage):
                            tidy(item.message, spec.name)
                        await sender.send(item)
                except EndOfStream:
                    on_end(End.LOST)
                except (BrokenResourceError, ClosedResourceError):
                    return  # our own side was closed first

        async with create_task_group() as group, receiver:
            group.start_soon(pass_on)
            yield receiver, write
            group.cancel_scope.cancel()


@asynccontextmanager
async def _child(spec: ToolServerSpec) -> AsyncIterator[Streams]:
    program, *arguments = (part.replace("${python}", sys.executable) for part in spec.command)
    starting = child_streams(spec.name, [program, *arguments], child_environment(spec.env, os.environ))
    async with AsyncExitStack() as stack:
        try:
            streams = await stack.enter_async_context(starting)
        except OSError as error:  # uvloop does not say which program it could not start
            raise OSError(error.errno, error.strerror, program) from error
        yield streams


@asynccontextmanager
async def _remote(spec: ToolServerSpec, on_end: Callable[[End], None]) -> AsyncIterator[Streams]:
    headers = {"Authorization": f"Bearer {spec.token}"} if spec.token else {}
    async with (
        IsolatingClient(
            on_end,
            headers,
            connect_timeout_s=spec.connect_timeout_s,
            answer_timeout_s=spec.timeout_s + spec.connect_timeout_s,
        ) as http_client,
        streamable_http_client(spec.url, http_client=http_client, max_sse_event_size=ANSWER_BYTES_MAX) as streams,
    ):
        yield streams
