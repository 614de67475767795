"""Reads the requests of one connection: httptools' callbacks in, heads and pieces of bodies out.

It bounds the size of heads and lets no request begin before the answer to the last one is whole. An offer to upgrade
to another protocol is passed over: its request is read as if there were none. What becomes of a request is its
owner's affair.
"""

from collections.abc import Callable
from typing import Any, Final

import httptools

from luftpause.adapters.http_server.call import HttpCall
from luftpause.adapters.http_server.known_heads import CutHead, KnownHead, KnownHeads, cut_head
from luftpause.adapters.http_server.scope import request_parts
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.ports.engines import Header

HEAD_BYTES_MAX: Final = 64 * 1024
"""Longest request line and headers together."""
PARSERS_KEPT_MAX: Final = 64
_NO_HEADERS: Final[list[Header]] = []


class BadHttpError(Exception):
    """What came is no request. `failure` is for the client."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class PipelinedError(Exception):
    """More came before the answer to the last request. Nothing that comes from now on can be read."""


class Parser:
    """A parser of httptools, lent to one reader after the other: most connections wait, for an answer or a request."""

    __slots__ = ("http", "reader")

    def __init__(self) -> None:
        self.reader: RequestReader | None = None
        self.http = httptools.HttpRequestParser(self)
        self.http.set_dangerous_leniencies(lenient_data_after_close=True)  # such bytes are ignored, not refused

    def on_message_begin(self) -> None:
        """Parser callback."""
        if self.reader is not None:
            self.reader.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Parser callback."""
        if self.reader is not None:
            self.reader.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback."""
        if self.reader is not None:
            self.reader.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Parser callback."""
        if self.reader is not None:
            self.reader.on_headers_complete(self.http)

    def on_body(self, body: bytes) -> None:
        """Parser callback."""
        if self.reader is not None:
            self.reader.on_body(body)

    def on_message_complete(self) -> None:
        """Parser callback."""
        if self.reader is not None:
            self.reader.on_message_complete()


class Parsers:
    """The parsers of one server that are not lent."""

    def __init__(self) -> None:
        self._idle: list[Parser] = []

    def lend(self, reader: "RequestReader") -> Parser:
        """Return one that stands before a request."""
        parser = self._idle.pop() if self._idle else Parser()
        parser.reader = reader
        return parser

    def take_back(self, parser: Parser) -> None:
        """Take one back that stands behind a request on whose connection another may follow."""
        parser.reader = None
        if len(self._idle) < PARSERS_KEPT_MAX:
            self._idle.append(parser)


