"""The server side of one HTTP connection: bytes in, calls of an ASGI application out.

Heads are bounded in size and time. What is no HTTP gets a JSON answer and a half-close that lets the client read it.
There is no pipelining: bytes after a whole request are ignored while its answer is under way, so that a client's
leaving is always noticed, and the answer ends the connection.
"""

import asyncio
import logging
from typing import Final, cast

from luftpause.adapters.eager_task import Tasks
from luftpause.adapters.http_server.call import HttpCall, Wire
from luftpause.adapters.http_server.known_heads import KnownHeads
from luftpause.adapters.http_server.reader import BadHttpError, Parsers, PipelinedError, RequestReader
from luftpause.adapters.http_server.refusal import Refusals, render_refusal
from luftpause.adapters.http_server.scope import Ends
from luftpause.core.dialects.failures import Failure
from luftpause.ports.asgi import LINE_EXTENSION, Application, Scope, runs_eagerly

READ_BYTES: Final = 512 * 1024
"""Bytes that are taken from a socket at a time: most requests are whole after one read, and their bodies one piece."""

_LOGGER: Final = logging.getLogger("luftpause.http")


class DoorState:
    """What the connections of one server share.

    Args:
        app: what answers.
        app_state: what its lifespan left for requests.
        head_timeout_s: seconds a client may take to send a request's head.
        keep_alive_s: seconds a connection is kept without a request.
        refusals: how the answers to what is no HTTP look.

    Attributes:
        connections: all open ones.
        eager: whether the application may begin where a request was read.
        tasks: what runs the calls of the application that have not ended.
        closing: whether the server closes: it waits for no client then.
        drained: set when the last connection is gone.
        buffer: where sockets are read into; nothing stays there.
        heads: those of requests that were read before.
        parsers: those that no connection uses.
    """

    def __init__(
        self,
        app: Application,
        *,
        app_state: dict[str, object],
        head_timeout_s: float,
        keep_alive_s: float,
        refusals: Refusals,
    ) -> None:
        self.app = app
        self.app_state = app_state
        self.head_timeout_s = head_timeout_s
        self.keep_alive_s = keep_alive_s
        self.refusals = refusals
        self.connections: set[DoorProtocol] = set()
        self.eager = runs_eagerly(app)
        self.tasks = Tasks(asyncio.get_running_loop())
        self.closing = False
        self.drained = asyncio.Event()
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.heads = KnownHeads()
        self.parsers = Parsers()


