"""Serve an ASGI app of the test kit on a socket that is already bound, until told to stop.

Binding first makes a taken port an ordinary error before anything else has started, and port 0 known at once. Knows
nothing of what it serves; leaves signals to its caller.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import uvicorn

App = Callable[..., Awaitable[None]]
"""An ASGI app: scope, receive, send."""

GRACE_S = 1
"""How long answers under way may take to end once the server stops, seconds."""


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals alone and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signals: the process belongs to the caller."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets=sockets)
        self.listening.set()


def bind(host: str, port: int) -> socket.socket:
    """Return a bound TCP socket; port 0 picks a free one.

    Raises:
        OSError: the port is taken or the host is none of ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def url_of(listener: socket.socket) -> str:
    """Return `http://host:port` of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.asynccontextmanager
async def serving(app: App, listener: socket.socket, *, lifespan: bool) -> AsyncIterator[None]:
    """Serve `app` inside the block; on leaving, answers get GRACE_S to end. Closes the socket."""
    config = uvicorn.Config(
        app,
        loop="none",
        http="httptools",
        ws="none",
        lifespan="on" if lifespan else "off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = _Server(config)
    serve = asyncio.create_task(server.serve(sockets=[listener]), name="serve")
    listening = asyncio.create_task(server.listening.wait(), name="listening")
    try:
        await asyncio.wait((serve, listening), return_when=asyncio.FIRST_COMPLETED)
        if serve.done():
            await serve
        yield
    finally:
        listening.cancel()
        server.should_exit = True
        await serve
        listener.close()
