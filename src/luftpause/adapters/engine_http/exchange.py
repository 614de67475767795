"""One answer of an engine as it arrives: httptools' callbacks in, status, headers and pieces of the body out.

Bodies end by content-length, by the last chunk or by the close of the connection. Informational answers are
skipped. What an engine can make us hold is bounded: header, trailers and chunk extensions by `QUIET_BYTES_MAX`,
the body by pausing the socket.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Generator, Sequence
from typing import Final, Protocol, cast

import httptools

from luftpause.adapters.eager_task import Arrival
from luftpause.adapters.engine_http.trust import tls_fault
from luftpause.ports.engines import EngineBrokeError, EngineUnreachableError, Exchange, Header, Sink

BODY_BYTES_HELD: Final = 48 * 1024
"""Unread bytes of body past which the socket is paused: less than one full read."""

QUIET_BYTES_MAX: Final = 64 * 1024
"""Bytes an engine may send without a byte of body among them: an answer's header is shorter."""

TLS_ALERT: Final = b"\x15\x03"
"""How a server that expected TLS begins its complaint."""
_PLAIN_TRANSFERS: Final = frozenset((b"chunked", b"identity"))
"""Under another one its bytes are not what its content-type says, and the header that tells so ends here."""
_TOO_LONG: Final = f"its header exceeds {QUIET_BYTES_MAX // 1024} KiB"


class Wire(Protocol):
    """The connection below an exchange."""

    def pause_reading(self) -> None:
        """Let the engine wait: nothing more is read."""
        ...

    def resume_reading(self) -> None:
        """Read again."""
        ...

    def resume_writing(self) -> None:
        """The header is here: who still writes the request need not wait."""
        ...

    def release(self, *, reusable: bool) -> None:
        """The exchange is over: keep the connection or abort it."""
        ...


class Answers:
    """Parses the answers of one connection: what it finds is told to the exchange that is under way.

    One parser for all of them: making one looks ten methods up.
    """

    __slots__ = ("exchange", "parser")

    def __init__(self) -> None:
        self.exchange: HttpExchange | None = None
        self.parser = httptools.HttpResponseParser(self)

    def on_message_begin(self) -> None:
        """Parser callback."""
        if self.exchange is not None:
            self.exchange.on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback."""
        if self.exchange is not None:
            self.exchange.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Parser callback."""
        if self.exchange is not None:
            self.exchange.on_headers_complete()

    def on_body(self, data: bytes) -> None:
        """Parser callback."""
        if self.exchange is not None:
            self.exchange.on_body(data)

    def on_message_complete(self) -> None:
        """Parser callback."""
        if self.exchange is not None:
            self.exchange.on_message_complete()


class _NothingLeft:
    """What need not be waited for."""

    def __await__(self) -> Generator[None, None, None]:
        """Return at once."""
        return cast("Generator[None, None, None]", iter(()))


_NOTHING_LEFT: Final = _NothingLeft()


