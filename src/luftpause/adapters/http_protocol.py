"""The server side of one HTTP connection: uvicorn's protocol on httptools, hardened for a door to the world.

What it adds: bounded heads and time to send them, JSON instead of plain text when a request is no HTTP, a half-close
that lets the client read such an answer, and no pipelining: bytes after a whole request are ignored while its answer
is under way, so that a client's leaving is always noticed, and the answer ends the connection. An application can
end a broken answer through `scope["extensions"]["luftpause.http"]["cut"]()`: what was sent goes out, then the
connection closes without the final chunk.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from luftpause.core.dialects.failures import Failure, FailureCode, openai_error
from luftpause.ports.asgi import CUT_EXTENSION
from luftpause.ports.engines import Header

HEAD_BYTES_MAX: Final = 64 * 1024

RefusalHeaders = Callable[[Iterable[Header]], Sequence[Header]]
"""From a request's headers, as far as they are known, to those that a refusal made by the door carries."""

_LOGGER: Final = logging.getLogger("luftpause.http")


class DoorState(ServerState):
    """What the connections of one server share.

    Attributes:
        drained: set when the last connection is gone.
        head_timeout_s: seconds a client may take to send a request's head.
    """

    def __init__(self, *, head_timeout_s: float, refusal_headers: RefusalHeaders) -> None:
        super().__init__()
        self.drained = asyncio.Event()
        self.head_timeout_s = head_timeout_s
        self.refusal_headers = refusal_headers


class DoorProtocol(HttpToolsProtocol):
    """One connection of a client.

    Attributes:
        overdue_at: loop time at which a connection that waits for its client is closed, 0.0 while it does not wait.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(server_state, DoorState)
        self.logger = _LOGGER
        self.overdue_at = 0.0
        self._door = server_state
        self._extensions: dict[str, dict[object, object]] = {CUT_EXTENSION: {"cut": self.cut}}
        self._head_bytes = 0
        self._piece_bytes = 0
        self._deaf = False
        self._fault: Failure | None = None

    def cut(self) -> None:
        """End the answer under way as broken: send what was written, then close without the final chunk."""
        self._stop_application()
        self._await_client()
        self.transport.close()

    def expire(self, now: float) -> None:
        """Close the connection if its client kept it waiting for too long."""
        if self.overdue_at and now > self.overdue_at and self.timeout_keep_alive_task is None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Event loop callback."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._await_client()

    def connection_lost(self, exc: Exception | None) -> None:
        """Event loop callback."""
        super().connection_lost(exc)
        self._extensions.clear()
        self._unset_keepalive_if_required()
        if not self.connections:
            self._door.drained.set()

    def data_received(self, data: bytes) -> None:
        """Event loop callback."""
        self._unset_keepalive_if_required()
        if self._deaf or self.transport.is_closing():
            return
        self._piece_bytes = len(data)
        self._head_bytes += self._piece_bytes
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # we speak nothing else: the request is answered as it is
        except httptools.HttpParserError as error:
            self._refuse(self._fault or Failure(code=FailureCode.BAD_HTTP, message=f"not valid HTTP: {error}"))
        else:
            if self.overdue_at and self._head_bytes > HEAD_BYTES_MAX and not self._body_expected():
                self._refuse(_too_large())

    def on_message_begin(self) -> None:
        """Parser callback."""
        if self._answering():
            self._deaf = True
            self.cycle.keep_alive = False
            raise _PipelinedError
        super().on_message_begin()
        self.scope["extensions"] = self._extensions
        self._head_bytes = self._piece_bytes
        self._await_client()

    def on_headers_complete(self) -> None:
        """Parser callback."""
        if self._head_bytes > HEAD_BYTES_MAX and self._head_size() > HEAD_BYTES_MAX:
            self._fault = _too_large()
            raise _HeadTooLargeError
        self.overdue_at = 0.0
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The application answered whole. A body still under way is read to its end and dropped, for a while."""
        super().on_response_complete()
        self._await_client()

    @property
    def _current(self) -> RequestResponseCycle | None:
        """The last request and its answer; uvicorn's own annotation leaves out that there is none at first."""
        return cast("RequestResponseCycle | None", self.cycle)

    def _answering(self) -> bool:
        """Return whether a whole request is being answered."""
        cycle = self._current
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _body_expected(self) -> bool:
        return self._current is not None and self._current.more_body

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _await_client(self) -> None:
        self.overdue_at = self.loop.time() + self._door.head_timeout_s

    def _refuse(self, failure: Failure) -> None:
        """Answer what is no request, unless an answer is under way, and listen no more."""
        if self._deaf:
            return
        self._deaf = True
        _LOGGER.info("bad_http_refused", extra={"code": failure.code.value, "reason": failure.message})
        if self._body_expected() and self.cycle.response_started:
            self.cut()
            return
        if self._body_expected():
            self._stop_application()
        self.transport.write(_render(failure, self._door.refusal_headers(self.headers or ())))
        self._await_client()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _stop_application(self) -> None:
        """Let the application see a client that left."""
        cycle = self._current
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()


class _PipelinedError(Exception):
    """Stops the parser at bytes that came before the answer to the last request: they are ignored."""


class _HeadTooLargeError(Exception):
    """Stops the parser at a head that is too large."""


def _too_large() -> Failure:
    message = f"the request line and headers exceed {HEAD_BYTES_MAX // 1024} KiB"
    return Failure(code=FailureCode.HEADERS_TOO_LARGE, message=message)


def _render(failure: Failure, headers: Iterable[Header]) -> bytes:
    reason = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}[failure.status]
    body = openai_error(failure)
    lines = [b"HTTP/1.1 %d %b" % (failure.status, reason)]
    lines += [b"%b: %b" % header for header in headers]
    lines += [b"content-type: application/json", b"content-length: %d" % len(body), b"connection: close", b"", body]
    return b"\r\n".join(lines)
