"""Takes all connections that wait at a listening socket, however seldom the event loop comes to look.

uvloop takes one each time round. A busy loop gets round twenty times a second, so of a thousand clients that come at
once the last waits for most of a minute, and cannot tell: the kernel has connected it. So each connection that the
loop takes brings along those that stand behind it.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

AT_ONCE_MAX: Final = 128
"""Connections that are taken behind one: what is under way goes on in between."""


class Acceptor:
    """The protocol factory of a server on `listener`; `connection` makes the protocol of one connection."""

    def __init__(self, listener: socket.socket, connection: Callable[[], asyncio.BaseProtocol]) -> None:
        self._listener = listener
        self._connection = connection
        self._arriving: set[asyncio.Task[None]] = set()

    def __call__(self) -> asyncio.BaseProtocol:
        """Return the protocol of the connection that the loop has taken, and take those behind it."""
        for _ in range(AT_ONCE_MAX):
            try:
                taken, _address = self._listener.accept()
            except OSError:  # nobody waits; or there is no room for more, and then the loop finds that too
                break
            arriving = asyncio.create_task(self._connect(taken), name="connection")
            self._arriving.add(arriving)
            arriving.add_done_callback(self._arriving.discard)
        return self._connection()

    async def close(self) -> None:
        """Return once all that was taken is connected, after the server on the listener has closed."""
        await asyncio.gather(*self._arriving, return_exceptions=True)

    async def _connect(self, taken: socket.socket) -> None:
        taken.setblocking(False)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, taken)
        except OSError:  # it has left already
            taken.close()
