"""Serves one ASGI application on one address inside a running event loop.

It installs no signal handlers, writes no access log and never exits the process. uvicorn runs the application's
lifespan; connections are `http_protocol`'s. Time to send a body is the application's affair. Which event loop runs
(uvloop or asyncio) is the caller's choice.
"""

import asyncio
import logging
from typing import Final, cast

from uvicorn._types import ASGIApplication
from uvicorn.config import Config
from uvicorn.lifespan.off import LifespanOff
from uvicorn.lifespan.on import LifespanOn

from luftpause.adapters.http_server.accepting import Acceptor
from luftpause.adapters.http_server.listening import BACKLOG, address_of, listen
from luftpause.adapters.http_server.protocol import DoorProtocol, DoorState
from luftpause.adapters.http_server.refusal import PLAIN, Refusals
from luftpause.ports.asgi import Application

HEAD_TIMEOUT_S: Final = 20.0
"""Seconds a client may take to send a request's head."""

KEEP_ALIVE_S: Final = 75.0
"""Seconds that an idle connection is kept."""

LAST_WORD_S: Final = 1.0
"""Seconds that a client has to take the last word of an application before its connection is aborted."""

ABORT_S: Final = 2.0
"""Seconds applications get to end after their connections were aborted, before they are cancelled."""

_LOGGER: Final = logging.getLogger("luftpause.http")


class ApplicationFailedError(Exception):
    """The application's lifespan did not start."""


class HttpServer:
    """Serves an ASGI application.

    Args:
        app: an ASGI 3 application.
        host: name or address to listen on.
        port: 0 picks a free one.
        lifespan: whether the application wants lifespan events.
        refusals: how the answers look that the server gives by itself to what is no HTTP.
        shared: whether other processes serve the same port; see `listening`.
    """

    def __init__(
        self,
        app: Application,
        *,
        host: str,
        port: int,
        lifespan: bool = False,
        refusals: Refusals = PLAIN,
        shared: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.head_timeout_s = HEAD_TIMEOUT_S
        self.keep_alive_s = KEEP_ALIVE_S
        self._app = app
        self._config = Config(
            cast("ASGIApplication", app),
            ws="none",
            lifespan="on" if lifespan else "off",
            interface="asgi3",
            log_config=None,
            proxy_headers=False,
        )
        self._refusals = refusals
        self._shared = shared
        self._state: DoorState | None = None
        self._lifespan: LifespanOn | LifespanOff | None = None
        self._server: asyncio.Server | None = None
        self._acceptor: Acceptor | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def url(self) -> str:
        """Base URL without a final slash; the port is known once started."""
        return f"http://{address_of(self.host, self.port)}"

    async def start(self) -> None:
        """Bind, start the application, accept connections.

        Raises:
            AddressInUseError: the port is taken.
            CannotListenError: the address cannot be bound for another reason.
            ApplicationFailedError: the application's lifespan failed.
        """
        listener = await listen(self.host, self.port, shared=self._shared)
        self.port = listener.getsockname()[1]
        config = self._config
        if not config.loaded:
            config.load()
        self._lifespan = lifespan = cast("LifespanOn | LifespanOff", config.lifespan_class(config))
        await lifespan.startup()
        if lifespan.should_exit:
            listener.close()
            raise ApplicationFailedError(f"the application behind {self.url} did not start, see its log")
        state = self._state = DoorState(
            self._app,
            app_state=lifespan.state,
            head_timeout_s=self.head_timeout_s,
            keep_alive_s=self.keep_alive_s,
            refusals=self._refusals,
        )
        loop = asyncio.get_running_loop()
        self._acceptor = acceptor = Acceptor(listener, lambda: DoorProtocol(state, loop))
        self._server = await loop.create_server(acceptor, sock=listener, backlog=BACKLOG)
        self._sweep()

    async def close(self, grace_s: float = 5.0) -> None:
        """Stop accepting, let open requests end for up to `grace_s` seconds, then tell them and abort what is left."""
        server, self._server = self._server, None
        state = self._state
        if server is None or state is None:
            return
        server.close()
        if self._acceptor is not None:
            await self._acceptor.close()
        state.closing = True
        for connection in list(state.connections):
            connection.shutdown()
        await _drained(state, grace_s)
        if state.connections:
            _LOGGER.warning("open_requests_aborted", extra={"url": self.url, "connections": len(state.connections)})
            if sum(connection.shutdown(now=True) for connection in list(state.connections)):
                await _drained(state, LAST_WORD_S)
            for connection in list(state.connections):
                connection.transport.abort()
            await _drained(state, ABORT_S)
        await _end_tasks(state)
        await server.wait_closed()
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._lifespan is not None:
            await self._lifespan.shutdown()

    def _sweep(self) -> None:
        """Close connections whose client sends its head too slowly, or never."""
        loop = asyncio.get_running_loop()
        if self._state is not None:
            for connection in list(self._state.connections):
                connection.expire(loop.time())
        self._sweeper = loop.call_later(min(self.head_timeout_s, self.keep_alive_s) / 4, self._sweep)


async def _drained(state: DoorState, limit_s: float) -> None:
    """Wait until no connection is left, for `limit_s` seconds at most."""
    state.drained.clear()
    if state.connections:
        try:
            async with asyncio.timeout(limit_s):
                await state.drained.wait()
        except TimeoutError:
            return


async def _end_tasks(state: DoorState) -> None:
    """Wait for applications that are still running, then cancel them."""
    if not await state.tasks.ended_within(ABORT_S):
        await state.tasks.cancel()