class DoorProtocol(asyncio.BufferedProtocol, Wire):
    """One connection of a client.

    Attributes:
        overdue_at: loop time at which a connection that waits for its client is closed, 0.0 while it does not wait.
        writable: what a writer waits for while the socket takes no more; None while it does.
    """

    __slots__ = (
        "_deaf",
        "_door",
        "_ends",
        "_idle",
        "_loop",
        "_reader",
        "_reading_paused",
        "_scope",
        "_unsent",
        "overdue_at",
        "transport",
        "writable",
    )

    def __init__(self, door: DoorState, loop: asyncio.AbstractEventLoop) -> None:
        self.transport: asyncio.Transport = cast("asyncio.Transport", None)  # until the connection is made
        self.overdue_at = 0.0
        self.writable: asyncio.Event | None = None
        self._door = door
        self._loop = loop
        self._ends: Ends | None = None
        self._reader = RequestReader(
            heads=door.heads, parsers=door.parsers, begin=self._await_client, start=self._begin
        )
        self._reading_paused = False
        self._scope: Scope | None = None
        self._unsent = 0
        self._idle = False
        self._deaf = False

    def cut(self) -> None:
        """End the answer under way as broken: send what was written, then close without the final chunk."""
        self._stop_application()
        self._await_client()
        self.transport.close()

    def expire(self, now: float) -> None:
        """Close the connection if its client kept it waiting for too long."""
        if self.overdue_at and now > self.overdue_at:
            unsent = self.transport.get_write_buffer_size()
            if unsent and unsent != self._unsent:
                self._unsent = unsent
                self._await_client()  # which reads what it was sent, if slowly
            elif self._idle:
                self.overdue_at = 0.0
                self.transport.close()
            else:
                self.transport.abort()

    def shutdown(self, *, now: bool = False) -> bool:
        """Close the connection, after the answer that is under way; `now`: its application may say a last word.

        Return whether it says one.
        """
        call = self._reader.call
        if call is None or call.complete:
            self.transport.close()
            return False
        call.keep_alive = False
        return now and call.leave(gone=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Event loop callback."""
        self.transport = cast("asyncio.Transport", transport)
        self._door.connections.add(self)
        self._ends = Ends(transport, self._door.app_state)
        self._await_client()

    def connection_lost(self, exc: Exception | None) -> None:
        """Event loop callback."""
        self._stop_application()
        self.resume_writing()
        self._door.connections.discard(self)
        if not self._door.connections:
            self._door.drained.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Event loop callback: return where to read into."""
        return self._door.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Event loop callback: bytes were read."""
        self._idle = False
        if self._deaf or self.transport.is_closing():
            return
        try:
            self._reader.feed(self._door.buffer[:nbytes])
        except BadHttpError as error:
            self._refuse(error.failure)
        except PipelinedError:
            self._listen_no_more()
        self._start()

    def pause_writing(self) -> None:
        """Event loop callback: the socket takes no more for now."""
        if self.writable is None:
            self.writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Event loop callback: the socket takes more."""
        writable, self.writable = self.writable, None
        if writable is not None:
            writable.set()

    def pause_reading(self) -> None:
        """Let the client wait."""
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, if that was paused."""
        if self._reading_paused:
            self._reading_paused = False
            self.transport.resume_reading()

    def answered(self, *, keep_alive: bool) -> None:
        """The application answered whole. A body still under way is read to its end and dropped, for a while."""
        if self.transport.is_closing():
            self._await_client()
            return
        self.resume_reading()
        if not keep_alive:
            self._await_client()
            self._close()
        elif self._reader.body_expected:
            self._await_client()
        else:
            self._idle = True
            self.overdue_at = self._loop.time() + self._door.keep_alive_s

    def _begin(self, reader: RequestReader) -> HttpCall:
        """Make ready for the application what answers a request whose head is whole."""
        parts, reader.parts = reader.parts, {}  # they become the scope, which is the application's
        call = HttpCall(
            self,
            bodiless=parts["method"] == "HEAD",
            keep_alive=reader.keep_alive,
            expects_continue=reader.expects_continue,
            knows_chunks=parts["http_version"] == "1.1",
        )
        assert self._ends is not None, "a connection has ends once it is made"
        self._scope = self._ends.scope(parts, {LINE_EXTENSION: {"line": call}})
        self.overdue_at = 0.0
        return call

    def _start(self) -> None:
        """Let the application answer a request that has just begun."""
        scope, call, door = self._scope, self._reader.call, self._door
        if scope is not None and call is not None:
            self._scope = None
            call.start(door.app, scope, door.tasks, eagerly=door.eager and call.whole and not call.left)

    def _await_client(self) -> None:
        self._idle = False
        self.overdue_at = self._loop.time() + self._door.head_timeout_s

    def _refuse(self, failure: Failure) -> None:
        """Answer what is no request, unless an answer is under way, and listen no more."""
        _LOGGER.info("bad_http_refused", extra={"code": failure.code.value, "reason": failure.message})
        reader = self._reader
        call = reader.call
        self._listen_no_more()
        if call is not None and not call.complete and not reader.body_expected:
            return  # it came behind a whole request
        if call is not None and call.begun and reader.body_expected:
            self.cut()
            return
        self._stop_application()
        self.transport.write(render_refusal(failure, reader.url, reader.headers, self._door.refusals))
        self._await_client()
        self._close()

    def _listen_no_more(self) -> None:
        """Drop what comes from now on: it cannot be read."""
        self._deaf = True
        if self._reader.call is not None:
            self._reader.call.keep_alive = False

    def _close(self) -> None:
        """Close the connection after what was written, once the client did: one that still sends would lose that."""
        self._deaf = True
        if self._door.closing:
            self.transport.close()
            return
        try:
            self.transport.write_eof()
        except OSError:  # asyncio's: the client has left without a goodbye
            self.transport.abort()

    def _stop_application(self) -> None:
        """Let the application see a client that left."""
        if self._reader.call is not None:
            self._reader.call.leave()
