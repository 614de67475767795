"""The load process: closed loops and paced open loops over raw keep-alive connections.

Reads one task a line (JSON) on standard input. For each it prints `{"event": "measuring"}` when the warm-up is over and
`{"event": "ended"}` when the window ends, so that whoever watches the peer's CPU reads it at the same instants; then
`measured` with the figures, and `drained`.
Latencies count from the scheduled instant in an open loop, and from the send in a closed one.
"""

import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import deque

import msgspec
import uvloop
from benchmarks.doorbench import replies
from benchmarks.doorbench.client import Address, ClientConnection, Exchange, connect
from benchmarks.doorbench.statistics import due_times, percentile

TURNS_A_RUN = 8
_PACED_DRAIN_S = 3.0
_CLOSED_DRAIN_S = 0.1  # long streams are cut off
_RUNS = itertools.count(1)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What to send, how fast and for how long.

    Attributes:
        rate_per_s: requests a second over all connections; 0 is a closed loop.
        stagger_s: closed loops start their connections spread over this time.
    """

    host: str
    port: int
    reply: str
    body_bytes: int
    connections: int
    warm_s: float
    window_s: float
    stream: bool = True
    rate_per_s: float = 0
    stagger_s: float = 0


class Window:
    """What happened between the two instants of a measurement."""

    def __init__(self) -> None:
        self.open = False
        self.started_ns = 0
        self.ended_ns = 0
        self.failed = 0
        self.body_bytes = 0
        self.done: list[Exchange] = []

    def start(self) -> None:
        """Begin to count, and say so."""
        self.open = True
        self.started_ns = time.monotonic_ns()
        print(json.dumps({"event": "measuring"}), flush=True)

    def add(self, exchange: Exchange) -> None:
        """Count an exchange that ended."""
        if not self.open:
            return
        if exchange.complete:
            self.done.append(exchange)
        else:
            self.failed += 1

    def add_bytes(self, _connection: ClientConnection, count: int) -> None:
        """Count bytes of answers."""
        if self.open:
            self.body_bytes += count

    def end(self) -> None:
        """Stop counting, say so at once, and report."""
        self.open = False
        self.ended_ns = time.monotonic_ns()
        print(json.dumps({"event": "ended"}), flush=True)
        print(json.dumps({"event": "measured", **self.summary()}), flush=True)

    def summary(self) -> dict[str, float | None]:
        """Return the window's figures: counts, seconds, and percentiles in µs (null when nothing was measured)."""
        timed = [exchange for exchange in self.done if exchange.due_ns >= self.started_ns]
        total = sorted((exchange.end_ns - exchange.due_ns) / 1e3 for exchange in timed)
        first = sorted((exchange.first_ns - exchange.due_ns) / 1e3 for exchange in timed)
        late = sorted((exchange.sent_ns - exchange.due_ns) / 1e3 for exchange in timed)
        return {
            "seconds": (self.ended_ns - self.started_ns) / 1e9,
            "done": len(self.done),
            "failed": self.failed,
            "body_bytes": self.body_bytes,
            "p50_us": percentile(total, 0.5) if total else None,
            "p99_us": percentile(total, 0.99) if total else None,
            "first_p50_us": percentile(first, 0.5) if first else None,
            "first_p99_us": percentile(first, 0.99) if first else None,
            "late_p50_us": percentile(late, 0.5) if late else None,
            "late_p99_us": percentile(late, 0.99) if late else None,
        }