class HttpExchange(Exchange):
    """See Exchange."""

    __slots__ = (
        "_answers",
        "_bodiless",
        "_complete",
        "_error",
        "_full",
        "_lines",
        "_loop",
        "_more",
        "_paused",
        "_pieces",
        "_quiet",
        "_reusable",
        "_sink",
        "_size",
        "_wire",
        "bytes_seen",
        "headers",
        "status",
    )

    status: int
    headers: Sequence[Header]

    def __init__(self, wire: Wire, answers: Answers, *, method: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self.status = 0
        self._lines: list[Header] = []
        self.headers = self._lines
        self.bytes_seen = False
        self._wire: Wire | None = wire
        self._loop = loop
        self._bodiless = method == b"HEAD"
        self._more: Arrival | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._quiet = 0
        self._paused = self._complete = self._reusable = False
        self._error: Exception | None = None
        self._sink: Sink | None = None
        self._full = False
        self._answers: Answers | None = answers
        answers.exchange = self

    async def head(self) -> "HttpExchange":
        """Return this exchange when status and headers have arrived. If they do not, it is closed.

        Raises:
            EngineUnreachableError: the connection closed before any byte.
            EngineBrokeError: it closed within the header, or that was no HTTP.
        """
        try:
            while not self.status:
                if self._error is not None:
                    raise self._error
                await self._arrival()
        except BaseException:
            self.close()
            raise
        return self

    async def read(self) -> bytes:
        """Return the next bytes as the engine sent them, b"" at the end.

        Raises:
            EngineBrokeError: the answer ended early.
        """
        while not self._pieces:
            if self._complete:
                return b""
            if self._error is not None:
                raise self._error
            await self._arrival()
        return self._gather()

    def pour(self, sink: Sink) -> Awaitable[None]:
        """See Exchange."""
        self._sink = sink
        try:
            is_over = self._hand_over()
        except BaseException:
            self._sink = None
            raise
        return _NOTHING_LEFT if is_over else self._pour()

    async def _pour(self) -> None:
        try:
            while (sink := self._sink) is not None:
                if self._full:
                    await sink.room()
                    self._full = False
                    self._hand_over()
                elif self._error is not None:
                    raise self._error
                else:
                    await self._arrival()
        finally:
            self._sink = None

    def finish(self) -> bool:
        """See Exchange."""
        if self._complete or self._error is not None or self._wire is None:
            return False
        self._complete, self._reusable = True, False
        if self._sink is not None:
            self._hand_over()
        self._wake()
        return True

    def close(self) -> None:
        """Give the connection back if the answer is complete, else close it at once."""
        wire, answers, self._wire, self._answers = self._wire, self._answers, None, None
        if wire is not None and answers is not None:
            answers.exchange = None
            wire.release(reusable=self._complete and self._reusable and not self._paused)
            self._error = self._error or EngineBrokeError("the exchange was closed")

    def feed(self, data: bytes | memoryview) -> None:
        """Take in what the socket received."""
        answers = self._answers
        if answers is None:
            return
        self.bytes_seen = True
        self._quiet += len(data)
        try:
            answers.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(EngineBrokeError("it switched to another protocol, unasked"))
        except httptools.HttpParserError as error:
            self._reusable = False
            cause = f"not valid HTTP: {error}"
            if not self.status and bytes(data[:2]) == TLS_ALERT:
                cause = "TLS; its url must begin with https://"
            self._fail(EngineBrokeError(f"its answer is {cause}"))
        else:
            if self._quiet > QUIET_BYTES_MAX:
                self._fail(EngineBrokeError(_TOO_LONG))
        if self._sink is not None:
            self._hand_over()
        if self._sink is None or self._full or self._error is not None:
            self._wake()

    def lost(self, error: Exception | None) -> None:
        """The connection is gone; `error` is None after an orderly close."""
        self._reusable = False
        if error is not None and not isinstance(error, OSError):
            self._fail(error)  # a fault of ours: what took the last piece raised it
        elif self.status and error is None and self._ends_by_close():
            self._complete = True
        elif not self.bytes_seen and isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            self._fail(EngineUnreachableError(f"ended TLS before answering: {tls_fault(error)}"))
        elif not self.bytes_seen:
            how = "reset" if isinstance(error, ConnectionError) else "closed"
            self._fail(EngineUnreachableError(f"{how} the connection before answering"))
        else:
            where = "its answer" if self.status else "its header"
            how = f", {error.strerror}" if isinstance(error, ssl.SSLEOFError) else ""
            self._fail(EngineBrokeError(f"the connection closed before the end of {where}{how}"))
        if self._sink is not None and self._complete:
            self._hand_over()
        self._wake()

    def on_message_begin(self) -> None:
        """An answer begins; a second one was not asked for."""
        self._reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header line, or a trailer, which is dropped."""
        if not self.status:
            self._lines.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The header is whole."""
        answers = self._answers
        if self.status or answers is None:
            return
        status = answers.parser.get_status_code()
        if status < 200:
            self._lines.clear()
            return
        if status > 599:
            self._fail(EngineBrokeError(f"its answer has the status {status}"))
            return
        unfit = _unfit(self._lines, self._quiet)
        if unfit:
            self._fail(EngineBrokeError(unfit))
            return
        self.status = status
        self._reusable = answers.parser.should_keep_alive()
        self._quiet = 0
        if self._bodiless:
            self._complete, self._reusable = True, False
        if self._wire is not None:
            self._wire.resume_writing()

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        if self._complete:
            return
        self._pieces.append(data)
        self._size += len(data)
        self._quiet = 0
        is_waiting = self._sink is None or self._full
        if is_waiting and self._size > BODY_BYTES_HELD and not self._paused and self._wire is not None:
            self._paused = True
            self._wire.pause_reading()

    def on_message_complete(self) -> None:
        """The answer, or an informational one before it, is whole."""
        if self.status:
            self._complete = True

    def _gather(self) -> bytes:
        """Return what has arrived, and let more come."""
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces = []
        self._size = 0
        if self._paused and self._wire is not None:
            self._paused = False
            self._wire.resume_reading()
        return data

    def _hand_over(self) -> bool:
        """Pour what has arrived, unless there is no room for it; say whether it was the last: nobody takes any more."""
        sink = self._sink
        if sink is None or self._full or not (self._pieces or self._complete):
            return False
        is_last = self._complete
        if is_last:
            self._sink = None
        self._full = not sink.take_piece(self._gather(), is_last) and not is_last
        return is_last

    def _ends_by_close(self) -> bool:
        """Return whether the header announced neither a length nor chunks."""
        return not any(
            name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower())
            for name, value in self.headers
        )

    def _fail(self, error: Exception) -> None:
        """Remember why no more will come. Bytes after the end of a whole answer do no harm to it."""
        if self._complete or self._error is not None:
            return
        self._error = error

    def _arrival(self) -> Arrival:
        """Return what the next bytes, or the lack of more, will end."""
        self._more = more = Arrival(self._loop)
        return more

    def _wake(self) -> None:
        more = self._more
        if more is not None:
            self._more = None
            more.come()


def _unfit(headers: list[Header], received: int) -> str:
    """Return why an answer with this header is none, empty if it is one. `received`: its bytes so far."""
    if received > QUIET_BYTES_MAX and sum(len(name) + len(value) + 4 for name, value in headers) > QUIET_BYTES_MAX:
        return _TOO_LONG
    for name, value in headers:
        if name == b"transfer-encoding" and value != b"chunked" and value.lower() not in _PLAIN_TRANSFERS:
            return f"its answer is transferred as {value.decode('ascii', 'backslashreplace')[:100]!r}, not 'chunked'"
    return ""
