"""The engine model on the event loop's clock: one task owns the steps, requests wait in their seats.

Knows no HTTP and no text.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

from luftpause.testkit.fake_engine.model import EngineModel, Figures, Gauges, Progress, Request
from luftpause.testkit.fake_engine.prefix_cache import Piece

LAG_S_MAX = 0.25
"""A loop later than this has been asleep: the model starts again from the clock instead of catching up."""


class PromptTooLongError(Exception):
    """Prompt and reply together exceed the engine's memory."""


class Seat:
    """A request's place in the engine. Iterate it for progress; it ends when the request does."""

    def __init__(self, key: int) -> None:
        self.key = key
        self._progress: asyncio.Queue[Progress | None] = asyncio.Queue()
        self.ended = False

    def tell(self, progress: Progress | None) -> None:
        """Pass on progress; None says that there will be no more."""
        if not self.ended:
            self._progress.put_nowait(progress)
            self.ended = progress is None or progress.done

    async def __aiter__(self) -> AsyncIterator[Progress]:
        while (progress := await self._progress.get()) is not None:
            yield progress
            if progress.done:
                return


class Engine:
    """Runs the model in real time. `run` must be running for anything to happen."""

    def __init__(self, figures: Figures) -> None:
        self._model = EngineModel(figures)
        self._keys = itertools.count(1)
        self._seats: dict[int, Seat] = {}
        self._arrived = asyncio.Event()

    def enter(
        self, prompt: Sequence[Piece], *, reply_tokens: int, reply_prefix: str, stalls_after: int | None = None
    ) -> Seat:
        """Queue a request.

        Raises:
            PromptTooLongError: it could never run here.
        """
        request = Request(
            key=next(self._keys),
            prompt=tuple(prompt),
            reply_tokens=reply_tokens,
            reply_prefix=reply_prefix,
            stalls_after=stalls_after,
        )
        if not self._model.fits(request):
            raise PromptTooLongError
        seat = self._seats[request.key] = Seat(request.key)
        self._model.submit(request, asyncio.get_running_loop().time())
        self._arrived.set()
        return seat

    def leave(self, seat: Seat) -> None:
        """Give a seat up, finished or not: what has not been made never will be. Twice is once."""
        if self._seats.pop(seat.key, None) is not None:
            self._model.abort(seat.key)
            self._arrived.set()
            seat.tell(None)

    def leave_all(self) -> None:
        """End every request, as an engine that stops does."""
        for seat in tuple(self._seats.values()):
            self.leave(seat)

    def gauges(self) -> Gauges:
        """Return what the engine says of itself now."""
        return self._model.gauges()

    async def run(self) -> None:
        """Step until cancelled; requests end with it."""
        try:
            await self._step()
        finally:
            self.leave_all()

    async def _step(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while True:
            end = self._model.begin_step(now)
            if end is None:
                self._arrived.clear()
                await self._arrived.wait()
                now = loop.time()
                continue
            await asyncio.sleep(max(0.0, end - loop.time()))
            for progress in self._model.end_step():
                seat = self._seats.get(progress.key)
                if seat is not None:
                    seat.tell(progress)
            now = end if loop.time() - end < LAG_S_MAX else loop.time()
