"""What a client of the link has asked and not heard the answer to."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from luftpause.adapters.link.codec import FrameError, to_bytes
from luftpause.adapters.link.frames import Answer, Failed, Request
from luftpause.ports.scheduler import LinkFaultError


class Requests:
    """Unanswered requests by their number, in the order in which they were made."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[int, tuple[bytes, asyncio.Future[Answer]]] = {}

    def ask(self, build: Callable[[int], Request]) -> tuple[bytes, Awaitable[Answer]]:
        """Number a request; return its frame and what ends with its answer. Await the latter at once.

        Raises:
            LinkFaultError: the request does not fit a frame.
        """
        self._last += 1
        try:
            frame = to_bytes(build(self._last))
        except FrameError as error:
            raise LinkFaultError(str(error)) from error
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[self._last] = (frame, answer)
        return frame, self._wait(self._last, answer)

    async def _wait(self, request: int, answer: asyncio.Future[Answer]) -> Answer:
        try:
            return await answer
        finally:
            self._open.pop(request, None)

    def answered(self, answer: Answer) -> None:
        """Take in an answer; one that nobody waits for changes nothing."""
        waiting = self._open.get(answer.request)
        if waiting is None or waiting[1].done():
            return
        if isinstance(answer, Failed):
            waiting[1].set_exception(LinkFaultError(answer.message))
        else:
            waiting[1].set_result(answer)

    def unanswered(self) -> Iterator[bytes]:
        """The frames to send again, oldest first."""
        return (frame for frame, answer in self._open.values() if not answer.done())

    def fail(self, error: Exception) -> None:
        """End every wait with the error."""
        for _, answer in self._open.values():
            if not answer.done():
                answer.set_exception(error)
