"""A raw fake engine: precomputed bytes behind httptools on uvloop, so that the engine is never what is measured.

One process, one or more ports of 127.0.0.1, each a replica. The body of a request names its reply (see `replies`).
`GET /bench/facts` tells when exchanges were opened and lost and how much a flood could write. It prints its ports as
one JSON line and runs until its standard input closes.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools
import uvloop
from benchmarks.doorbench import replies

PACED_CHUNKS = 50
PACED_GAP_S = 0.02
FLOOD_BYTES = 64 * 1024 * 1024
_WRITES_A_TURN = 8


@dataclass(slots=True)
class Facts:
    """What the engine saw: monotonic instants in ns by the id of the exchange, and bytes of the last flood."""

    opened: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    flood_written: Callable[[], int] = int

    def forget(self) -> None:
        """Start afresh, so that ids can be used again."""
        self.opened.clear()
        self.lost.clear()
        self.flood_written = int

    def as_json(self) -> bytes:
        """Return the facts as a JSON object."""
        return json.dumps({"opened": self.opened, "lost": self.lost, "flood_written": self.flood_written()}).encode()


class EngineConnection(asyncio.Protocol):
    """One client connection: parse, look the reply up, write it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._body: list[bytes] = []
        self._holding = ""
        self._timer: asyncio.Handle | None = None
        self._paused = False
        self._flood_left = 0
        self._flood_sent = 0
        self._replies: dict[bytes, Callable[[str, bytes], None]] = {
            b"one": lambda _id, _body: self._write(replies.ONE),
            b"json": lambda _id, _body: self._write(replies.JSON),
            b"many": self._many,
            b"echo": self._echo,
            b"paced": self._start_paced,
            b"idle": self._idle,
            b"mute": self._mute,
            b"flood": self._start_flood,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; a flood must see back-pressure at the first byte the kernel refuses."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """Note when a held exchange lost its client."""
        if self._holding:
            self._facts.lost[self._holding] = time.monotonic_ns()
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Feed the parser; a request that it refuses ends the connection."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            raise  # a fault of ours, not of the bytes
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.abort()

    def pause_writing(self) -> None:
        """Stop the flood until the kernel takes more."""
        self._paused = True

    def resume_writing(self) -> None:
        """Go on with the flood."""
        self._paused = False
        if self._flood_left:
            self._flood()

    def on_message_begin(self) -> None:
        """Forget the previous request."""
        self._url = b""
        self._body = []

    def on_url(self, url: bytes) -> None:
        """Collect the target."""
        self._url += url

    def on_body(self, body: bytes) -> None:
        """Collect the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer."""
        path = self._url.partition(b"?")[0]
        if path != b"/v1/chat/completions":
            self._write(self._other(path))
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        marker = replies.MARKER.search(body)
        reply = self._replies.get(marker[1]) if marker else None
        if marker is None or reply is None:
            self._write(replies.NOT_FOUND)
            return
        reply(marker[2].decode(), body)

    def _other(self, path: bytes) -> bytes:
        match path:
            case b"/health":
                return replies.HEALTH
            case b"/metrics":
                return replies.METRICS
            case b"/v1/models":
                return replies.MODELS
            case b"/bench/facts":
                return replies.with_length(self._facts.as_json())
            case b"/bench/forget":
                self._facts.forget()
                return replies.with_length(self._facts.as_json())
            case _:
                return replies.NOT_FOUND

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _many(self, _id: str, _body: bytes) -> None:
        self._next_of_many(0)

    def _next_of_many(self, index: int) -> None:
        self._write(replies.MANY[index])
        if index + 1 < len(replies.MANY):
            self._timer = self._loop.call_soon(self._next_of_many, index + 1)

    def _echo(self, _id: str, body: bytes) -> None:
        digest = hashlib.sha256(body).hexdigest()
        self._write(replies.with_length(json.dumps({"sha256": digest, "bytes": len(body)}).encode()))

    def _hold(self, exchange: str) -> None:
        self._holding = exchange
        self._facts.opened[exchange] = time.monotonic_ns()

    def _idle(self, exchange: str, _body: bytes) -> None:
        self._hold(exchange)
        self._write(replies.STREAM_HEAD + replies.TOKEN_CHUNK)

    def _mute(self, exchange: str, _body: bytes) -> None:
        self._hold(exchange)

    def _start_paced(self, _id: str, _body: bytes) -> None:
        self._write(replies.STREAM_HEAD + replies.TOKEN_CHUNK)
        self._timer = self._loop.call_later(PACED_GAP_S, self._paced, PACED_CHUNKS - 2)

    def _paced(self, left: int) -> None:
        if left == 0:
            self._write(replies.TOKEN_CHUNK + replies.LAST_CHUNK)
            return
        self._write(replies.TOKEN_CHUNK)
        self._timer = self._loop.call_later(PACED_GAP_S, self._paced, left - 1)

    def _start_flood(self, exchange: str, _body: bytes) -> None:
        self._hold(exchange)
        assert self._transport is not None
        self._transport.set_write_buffer_limits(high=0)
        self._flood_left = FLOOD_BYTES
        self._flood_sent = len(replies.STREAM_HEAD)
        self._facts.flood_written = self._flood_written
        self._write(replies.STREAM_HEAD)
        self._flood()

    def _flood(self) -> None:
        for _ in range(_WRITES_A_TURN):
            if self._paused or self._flood_left <= 0 or self._transport is None:
                break
            self._write(replies.FLOOD_CHUNK)
            self._flood_sent += len(replies.FLOOD_CHUNK)
            self._flood_left -= replies.FLOOD_WRITE
        if not self._paused and self._flood_left > 0:
            self._timer = self._loop.call_soon(self._flood)

    def _flood_written(self) -> int:
        """What the kernel took so far: sent, less what still waits in this process."""
        return self._flood_sent - (self._transport.get_write_buffer_size() if self._transport else 0)


async def serve(ports: int) -> None:
    """Listen on `ports` free ports, print them, and return when standard input ends."""
    loop = asyncio.get_running_loop()
    facts = Facts()
    servers = [
        await loop.create_server(lambda: EngineConnection(facts), "127.0.0.1", 0, backlog=2048) for _ in range(ports)
    ]
    print(json.dumps({"ports": [server.sockets[0].getsockname()[1] for server in servers]}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for server in servers:
        server.close()


def main() -> None:
    """Read the number of ports and serve."""
    parser = argparse.ArgumentParser(description="Raw fake engine of the door benchmark")
    parser.add_argument("--ports", type=int, default=2)
    uvloop.run(serve(parser.parse_args().ports))


if __name__ == "__main__":
    main()
