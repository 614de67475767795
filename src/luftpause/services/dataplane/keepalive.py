"""Keeps a streaming client waiting: after a while without an answer it gets one sign of life after another.

Knows when, not what: the turn says what a sign is. Nothing is sent between an engine's own bytes.
"""

import asyncio
from collections.abc import Awaitable, Callable


class Keepalive:
    """Calls `sign` after `after_s` seconds, then every `period_s`, until it is stopped. It must run on the event loop.

    Args:
        sign: sends one sign of life; while it waits for a slow client no other is sent.
        after_s: how long nothing is sent, seconds.
        period_s: from one sign to the next, seconds.
    """

    __slots__ = ("_period_s", "_sign", "_task", "_timer")

    def __init__(self, sign: Callable[[], Awaitable[None]], *, after_s: float, period_s: float) -> None:
        self._sign = sign
        self._period_s = period_s
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(after_s, self._begin)

    def stop(self) -> None:
        """Send no more. Calling it again changes nothing."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._go_on(), name="keepalive")

    async def _go_on(self) -> None:
        while True:
            await self._sign()
            await asyncio.sleep(self._period_s)
