import asyncio
import random
from typing import cast

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.adapters.http_server.call import HttpCall
from luftpause.adapters.http_server.known_heads import HEAD_BYTES_MAX, HEADS_MAX, KnownHeads, cut_head
from luftpause.adapters.http_server.reader import BadHttpError, Parsers, PipelinedError, RequestReader
from luftpause.ports.asgi import KEPT_KEY, NAMED_KEY

HEAD = b"POST /v1/x?a=b HTTP/1.1\r\nHost: a\r\nX: 1\r\n"
ODD_LINES = (
    b"Transfer-Encoding: chunked",
    b"Expect: 100-continue",
    b"Connection: close",
    b"Connection: keep-alive",
    b"Connection: Upgrade\r\nUpgrade: websocket",
    b"Content-Length: 3",
    b"X-Length: 4",
    b"content-length : 4",
    b"X: y\r\n folded",
    b"X:  spaced  ",
    b"Cookie: a\r\nCookie: b",
)
LENGTHS = (
    b"Content-Length: %d",
    b"content-length: %d",
    b"CONTENT-LENGTH: %d",
    b"Content-Length:%d",
    b"Content-Length: +%d",
)
LIKE_A_HEAD = b"\r\ncontent-length: 3\r\n\r\n"
LINES = (
    b"POST /a HTTP/1.1",
    b"PUT /b?c HTTP/1.1",
    b"HEAD /a HTTP/1.1",
    b"POST http://b/a HTTP/1.1",
    b"POST /a HTTP/1.0",
)


class Wire:
    """The connection below a call: nothing is written in these tests."""

    def __init__(self) -> None:
        self.transport = cast("asyncio.Transport", None)
        self.writable: asyncio.Event | None = None

    def pause_reading(self) -> None:
        """See Wire."""

    def resume_reading(self) -> None:
        """See Wire."""

    def answered(self, *, keep_alive: bool) -> None:
        """See Wire."""

    def cut(self) -> None:
        """See Wire."""


class Reading:
    """One connection, and what was read from it."""

    def __init__(self, heads: KnownHeads) -> None:
        self.reader = RequestReader(heads=heads, parsers=Parsers(), begin=lambda: None, start=self._start)
        self.is_over = False

    async def take(self, *pieces: bytes) -> object:
        """Return what becomes of bytes that come, in these pieces."""
        self._call: HttpCall | None = None
        try:
            for piece in pieces:
                self.reader.feed(memoryview(piece))
        except (BadHttpError, PipelinedError) as error:
            self.is_over = True
            return type(error)
        call = self._call
        if call is None or not call.whole:
            self.is_over = True
            return "unfinished"
        body = await call.body(1_000_000)
        call.complete = True
        self.is_over = not call.keep_alive
        parts = {key: value for key, value in self.reader.parts.items() if key not in (KEPT_KEY, NAMED_KEY)}
        return parts, call.keep_alive, self.reader.expects_continue, body

    def _start(self, reader: RequestReader) -> HttpCall:
        self._call = HttpCall(Wire(), bodiless=False, keep_alive=reader.keep_alive, expects_continue=False)
        return self._call


def request(dice: random.Random) -> bytes:
    """Return a request, at times one byte away from a sound one."""
    body = dice.choice((b"", b"bbb", b"bbbb", b"b" * 70_000, LIKE_A_HEAD, b"b" + LIKE_A_HEAD + b"bbb"))
    lines = [dice.choice(LINES if dice.random() < 0.3 else LINES[:1]), b"Host: a"]
    if dice.random() < 0.4:
        lines.append(dice.choice(ODD_LINES))
    lines.insert(dice.randint(1, len(lines)), dice.choice(LENGTHS if dice.random() < 0.3 else LENGTHS[:1]) % len(body))
    raw = b"\r\n".join((*lines, b"", b"")) + body
    if dice.random() < 0.15:
        at = dice.randrange(min(len(raw), 120))
        raw = raw[:at] + bytes([dice.choice(b" \r\n\0:Lx19")]) + raw[at + dice.randrange(2) :]
    if dice.random() < 0.1:
        raw = raw.replace(b"\r\n", b"\n", dice.randrange(4))
    return raw + dice.choice((b"", b"", b"", b"", b"bbb", LIKE_A_HEAD + b"bbb"))


