"""The engine model on the event loop's clock: one task lets each step take its time, requests wait in their seats.

Every token reaches its seat when its step ends. Knows no HTTP and no text.
"""

import asyncio
from collections.abc import AsyncIterator

from luftpause.testkit.engine_model import engine as engine_model
from luftpause.testkit.engine_model.engine import Outcome, Progress
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.engine_model.prefix_tree import Chain
from luftpause.testkit.engine_model.sequence import Request
from luftpause.testkit.fake_engine.metrics import Gauges

LAG_S_MAX = 0.25
"""A loop later than this has been asleep: the model's time stands still meanwhile instead of catching up."""

_LAST = (Outcome.DONE, Outcome.DIED)


class PromptTooLongError(Exception):
    """Prompt and reply together exceed the engine's memory."""


class Seat:
    """A request's place in the engine. Iterate it for the newest progress; it ends when the request does.

    `waits`: what will bring the request to the model; None once it is there.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.ended = False
        self.waits: asyncio.TimerHandle | None = None
        self._newest: Progress | None = None
        self._news = asyncio.Event()

    def tell(self, progress: Progress | None) -> None:
        """Pass on progress; None says that there will be no more."""
        if self.ended:
            return
        self.ended = progress is None or progress.outcome in _LAST
        self._newest = progress or self._newest
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Progress]:
        """Yield what is new. Who is slow to look is told once of several tokens."""
        seen: Progress | None = None
        while True:
            await self._news.wait()
            self._news.clear()
            ended, newest = self.ended, self._newest
            if newest is not None and newest is not seen:
                seen = newest
                yield newest
            if ended:
                return


class Engine:
    """Runs the model in real time. `run` must be running for anything to happen.

    Args:
        figures: how fast and how large it is.
        ttft_s: a request is under way to the model for so long, seconds.
    """

    def __init__(self, figures: EngineFigures, ttft_s: float = 0.0) -> None:
        self._figures = figures
        self._ttft_s = ttft_s
        self._model = engine_model.Engine(figures, each_step=True)
        self._seats: dict[int, Seat] = {}
        self._arrived = asyncio.Event()
        self._lost_s = 0.0
        self._prompt_tokens = 0
        self._cached_tokens = 0

    def enter(self, request: Request) -> Seat:
        """Queue a request.

        Raises:
            PromptTooLongError: it could never run here.
        """
        if not self._model.fits(request):
            raise PromptTooLongError
        seat = self._seats[request.key] = Seat(request)
        if self._ttft_s:
            seat.waits = asyncio.get_running_loop().call_later(self._ttft_s, self._submit, seat)
        else:
            self._submit(seat)
        return seat

    def take_back(self, chain: Chain) -> bool:
        """Keep a prefix that was saved; say whether there was room for it."""
        return self._model.take_back(chain)

    def leave(self, seat: Seat) -> None:
        """Give a seat up, finished or not: what has not been made never will be. Twice is once."""
        if self._seats.pop(seat.request.key, None) is None or seat.ended:
            return
        if seat.waits is not None:
            seat.waits.cancel()
        else:
            self._model.abort(seat.request.key, self._now())
            self._arrived.set()
        seat.tell(None)

    def leave_all(self) -> None:
        """End every request, as an engine that stops does."""
        for seat in tuple(self._seats.values()):
            self.leave(seat)

    def gauges(self) -> Gauges:
        """Return what the engine says of itself: how it stood when its last step ended."""
        running, waiting = self._model.gauges(self._now())
        totals = self._model.totals
        return Gauges(
            running=running,
            waiting=waiting,
            kv_tokens=self._figures.kv_tokens,
            page_tokens=self._figures.page_tokens,
            kv_held=self._model.kv_held,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            prefilled_tokens=totals.prefilled_tokens,
            generated_tokens=totals.generated_tokens,
            retractions=totals.retractions,
            prefill_s=totals.prefilled_tokens / self._figures.prefill_tps,
        )

    async def run(self) -> None:
        """Step until cancelled; requests end with it."""
        try:
            while True:
                at = self._model.next_at
                if at is None:
                    self._arrived.clear()
                    await self._arrived.wait()
                else:
                    await self._let_pass(at)
                    for progress in self._model.advance(at):
                        self._tell(progress)
        finally:
            self.leave_all()

    async def _let_pass(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - self._now()))
        late_s = self._now() - at
        if late_s > LAG_S_MAX:
            self._lost_s += late_s

    def _submit(self, seat: Seat) -> None:
        seat.waits = None
        self._model.submit(seat.request, self._now())
        self._arrived.set()

    def _tell(self, progress: Progress) -> None:
        seat = self._seats.get(progress.key)
        if seat is None:
            return  # it left during the step
        if progress.outcome is Outcome.FIRST_TOKEN:
            self._prompt_tokens += seat.request.prompt_tokens
            self._cached_tokens += progress.cached_tokens
        seat.tell(progress)

    def _now(self) -> float:
        """Return the model's time: the loop's, less what was lost."""
        return asyncio.get_running_loop().time() - self._lost_s
