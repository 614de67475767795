"""Requests for the fuzzer of the HTTP server, honest and mutated, and what is known of each."""

import enum
import hashlib
import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
"""Stands in bodies: an application that sees it as a request was given a body's bytes."""


class Trust(enum.Enum):
    """What may become of a request."""

    HONEST = "it is answered, and its application got what was sent"
    ODD = "so it is, or it is refused"
    WILD = "anything but a crash, a hang, or an answer that is no HTTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A request before it is bytes. `answer`: what its answer must hold, given the body."""

    method: bytes
    target: bytes
    headers: tuple[bytes, ...] = ()
    body: bytes | None = None
    status: int = 200
    answer: Callable[[bytes], bytes] = lambda body: digest(body)
    early: bool = False
    """Whether the answer comes although the body may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request as bytes. `head_end`: how many of them are its head."""

    wish: Wish
    head: bytes
    rest: bytes
    body: bytes
    trust: Trust
    closes: bool = False
    waits: bool = False

    @property
    def raw(self) -> bytes:
        return self.head + self.rest

    @property
    def is_head(self) -> bool:
        return self.head.lstrip(b"\r\n").startswith(b"HEAD ")


def digest(body: bytes) -> bytes:
    """Return what an application answers to a body."""
    return b"%d %b" % (len(body), hashlib.sha1(body, usedforsecurity=False).hexdigest().encode())


