"""The process that holds streams: many idle ones, ones whose client leaves, and one that is read slowly.

`python -m benchmarks.doorbench.streams KIND HOST PORT COUNTS`. It prints one JSON line whenever it reaches a state and
waits for a line on standard input before it goes on, so that the watcher can look at the peer in between.
"""

import argparse
import asyncio
import json
import sys
import time

import uvloop
from benchmarks.doorbench import replies
from benchmarks.doorbench.client import Address, ClientConnection, Exchange, connect

_OPEN_AT_ONCE = 32
_FIRST_BYTE_S = 10.0
_MUTE_S = 0.03
_BODY_BYTES = 2048
_SLOW_READ_BYTES = 65536
_FIRST_RUN = 900_000_000_000  # apart from the runs of the load process


def _say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


async def _wait_for_line() -> None:
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


def _forget(_connection: ClientConnection, _exchange: Exchange) -> None:
    """Ends of exchanges do not matter here."""


def _request(reply: str, reply_id: str, run: int) -> bytes:
    body = replies.request_body(reply, size=_BODY_BYTES, reply_id=reply_id)
    return replies.chat_request(body).for_run(_FIRST_RUN + run)


class Opening:
    """A connection with one stream, and the event of its first byte."""

    def __init__(self) -> None:
        self.first_byte = asyncio.Event()
        self.connection: ClientConnection | None = None

    def _bytes(self, _connection: ClientConnection, _count: int) -> None:
        self.first_byte.set()

    async def open(self, address: Address, request: bytes) -> bool:
        """Connect and send; return whether a first byte came within ten seconds."""
        self.connection = await connect(address, _forget, self._bytes)
        self.connection.send(request)
        try:
            await asyncio.wait_for(self.first_byte.wait(), _FIRST_BYTE_S)
        except TimeoutError:
            return False
        return True

    def leave(self) -> int:
        """Close the connection and return the instant (monotonic ns)."""
        assert self.connection is not None
        now = time.monotonic_ns()
        if self.connection.transport is not None:
            self.connection.transport.close()
        return now


async def hold_idle(address: Address, counts: list[int]) -> None:
    """Hold as many idle streams as each count says, reporting after each step how many got their first byte."""
    held: list[Opening] = []
    opened = 0
    for count in counts:
        while len(held) < count:
            batch = [Opening() for _ in range(min(_OPEN_AT_ONCE, count - len(held)))]
            requests = [_request("idle", f"i{len(held) + index}", len(held) + index) for index in range(len(batch))]
            held.extend(batch)
            results = await asyncio.gather(
                *(opening.open(address, request) for opening, request in zip(batch, requests, strict=True))
            )
            opened += sum(results)
            if not all(results):
                break
        _say(event="held", asked=count, opened=opened)
        await _wait_for_line()
    for opening in held:
        opening.leave()


async def leave(address: Address, counts: list[int]) -> None:
    """Leave streams one after the other: `counts[0]` after their first byte, then `counts[1]` before it."""
    left: dict[str, int] = {}
    for index in range(counts[0]):
        opening = Opening()
        if await opening.open(address, _request("idle", f"after-{index}", 10_000 + index)):
            await asyncio.sleep(_MUTE_S)
            left[f"after-{index}"] = opening.leave()
            await asyncio.sleep(_MUTE_S)
    for index in range(counts[1]):
        connection = await connect(address, _forget)
        connection.send(_request("mute", f"before-{index}", 20_000 + index))
        await asyncio.sleep(_MUTE_S)
        left[f"before-{index}"] = time.monotonic_ns()
        assert connection.transport is not None
        connection.transport.close()
        await asyncio.sleep(_MUTE_S)
    _say(event="left", left=left)
    await _wait_for_line()


async def read_slowly(address: Address, _counts: list[int]) -> None:
    """Read the first bytes of a flood and then nothing more."""
    enough = asyncio.Event()
    total = 0

    def count(connection: ClientConnection, size: int) -> None:
        nonlocal total
        total += size
        if total >= _SLOW_READ_BYTES and not enough.is_set():
            assert connection.transport is not None
            connection.transport.pause_reading()
            enough.set()

    connection = await connect(address, _forget, count)
    connection.send(_request("flood", "flood", 30_000))
    await asyncio.wait_for(enough.wait(), _FIRST_BYTE_S)
    _say(event="paused", read=total)
    await _wait_for_line()
    assert connection.transport is not None
    connection.transport.abort()


KINDS = {"idle": hold_idle, "leave": leave, "slow": read_slowly}


def main() -> None:
    """Read the command line and run one kind."""
    parser = argparse.ArgumentParser(description="Stream holder of the door benchmark")
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("counts", type=int, nargs="*")
    options = parser.parse_args()
    uvloop.run(KINDS[options.kind]((options.host, options.port), options.counts))


if __name__ == "__main__":
    main()
