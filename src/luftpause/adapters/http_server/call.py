"""One request of a client and its answer, as an application sees them: ASGI's `receive` and `send`, and a `Line`.

The connection below feeds it the body and tells it when the client leaves; it frames the answer and writes it.
Nothing here knows of parsing, of other requests on the connection or of how long a client may take.
"""

import asyncio
import http
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from luftpause.adapters.eager_task import Tasks
from luftpause.adapters.http_server.answer_lines import line_of, size_line
from luftpause.core.dialects.failures import Failure, FailureCode, openai_error
from luftpause.ports.asgi import (
    Answering,
    Application,
    BodyTooLongError,
    ClientLeftError,
    Line,
    Message,
    Running,
    Scope,
)
from luftpause.ports.engines import Header

BODY_BYTES_HELD: Final = 64 * 1024
"""Bytes of a body that wait for their application before the client has to."""

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status} {status.phrase}".encode() for status in http.HTTPStatus}
_FRAMING: Final = frozenset((b"connection", b"content-length", b"transfer-encoding"))
"""Headers that say how an answer is framed."""
NO_CONTENT: Final = 204
_BODILESS: Final = (NO_CONTENT, 304)

_LOGGER: Final = logging.getLogger("luftpause.http")

_LAST_CHUNK: Final = b"0\r\n\r\n"


class Wire(Protocol):
    """The connection below a call."""

    transport: asyncio.Transport
    writable: asyncio.Event | None
    """What a writer waits for while the socket takes no more; None while it does."""

    def pause_reading(self) -> None:
        """Let the client wait."""
        ...

    def resume_reading(self) -> None:
        """Read on, if that was paused."""
        ...

    def answered(self, *, keep_alive: bool) -> None:
        """The answer is written whole. `keep_alive`: whether another request may follow it."""
        ...

    def cut(self) -> None:
        """Send what was written, then close."""
        ...


