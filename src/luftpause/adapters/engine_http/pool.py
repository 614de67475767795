"""Connections to one origin that wait for the next request.

The one given back last goes out first; one that idled longer than `idle_s` is closed, since an engine may be about
to close it from its side. One timer per pool, armed only while something waits.
"""

import asyncio
from typing import Final

from luftpause.adapters.engine_http.connection import Connection

KEPT_MAX: Final = 256
"""More idle connections to one origin than these are closed."""

DISTRUST_S: Final = 600.0
"""No connection is kept so long after one on which something came that nobody had asked for."""


class Pool:
    """Idle connections to one origin."""

    def __init__(self, *, idle_s: float) -> None:
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._idle: list[Connection] = []
        self._reaper: asyncio.TimerHandle | None = None
        self._distrusted_until = 0.0

    def __len__(self) -> int:
        return len(self._idle)

    def take(self) -> Connection | None:
        """Return a connection that is ready for a request, None when there is none.

        One on which something came is left alone: what that is shows when it is read.
        """
        idle = self._idle
        for at in range(len(idle) - 1, -1, -1):
            connection = idle[at]
            if self._loop.time() - connection.idle_since >= self._idle_s:
                del idle[at]
                connection.abort()
            elif connection.usable:
                del idle[at]
                return connection
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose exchange is over."""
        now = self._loop.time()
        if len(self._idle) >= KEPT_MAX or now < self._distrusted_until:
            connection.abort()
            return
        connection.idle_since = now
        self._idle.append(connection)
        if self._reaper is None:
            self._reaper = self._loop.call_later(self._idle_s, self._reap)

    def forget(self, connection: Connection) -> None:
        """Drop a connection that was lost while it waited, if it did."""
        if connection in self._idle:
            self._idle.remove(connection)

    def distrust(self) -> bool:
        """Keep no connection for a while; say whether that is new.

        HTTP/1.1 has no names for answers: what comes late on a connection is taken for the answer to its next request.
        """
        now = self._loop.time()
        is_new = now >= self._distrusted_until
        self._distrusted_until = now + DISTRUST_S
        self.close()
        return is_new

    def close(self) -> None:
        """Close everything that waits."""
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def _reap(self) -> None:
        expired = self._loop.time() - self._idle_s
        stale = [connection for connection in self._idle if connection.idle_since <= expired]
        self._idle = self._idle[len(stale) :]  # the oldest stand first
        for connection in stale:
            connection.abort()
        self._reaper = None
        if self._idle:
            self._reaper = self._loop.call_at(self._idle[0].idle_since + self._idle_s, self._reap)