def body_of(rng: random.Random) -> bytes:
    """Return a body, small as a rule."""
    size = rng.choice((0, 1, 3, 17, 200, 200, 5000, 70_000)) if rng.random() < 0.95 else 600_000
    return (rng.randbytes(size // 2) + SMUGGLED * (size // 30 + 1))[:size]


def honest(rng: random.Random, wish: Wish) -> Ask:
    """Return a request that must be answered."""
    lines = [b"%b %b HTTP/1.1" % (wish.method, wish.target), _cased(rng, b"host") + b": 127.0.0.1"]
    lines += [_cased(rng, name) + b":" + value for name, _, value in (each.partition(b":") for each in wish.headers)]
    lines += [b"x-%d:%b" % (number, rng.choice((b"", b" ", b"\t a \t", b" a, b", b" \xe4"))) for number in range(2)]
    closes = waits = False
    rest = b""
    if wish.body is not None:
        if rng.random() < 0.5:
            lines.append(_cased(rng, b"transfer-encoding") + rng.choice((b": chunked", b":\tChunked ", b":CHUNKED")))
            rest = chunks(rng, wish.body)
        else:
            lines.append(_cased(rng, b"content-length") + b": %d" % len(wish.body))
            rest = wish.body
        if rng.random() < 0.15:
            lines.append(rng.choice((b"Expect: 100-continue", b"expect:100-Continue ")))
            waits = True
    if rng.random() < 0.1:
        lines += rng.choice(((b"connection: close",), (b"Connection: x, Close",)))
        closes = True
    elif rng.random() < 0.1:
        protocol = rng.choice((b"h2c", b"websocket", b"TLS/1.0"))
        lines += (b"upgrade: " + protocol, b"connection: keep-alive, Upgrade")
    head = b"\r\n".join((*lines, b"", b""))
    return Ask(wish=wish, head=head, rest=rest, body=wish.body or b"", trust=Trust.HONEST, closes=closes, waits=waits)


def chunks(rng: random.Random, body: bytes) -> bytes:
    """Return a body in chunks of odd sizes, with extensions and trailers."""
    made = []
    while body:
        size = rng.choice((1, 2, 15, 16, 17, 4096, 65_536, len(body))) if len(body) < 5000 else len(body)
        piece, body = body[:size], body[size:]
        form = rng.choice((b"%x", b"%X", b"000%x"))
        extension = rng.choice((b"", b"", b";a", b";a=b", b';a="b c"', b";a=b;c=d"))
        made.append(form % len(piece) + extension + b"\r\n" + piece + b"\r\n")
    trailers = rng.choice(
        (b"", b"", b"x-trailer: 1\r\n", b"host: evil\r\nx:\r\n", b"upgrade: h2c\r\nconnection: upgrade\r\n")
    )
    return b"".join(made) + b"0" + rng.choice((b"", b";last")) + b"\r\n" + trailers + b"\r\n"


def odd(rng: random.Random, ask: Ask) -> Ask:
    """Return a request with an unusual head that says the same of its body."""
    line, _, fields = ask.head.partition(b"\r\n")
    method, target, version = line.split(b" ")
    match rng.randrange(8):
        case 0:
            version = rng.choice(
                (b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/1.2", b"HTTP/9.9", b"RTSP/1.0", b"http/1.1")
            )
        case 1:
            method = rng.choice((b"OPTIONS", b"TRACE", b"PURGE", b"CONNECT", b"get", b"PRI", b"M-SEARCH", b"X" * 300))
        case 2:
            target = rng.choice(
                (
                    b"http://127.0.0.1",
                    b"http://127.0.0.1" + target,
                    b"*",
                    b"a.example:443",
                    b"//x" + target,
                    b"/%ff%00%2f",
                    b"/a/../b",
                    b"/\xc3\xa4",
                    b"?",
                    b"#",
                    b"http://[::1",
                    b"http://a:99999/",
                    b"/" + b"a" * 66_000,
                    b"/?" * 900,
                )
            )
        case 3:
            extra = rng.choice((b"x: a\0b", b"x: a\rb", b"x : a", b": a", b"x", b"x: " + b"a" * 66_000, b"x: a\r\n b"))
            fields = extra + b"\r\n" + fields
        case 4:
            fields = b"".join(b"a%d:\r\n" % number for number in range(rng.choice((50, 9000)))) + fields
        case 5:
            fields = rng.choice((b"host: evil\r\n", b"expect: 200-ok\r\n", b"connection: keep-alive\r\n")) + fields
        case 6:
            method = rng.choice((b"\r\n", b"\n", b"\r\n" * 40_000, b" ", b"\0")) + method
        case _:
            fields = fields.replace(b"host", b"hose").replace(b": ", rng.choice((b":", b":   \t")))
    head = b" ".join((method, target, version)) + b"\r\n" + fields
    return Ask(wish=ask.wish, head=head, rest=ask.rest, body=ask.body, trust=Trust.ODD, waits=ask.waits)


def wild(rng: random.Random, ask: Ask) -> Ask:
    """Return a request that lies about its body, or random damage."""
    head, rest = ask.head, ask.rest
    match rng.randrange(6):
        case 0:
            lie = rng.choice(
                (b"content-length: 5", b"content-length: 0", b"Transfer-Encoding: chunked", b"content-length: -1")
            )
            head = head[:-2] + lie + b"\r\n\r\n"
        case 1:
            lies = (
                b"identity",
                b"xchunked",
                b"chunked, gzip",
                b"gzip, chunked",
                b"chunked\r\nte: x",
                b"\x0bchunked",
                b"",
                b"chunked,chunked",
            )
            head = re.sub(
                rb"(?i)transfer-encoding:[^\r]*", b"transfer-encoding: " + rng.choice(lies).replace(b"\\", b""), head
            )
        case 2:
            lies = (b"1", b"99999999999999999999999", b"+5", b"0x5", b"5, 5", b"5 5", b"", b"1\r\ncontent-length: 1")
            head = re.sub(rb"(?i)content-length:[^\r]*", b"content-length: " + rng.choice(lies), head)
        case 3:
            rest = rest[: rng.randrange(len(rest) + 1)] + rng.choice((b"", b"x", b"\r\n", b"zz\r\n", b"0\r\n\r\n"))
        case 4:
            rest = rest.replace(b"\r\n", rng.choice((b"\n", b"\r", b"\r\r\n")), 1 + rng.randrange(3))
        case _:
            raw = bytearray(head + rest[:5000])
            for _ in range(rng.choice((1, 1, 3, 20))):
                raw[rng.randrange(len(raw))] = rng.choice(
                    (0, 9, 10, 13, 32, 44, 48, 58, 59, 127, 255, rng.randrange(256))
                )
            head, rest = bytes(raw), b""
    return Ask(wish=ask.wish, head=head, rest=rest, body=ask.body, trust=Trust.WILD)


def pieces(rng: random.Random, raw: bytes) -> list[bytes]:
    """Return bytes as they are sent."""
    if rng.random() < 0.5:
        return [raw]
    if len(raw) < 300 and rng.random() < 0.2:
        return [raw[at : at + 1] for at in range(len(raw))]
    cuts = sorted({0, len(raw), *(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(1, 5)))})
    return [raw[start:end] for start, end in itertools.pairwise(cuts)]


def _cased(rng: random.Random, name: bytes) -> bytes:
    return rng.choice((name, name, name.upper(), name.title()))