class HttpCall(Line):
    """One request, and the line to its client.

    Args:
        bodiless: whether the method is HEAD: the answer's body is left out.
        keep_alive: whether the connection may carry another request.
        expects_continue: whether the client waits for leave to send its body.
        knows_chunks: whether the client understands chunks: HTTP/1.0 does not.
    """

    __slots__ = (
        "_answering",
        "_bodiless",
        "_chunked",
        "_collecting",
        "_expects_continue",
        "_knows_chunks",
        "_length_left",
        "_news",
        "_pieces",
        "_room",
        "_size",
        "_task",
        "_told",
        "_wire",
        "begun",
        "complete",
        "keep_alive",
        "left",
        "whole",
    )

    left: bool

    def __init__(
        self, wire: Wire, *, bodiless: bool, keep_alive: bool, expects_continue: bool, knows_chunks: bool = True
    ) -> None:
        self.keep_alive = keep_alive
        self.left = False
        self.whole = False
        self.begun = False
        self.complete = False
        self._wire = wire
        self._bodiless = bodiless
        self._expects_continue = expects_continue
        self._knows_chunks = knows_chunks
        self._pieces: list[bytes] = []
        self._size = 0
        self._room = BODY_BYTES_HELD
        self._collecting = False
        self._told = False
        self._news: asyncio.Event | None = None
        self._answering: Answering | None = None
        self._task: Running | None = None
        self._chunked = False
        self._length_left: int | None = None  # None where the end is not told by a length

    def start(self, app: Application, scope: Scope, tasks: Tasks, *, eagerly: bool) -> None:
        """Let the application answer, in a task that is among `tasks` until it ends.

        `eagerly`: as far as it need not wait, at once; then its request should be whole.
        """
        if eagerly:
            task = self._task = tasks.make_eager(self._run(app, scope))
            task.step()
        else:
            self._task = tasks.make(self._run(app, scope))

    async def _run(self, app: Application, scope: Scope) -> None:
        """Let the application answer, and answer for it when it does not."""
        path: str = scope["path"]  # the scope is the application's, which may let go of it
        try:
            await app(scope, self._receive, self._send)
            if not self.complete and not self.left:
                _LOGGER.error("answer_not_completed", extra={"path": path[:200]})
                await self._fail()
        except asyncio.CancelledError:
            await self._fail()
            raise
        except Exception as error:
            if self.left and not self.complete:
                _LOGGER.info("application_broke_off", extra={"path": path[:200], "error": repr(error)})
            else:
                _LOGGER.exception("application_failed", extra={"path": path[:200]})
            await self._fail()
        finally:
            self._answering = None

    # The connection's side.

    def take_piece(self, data: bytes) -> None:
        """A piece of the body has arrived."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._room:
            self._wire.pause_reading()
            self._tell()
        elif not self._collecting:
            self._tell()

    def take_end(self) -> None:
        """The body is whole."""
        self.whole = True
        self._tell()

    def leave(self, *, gone: bool = True) -> bool:
        """The client is `gone`, or has to go. Return whether the application wants to be told, and was."""
        if self.left or self.complete:
            return False
        if gone:
            self.left = True
            self._expects_continue = False
            self._tell()
        told, self._answering = self._answering, None
        if told is not None:
            told.client_leaves(self._running())
        return told is not None

    # The application's side.

    def body_here(self, limit: int) -> bytes | None:
        """See Line."""
        if self.left:
            raise ClientLeftError
        if not self.whole:
            return None
        self._continue()
        if self._size > limit:
            raise BodyTooLongError
        self._told = True
        return self._take()

    async def body(self, limit: int) -> bytes:
        """See Line."""
        self._continue()
        self._room = limit
        self._collecting = True
        while (body := self.body_here(limit)) is None:
            if self._size > limit:
                raise BodyTooLongError
            self._wire.resume_reading()
            await self._arrival()
        return body

    def on_leave(self, told: Answering | None) -> None:
        """See Line."""
        if told is not None and self.left:
            told.client_leaves(self._running())
        else:
            self._answering = told

    def cut(self) -> None:
        """See Line."""
        if self.complete:
            return  # the connection may be another call's by now
        self._answering = None  # who cuts need not be told
        self._wire.cut()

    async def room(self) -> None:
        """See Line."""
        writable = self._wire.writable
        if writable is not None and not self.left:
            await writable.wait()

    def begin(self, status: int, headers: Sequence[Header]) -> None:
        """See Line."""
        if self.left:
            return
        if self.begun:
            raise RuntimeError("an answer begins once")
        if self._expects_continue:
            self._expects_continue = False
            self.keep_alive = False  # nobody knows whether the body still comes
        lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d " % status]
        length: int | None = None
        closing = False
        for header in headers:
            name, value = header
            if name in _FRAMING:
                if name == b"transfer-encoding" or (name == b"content-length" and status == NO_CONTENT):
                    continue  # that is the connection's affair
                if name == b"content-length":
                    length = int(value)
                else:
                    closing = b"close" in value.lower()
            lines.append(line_of(header))
        if closing:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close")
        self._write_head(lines, length, bodiless=self._bodiless or status in _BODILESS)

    def _write_head(self, lines: list[bytes], length: int | None, *, bodiless: bool) -> None:
        """Frame the answer, whose body has a length if its application knows it, and write its head."""
        if bodiless:
            length = 0
        chunked = length is None and self._knows_chunks
        if chunked:
            lines.append(b"transfer-encoding: chunked")
        lines.append(b"\r\n")
        self.begun = True
        self._bodiless = bodiless
        self._chunked = chunked
        self._length_left = length
        self._wire.transport.write(b"\r\n".join(lines))

    def write(self, data: bytes) -> bool:
        """See Line."""
        if self.left:
            return True
        self._check_under_way()
        if self._chunked:
            if data:
                self._wire.transport.write(b"".join((size_line(len(data)), data, b"\r\n")))
        elif data and not self._bodiless:
            self._write_plain(data)
        if self._length_left == 0:
            self._end()  # the client has it all, its next request may come before the application says so
            self.left = True
        return self._wire.writable is None

    def end(self, data: bytes) -> None:
        """See Line."""
        if self.left:
            return
        self._check_under_way()
        if self._chunked:
            frame = (size_line(len(data)), data, b"\r\n", _LAST_CHUNK) if data else (_LAST_CHUNK,)
            self._wire.transport.write(b"".join(frame))
        elif data and not self._bodiless:
            self._write_plain(data)
        if self._length_left:
            raise RuntimeError("the answer is shorter than its content-length")
        self._end()

    def _check_under_way(self) -> None:
        if not self.begun or self.complete:
            raise RuntimeError("a body belongs to an answer that has begun and has not ended")

    async def _receive(self) -> Message:
        """ASGI's receive."""
        self._continue()
        while not self.left and not self.complete:
            if self._pieces or (self.whole and not self._told):
                self._told = self.whole
                return {"type": "http.request", "body": self._take(), "more_body": not self.whole}
            self._wire.resume_reading()
            await self._arrival()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        """ASGI's send.

        Raises:
            RuntimeError: the message breaks ASGI's rules or HTTP's.
        """
        if self._wire.writable is not None:
            await self.room()
        kind = message["type"]
        if kind == "http.response.body":
            if message.get("more_body", False):
                self.write(message.get("body", b""))
            else:
                self.end(message.get("body", b""))
        elif kind == "http.response.start":
            self.begin(message["status"], [(name.lower(), value) for name, value in message.get("headers", ())])
        else:
            raise RuntimeError(f"{kind!r} is not what may be sent now")

    def _write_plain(self, body: bytes) -> None:
        """Write a piece of a body that its length or the connection's end frames."""
        if self._length_left is not None:
            self._length_left -= len(body)
            if self._length_left < 0:
                raise RuntimeError("the answer is longer than its content-length")
        self._wire.transport.write(body)

    def _end(self) -> None:
        self.complete = True
        self._answering = None
        self._pieces.clear()
        self._tell()
        self._wire.answered(keep_alive=self.keep_alive)

    def _running(self) -> Running:
        assert self._task is not None, "a call is started before anything can happen to it"
        return self._task

    async def _fail(self) -> None:
        """Answer for an application that did not."""
        if self.begun:
            self.cut()
            return
        failure = Failure(code=FailureCode.INTERNAL, message="the server failed, see its log")
        body = openai_error(failure)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": failure.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def _continue(self) -> None:
        """Tell a client that waits for it to send its body."""
        if self._expects_continue:
            self._expects_continue = False
            self._wire.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _take(self) -> bytes:
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces = []
        self._size = 0
        self._wire.resume_reading()
        return body

    async def _arrival(self) -> None:
        """Return when something has happened that was awaited."""
        if self._news is None:
            self._news = asyncio.Event()
        self._news.clear()
        await self._news.wait()

    def _tell(self) -> None:
        if self._news is not None:
            self._news.set()
