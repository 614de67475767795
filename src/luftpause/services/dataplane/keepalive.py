"""Keeps streaming clients waiting: after a while without an answer they get one sign of life after another.

Knows when, not what: the turn says what a sign is. Nothing is sent between an engine's own bytes. Nearly every turn is
answered before its first sign, so all that wait for theirs share one timer.
"""

import asyncio
from typing import Final, Protocol

WAITING: Final = ((b"cache-control", b"no-cache"),)
"""Headers of an answer that begins with a sign of life, beside those of its kind."""


class Waiting(Protocol):
    """A turn whose client waits."""

    async def show_life(self) -> None:
        """Send one sign of life; while it waits for a slow client no other is sent."""
        ...


class Keepalive:
    """One client that waits. `Keepalives.begin` makes it."""

    __slots__ = ("_keepalives", "task", "turn")

    def __init__(self, keepalives: "Keepalives", turn: Waiting) -> None:
        self.turn = turn
        self.task: asyncio.Task[None] | None = None
        self._keepalives = keepalives

    def stop(self) -> None:
        """Send no more. Calling it again changes nothing."""
        if self.task is not None:
            self.task.cancel()
        else:
            self._keepalives.drop(self)


class Keepalives:
    """All that wait. It must run on the event loop.

    Args:
        after_s: how long nothing is sent, seconds.
        period_s: from one sign to the next, seconds.
    """

    def __init__(self, *, after_s: float, period_s: float) -> None:
        self._after_s = after_s
        self._period_s = period_s
        self._due: dict[Keepalive, float] = {}  # in the order they began, so also the order they are due in
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, turn: Waiting) -> Keepalive:
        """Let a client wait, until its keepalive is stopped."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()  # asking for it each time costs a system call
        keepalive = Keepalive(self, turn)
        self._due[keepalive] = loop.time() + self._after_s
        if self._timer is None:
            self._timer = loop.call_later(self._after_s, self._look)
        return keepalive

    def drop(self, keepalive: Keepalive) -> None:
        """Forget one that waits for its first sign; one that does not changes nothing."""
        self._due.pop(keepalive, None)

    def _look(self) -> None:
        """Begin to send to all that have waited for long enough."""
        loop = asyncio.get_running_loop()
        self._timer = None
        now, over = loop.time(), []
        for keepalive, due in self._due.items():
            if due > now:
                self._timer = loop.call_at(due, self._look)
                break
            over.append(keepalive)
        for keepalive in over:
            del self._due[keepalive]
            keepalive.task = loop.create_task(self._go_on(keepalive.turn), name="keepalive")

    async def _go_on(self, turn: Waiting) -> None:
        while True:
            await turn.show_life()
            await asyncio.sleep(self._period_s)