class RequestReader:
    """Reads one request after the other.

    Args:
        heads: those that need not be parsed again.
        parsers: where those are parsed that must be.
        begin: called when a request begins.
        start: called with this reader when a head is whole; returns what takes the body.

    Attributes:
        call: the last request whose head is whole, None before the first.
        url: the target of the request that is being read, empty between two.
        headers: its headers so far, their names in lower case.
        expects_continue: whether its client waits for leave to send the body.
        keep_alive: whether another request may follow it.
        parts: what its scope says of it, once its head is whole.
    """

    __slots__ = (
        "_at_rest",
        "_begin",
        "_cut",
        "_fault",
        "_head_bytes",
        "_heads",
        "_in_body",
        "_last",
        "_offered",
        "_parser",
        "_parsers",
        "_piece_bytes",
        "_start",
        "call",
        "expects_continue",
        "headers",
        "keep_alive",
        "parts",
        "url",
    )

    def __init__(
        self,
        *,
        heads: KnownHeads,
        parsers: Parsers,
        begin: Callable[[], None],
        start: Callable[["RequestReader"], HttpCall],
    ) -> None:
        self.call: HttpCall | None = None
        self.url = b""
        self.headers = _NO_HEADERS
        self.expects_continue = False
        self.keep_alive = False
        self.parts: dict[str, Any] = {}
        self._begin = begin
        self._start = start
        self._parsers = parsers
        self._parser: Parser | None = None
        self._heads = heads
        self._at_rest = True
        self._cut: CutHead | None = None
        self._last: KnownHead | None = None
        self._fault: Exception | None = None
        self._in_body = False
        self._offered = False
        self._head_bytes = 0
        self._piece_bytes = 0

    @property
    def body_expected(self) -> bool:
        """Whether a request has begun that is not yet whole but for its head."""
        return self._in_body

    def feed(self, data: memoryview) -> None:
        """Take in what the socket received.

        Raises:
            BadHttpError: that is no HTTP, or a head that is too large.
            PipelinedError: it is a request that must not come yet.
        """
        if self._take_if_known(data):
            return
        size = len(data)
        self._piece_bytes = 0 if self._in_body else size  # the rest of a body is no part of the next head
        self._head_bytes += size
        parser = self._parser
        if parser is None:
            parser = self._parser = self._parsers.lend(self)
        try:
            parser.http.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_offer(parser.http, data[upgrade.args[0] :])
            return
        except httptools.HttpParserError as error:
            failure = Failure(code=FailureCode.BAD_HTTP, message=f"not valid HTTP: {error}")
            raise self._fault or BadHttpError(failure) from error
        if self._head_bytes > HEAD_BYTES_MAX:
            raise BadHttpError(_too_large())
        if self._at_rest and self.keep_alive:
            self._parser = self._cut = None
            self._parsers.take_back(parser)

    def _take_if_known(self, data: memoryview) -> bool:
        """Take in a request that has come whole, with a head that is known: most often the last one of its client."""
        self._cut = None
        if not self._at_rest or (self.call is not None and not self.call.complete):
            return False
        known = self._last
        cut = None if known is None else known.again(data)
        if cut is None:
            cut = self._cut = cut_head(data)
            known = self._last = None if cut is None else self._heads.find(cut)
        if known is None or cut is None:
            return False
        self._take_known(known, cut, data)
        return True

    def on_message_begin(self) -> None:
        """Parser callback."""
        if self.call is not None and not self.call.complete:
            self._fault = PipelinedError()
            raise self._fault
        self._at_rest = False
        self.url = b""
        self.headers = []
        self.expects_continue = False
        self._head_bytes = self._piece_bytes
        self._begin()

    def on_url(self, url: bytes) -> None:
        """Parser callback."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback: one header line, or a trailer, which is dropped."""
        if self._in_body:
            return
        name = name.lower()
        value = value.rstrip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expects_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self, parser: httptools.HttpRequestParser) -> None:
        """Parser callback."""
        if self._head_bytes > HEAD_BYTES_MAX and self._head_size() > HEAD_BYTES_MAX:
            self._fault = BadHttpError(_too_large())
            raise self._fault
        if parser.should_upgrade():
            if parser.get_method() == b"CONNECT":
                self._fault = BadHttpError(Failure(code=FailureCode.BAD_HTTP, message="tunnels are not offered here"))
                raise self._fault
            self._offered = True
            return
        self._read_head(parser)
        self.call = self._start(self)
        self._in_body = True

    def on_body(self, body: bytes) -> None:
        """Parser callback."""
        self._head_bytes = 0
        if self.call is not None and not self.call.complete:
            self.call.take_piece(body)

    def on_message_complete(self) -> None:
        """Parser callback."""
        if self._offered:
            return
        self._at_rest = True
        self._in_body = False
        self._head_bytes = 0
        self.url, self.headers = b"", _NO_HEADERS  # an answer may take long
        if self.call is not None:
            self.call.take_end()

    def _read_head(self, parser: httptools.HttpRequestParser) -> None:
        """Take from the parser what it found out about a head, and remember it for the next time."""
        version = parser.get_http_version()
        method = parser.get_method()
        self.parts = request_parts(method=method, url=self.url, version=version, headers=self.headers)
        modern = version == "1.1"
        self.expects_continue = modern and self.expects_continue
        self.keep_alive = modern and parser.should_keep_alive()
        is_plain = self.keep_alive and not self.expects_continue and self.url.startswith(b"/")
        if self._cut is not None and is_plain and b"transfer-encoding" not in [name for name, _ in self.headers]:
            self._last = self._heads.learn(self._cut, self.url, self.parts)

    def _take_known(self, known: KnownHead, cut: CutHead, data: memoryview) -> None:
        """Take in a whole request whose head need not be parsed. Its connection is kept, and it waits for no leave."""
        self._cut = None
        self.parts = known.parts_for(cut.length)
        self.expects_continue = False
        self.keep_alive = True
        call = self.call = self._start(self)
        if len(data) > cut.size:
            call.take_piece(bytes(data[cut.size :]))
        call.take_end()

    def _read_without_offer(self, parser: httptools.HttpRequestParser, rest: memoryview) -> None:
        """Read a request anew that offered an upgrade: its parser took all that followed for another protocol's."""
        lines = [b"%b %b HTTP/%b" % (parser.get_method(), self.url, parser.get_http_version().encode())]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self._offered = False
        self._parser = None
        self.feed(memoryview(b"\r\n".join((*lines, b"", b"")) + rest))

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)


def _too_large() -> Failure:
    message = f"the request line and headers exceed {HEAD_BYTES_MAX // 1024} KiB"
    return Failure(code=FailureCode.HEADERS_TOO_LARGE, message=message)