class Load:
    """Connections that share one request and one window."""

    def __init__(self, task: Task) -> None:
        self.window = Window()
        self._task = task
        self._address: Address = (task.host, task.port)
        self._request = replies.chat_request(replies.request_body(task.reply, size=task.body_bytes, stream=task.stream))
        self._connections: list[ClientConnection] = []
        self._idle: deque[ClientConnection] = deque()
        self._overdue: deque[int] = deque()
        self._reconnects: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._in_flight = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self._run_of: dict[ClientConnection, int] = {}

    async def run(self) -> None:
        """Carry the task out: connect, warm up, measure, drain, close."""
        for _ in range(self._task.connections):
            await self._open()
        if self._task.rate_per_s:
            await self._paced()
        else:
            await self._closed()
        self._stopping = True
        await self._settle(_CLOSED_DRAIN_S)
        for reconnect in self._reconnects:
            reconnect.cancel()
        await asyncio.gather(*self._reconnects, return_exceptions=True)
        for connection in self._connections:
            if connection.transport is not None:
                connection.transport.close()

    async def _open(self) -> None:
        connection = await connect(self._address, self._ended, self.window.add_bytes)
        self._connections.append(connection)
        self._idle.append(connection)

    async def _closed(self) -> None:
        loop = asyncio.get_running_loop()
        gap = self._task.stagger_s / self._task.connections
        starting = list(self._idle)
        self._idle.clear()
        for index, connection in enumerate(starting):
            loop.call_later(index * gap, self._send, connection, 0)
        await asyncio.sleep(self._task.warm_s)
        self.window.start()
        await asyncio.sleep(self._task.window_s)
        self.window.end()

    async def _paced(self) -> None:
        task = self._task
        start = time.monotonic_ns() + 20_000_000
        dues = due_times(start_ns=start, rate_per_s=task.rate_per_s, duration_s=task.warm_s + task.window_s)
        loop = asyncio.get_running_loop()
        pacer = loop.run_in_executor(None, self._pace, loop, dues)
        await asyncio.sleep(task.warm_s)
        self.window.start()
        await pacer
        await self._settle(_PACED_DRAIN_S)
        self.window.failed += self._in_flight + len(self._overdue)
        self.window.end()

    async def _settle(self, limit_s: float) -> None:
        """Wait until nothing is in flight or overdue, or the limit is reached."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), limit_s)

    def _pace(self, loop: asyncio.AbstractEventLoop, dues: list[int]) -> None:
        """Wake the loop at each due instant: a thread, because loop timers are no finer than a millisecond."""
        for due in dues:
            wait = due - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
            loop.call_soon_threadsafe(self._due, due)

    def _due(self, due: int) -> None:
        while self._idle:
            connection = self._idle.popleft()
            if connection.usable:
                self._send(connection, due)
                return
        self._settled.clear()
        self._overdue.append(due)

    def _send(self, connection: ClientConnection, due: int) -> None:
        if not connection.usable:
            return
        if connection.sent % TURNS_A_RUN == 0:
            self._run_of[connection] = next(_RUNS)
        self._in_flight += 1
        self._settled.clear()
        connection.send(self._request.for_run(self._run_of[connection]), due)

    def _ended(self, connection: ClientConnection, exchange: Exchange) -> None:
        self.window.add(exchange)
        self._in_flight -= 1
        if connection.transport is not None:
            self._next(connection)
        else:
            self._connections.remove(connection)
            if not self._stopping:
                reconnect = asyncio.get_running_loop().create_task(self._reopen())
                self._reconnects.add(reconnect)
                reconnect.add_done_callback(self._reconnects.discard)
        if self._in_flight == 0 and not self._overdue:
            self._settled.set()

    def _next(self, connection: ClientConnection) -> None:
        if self._stopping:
            return
        if not self._task.rate_per_s:
            self._send(connection, 0)
        elif self._overdue:
            self._send(connection, self._overdue.popleft())
        else:
            self._idle.append(connection)

    async def _reopen(self) -> None:
        await asyncio.sleep(0.01)
        await self._open()
        self._next(self._idle.pop())


async def serve() -> None:
    """Run the tasks of standard input one after the other."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        await Load(msgspec.json.decode(line, type=Task)).run()
        print(json.dumps({"event": "drained"}), flush=True)


if __name__ == "__main__":
    uvloop.run(serve())
