"""The head of an answer that takes its time, sent before there is an answer: as an event stream.

The SDK opens such a stream with the first thing to tell, for a client that wants no progress after a quarter of a
minute. Whoever waits for heads no longer than that would give up on a wait that goes well.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from luftpause.ports.asgi import Message, Send

OPENED_AFTER_S: Final = 0.5
"""Answers that are there by then come as they are: most refusals, and what is over already."""

_HEAD: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_SIGN_OF_LIFE: Final = b": waiting\r\n\r\n"


class EarlyStream:
    """Stands between an application that answers with JSON or an event stream, and whoever sends that on."""

    def __init__(self, send: Send, after_s: float = OPENED_AFTER_S) -> None:
        self._send = send
        self._after_s = after_s
        self._at_work = asyncio.Lock()
        self._begun = False
        self._opened = False
        self._plain: bytes | None = None

    async def around(self, answer: Callable[[Send], Awaitable[None]]) -> None:
        """Let the application answer, and open the stream for it should that take long."""
        opening = asyncio.create_task(self._open(), name="early stream")
        try:
            await answer(self.send)
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)

    async def send(self, message: Message) -> None:
        """Pass on a message of the application's, in a stream that is open already as an event of that."""
        async with self._at_work:
            begins = message["type"] == "http.response.start"
            self._begun = True
            if not self._opened:
                await self._send(message)
            elif begins:
                kind = dict(message["headers"]).get(b"content-type", b"")
                self._plain = None if kind.startswith(b"text/event-stream") else b""
            elif self._plain is None:
                await self._send(message)
            else:
                self._plain += message.get("body", b"")
                if not message.get("more_body", False):
                    event = b"event: message\r\ndata: " + self._plain.replace(b"\n", b" ") + b"\r\n\r\n"
                    await self._send({"type": "http.response.body", "body": event})

    async def _open(self) -> None:
        await asyncio.sleep(self._after_s)
        async with self._at_work:
            if self._begun:
                return
            self._begun = self._opened = True
            await self._send({"type": "http.response.start", "status": 200, "headers": list(_HEAD)})
            await self._send({"type": "http.response.body", "body": _SIGN_OF_LIFE, "more_body": True})