def test_a_head_that_is_known_is_read_as_the_parser_reads_it() -> None:
    heads, known = KnownHeads(), 0

    async def story() -> None:
        nonlocal known
        for seed in range(1500):
            dice = random.Random(seed)
            quick, slow = Reading(heads), Reading(KnownHeads())
            while not slow.is_over and dice.random() < 0.8:
                raw = request(dice)
                seen = await quick.take(raw)
                known += not isinstance(seen, type | str) and quick.reader.parts.get(KEPT_KEY) == {"seen": True}
                if KEPT_KEY in quick.reader.parts:
                    quick.reader.parts[KEPT_KEY]["seen"] = True
                # In two pieces it is never looked up.
                assert seen == await slow.take(raw[:1], raw[1:]), f"seed {seed}: {raw[:200]!r}"
                assert quick.is_over == slow.is_over, f"seed {seed}: {raw[:200]!r}"

    run_bounded(story())
    assert known > 500


def test_what_differs_in_its_length_only_has_the_same_head() -> None:
    heads = KnownHeads()

    async def story() -> None:
        reading = Reading(heads)
        for body in (b"", b"abc", b"0123456789"):
            assert await reading.take(HEAD + b"Content-Length: %d\r\nY: 2\r\n\r\n%b" % (len(body), body))
            parts = reading.reader.parts
            length = (b"content-length", b"%d" % len(body))
            assert parts["headers"] == [(b"host", b"a"), (b"x", b"1"), length, (b"y", b"2")]
            assert parts[KEPT_KEY].setdefault("body", b"") == b""
            assert parts.get(NAMED_KEY, dict(parts["headers"])) == dict(parts["headers"])

    run_bounded(story())


def test_only_a_whole_request_by_itself_is_cut() -> None:
    raw = HEAD + b"Content-Length: 3\r\n\r\nabc"
    cut = cut_head(memoryview(raw))

    assert cut is not None
    assert (cut.length, cut.size) == (b"3", len(raw) - 3)
    for other in (raw + b"P", raw[:-1], raw[:40], HEAD + b"\r\n", raw.replace(b" 3", b" 3 "), raw.replace(b" 3", b" ")):
        assert cut_head(memoryview(other)) is None, other
    assert cut_head(memoryview(raw.replace(b"X: 1", b"X: " + b"1" * HEAD_BYTES_MAX))) is None


def test_what_is_not_asked_for_is_forgotten() -> None:
    heads = KnownHeads()

    async def story() -> None:
        reading = Reading(heads)
        raws = [HEAD + b"N: %d\r\nContent-Length: 1\r\n\r\na" % number for number in range(2 * HEADS_MAX + 1)]
        for raw in raws:
            await reading.take(raw)
            await reading.take(raws[0])
        cuts = [cut for raw in raws if (cut := cut_head(memoryview(raw))) is not None]
        assert heads.find(cuts[0]) is not None
        assert heads.find(cuts[1]) is None
        assert heads.find(cuts[-1]) is not None

    run_bounded(story())


def test_the_head_of_the_last_request_is_known_again_by_its_bytes() -> None:
    heads = KnownHeads()
    ends = b"\r\nY: 2\r\n\r\n"

    async def story() -> None:
        reading = Reading(heads)
        assert await reading.take(HEAD + b"Content-Length: 3" + ends + b"abc")
        cut = cut_head(memoryview(HEAD + b"Content-Length: 3" + ends + b"abc"))
        known = None if cut is None else heads.find(cut)
        assert known is not None
        for size in (0, 3, 70_000):
            raw = HEAD + b"Content-Length: %d" % size + ends + b"b" * size
            again, cut = known.again(memoryview(raw)), cut_head(memoryview(raw))
            assert again is not None
            assert cut is not None
            assert (again.length, again.size) == (cut.length, cut.size)
        whole = HEAD + b"Content-Length: 3" + ends
        for other in (
            whole + b"ab",
            whole + b"abcd",
            whole.replace(b" 3", b" ") + b"abc",
            whole.replace(b" 3", b" +3") + b"abc",
            whole.replace(b" 3", b" 0000000003") + b"abc",
            whole.replace(b"Y: 2", b"Y: 3") + b"abc",
            whole.replace(b"X: 1", b"X: 2") + b"abc",
            whole[:-1] + b"abc",
            HEAD,
        ):
            assert known.again(memoryview(other)) is None, other

    run_bounded(story())
