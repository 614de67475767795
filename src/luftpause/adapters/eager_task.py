"""A task that begins where it is made and goes on where what it waits for comes, in place of at the loop's next round.

An `asyncio.Task` is a handle in the loop's queue for each step, an entry in a set of all tasks, and a future for all
that it waits for: for a request that waits once, for its engine, a tenth of what it costs. This is a task of our own,
as asyncio's documentation ("Extending") describes them: asyncio knows which one runs, and `asyncio.timeout` and futures
work in it. Libraries that keep books on tasks, as anyio does, need asyncio's.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, TypeAlias

from luftpause.ports.asgi import Running

_Future: TypeAlias = Any
"""What `asyncio.isfuture` calls one: its own are only some of them."""
_OVER: Final = object()
_LOGGER: Final = logging.getLogger("luftpause.http")
_NEXT: Final[Any] = next  # a compiled module asks for a builtin each time it passes one on
_CONTEXT: Final = contextvars.copy_context
_ENTER: Final[Any] = vars(asyncio)["_enter_task"]  # their stubs know no tasks but asyncio's own
_LEAVE: Final[Any] = vars(asyncio)["_leave_task"]


class EagerTask:
    """Runs a coroutine to its end, in a context of its own. It must not raise but when it is cancelled.

    Cancelling counts as it does in an `asyncio.Task`.

    Args:
        coroutine: what it runs.
        loop: the running event loop.
        ended: called when the coroutine has ended.
    """

    __slots__ = ("_awaited", "_cancels", "_context", "_ended", "_is_over", "_loop", "_must_cancel", "_steps")

    def __init__(
        self,
        coroutine: Coroutine[Any, None, None],
        loop: asyncio.AbstractEventLoop,
        ended: Callable[["EagerTask"], object],
    ) -> None:
        self._steps: Any = coroutine.__await__()
        self._loop = loop
        self._ended = ended
        self._context = _CONTEXT()
        self._awaited: Any = None
        self._must_cancel = False
        self._cancels = 0
        self._is_over = False

    def step(self, error: BaseException | None = None) -> None:
        """Go on, in the caller, up to where the coroutine has to wait. `error` is raised where it waited before."""
        try:
            _ENTER(self._loop, self)
        except RuntimeError:  # another task calls us: it has to come to rest first
            self._loop.call_soon(self.step, error)
            return
        try:
            awaited = self._advance(error)
        except Exception:
            _LOGGER.exception("task_failed")  # who has us go on has nothing to do with it
            awaited = _OVER
        finally:
            _LEAVE(self._loop, self)
        if awaited is _OVER:
            self._is_over = True
            self._ended(self)
        else:
            self._wait_for(awaited)

    def cancel(self, msg: object = None) -> bool:
        """Let the coroutine learn, in the loop's next round, that it is cancelled. Return False if it has ended."""
        if self._is_over:
            return False
        self._cancels += 1
        if self._awaited is None or not self._awaited.cancel(msg=msg):
            self._must_cancel = True
        return True

    def cancelling(self) -> int:
        """Return how often it was cancelled, less how often that was taken back."""
        return self._cancels

    def uncancel(self) -> int:
        """Take one cancellation back; return how many are left."""
        self._cancels = max(0, self._cancels - 1)
        if not self._cancels:
            self._must_cancel = False
        return self._cancels

    def _advance(self, error: BaseException | None) -> object:
        """Return what the coroutine waits for next, `_OVER` when it has ended."""
        self._awaited = None
        if self._must_cancel:
            self._must_cancel = False
            error = asyncio.CancelledError()
        try:
            if error is None:
                return self._context.run(_NEXT, self._steps, _OVER)
            return self._context.run(self._steps.throw, error)
        except (StopIteration, asyncio.CancelledError):
            return _OVER

    def _wait_for(self, awaited: _Future) -> None:
        if isinstance(awaited, Arrival):
            awaited.waiting = self
        elif awaited is None:  # `asyncio.sleep(0)`
            self._loop.call_soon(self.step)
            return
        else:
            awaited._asyncio_future_blocking = False  # as a task says that it has seen it
            awaited.add_done_callback(self.arrived)
        self._awaited = awaited
        if self._must_cancel and awaited.cancel(msg=None):
            self._must_cancel = False

    def arrived(self, future: _Future) -> None:
        """Go on: what was awaited has come, or was cancelled."""
        self.step(asyncio.CancelledError() if future.cancelled() else future.exception())


class Arrival:
    """Something that comes once and that one task waits for. An `EagerTask` goes on within `come`, others soon after.

    To those it is a future of asyncio's.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_context", "_is_cancelled", "_is_over", "_loop", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.waiting: EagerTask | None = None
        self._loop = loop
        self._asyncio_future_blocking = False
        self._callback: Callable[[Arrival], object] | None = None
        self._context: contextvars.Context | None = None
        self._is_over = False
        self._is_cancelled = False

    def come(self) -> None:
        """Let the task go on. Calling it again changes nothing."""
        if self._is_over:
            return
        self._is_over = True
        if self.waiting is not None:
            self.waiting.step()
        else:
            self._call_back()

    def cancel(self, msg: object = None) -> bool:
        """Raise CancelledError where it is awaited. Return False if it has come."""
        if self._is_over:
            return False
        self._is_over = self._is_cancelled = True
        self._call_back()
        return True

    def cancelled(self) -> bool:
        """Say whether it was cancelled."""
        return self._is_cancelled

    def exception(self) -> None:
        """Return None: it does not fail."""

    def result(self) -> None:
        """Raise CancelledError if it was cancelled."""
        if self._is_cancelled:
            raise asyncio.CancelledError

    def add_done_callback(
        self, callback: Callable[["Arrival"], object], *, context: contextvars.Context | None = None
    ) -> None:
        """Have the one callback called once it has come, in the loop's next round."""
        self._callback, self._context = callback, context
        if self._is_over:
            self._call_back()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""
        return self._loop

    def __await__(self) -> Generator["Arrival", None, None]:
        """Wait until it has come."""
        if not self._is_over:
            self._asyncio_future_blocking = True
            yield self

    def _call_back(self) -> None:
        if self._callback is not None:
            self._loop.call_soon(self._callback, self, context=self._context)
        elif self.waiting is not None:
            self._loop.call_soon(self.waiting.arrived, self)


class Tasks:
    """The tasks of both kinds that have not ended. Its methods must be called on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[Running] = set()
        self._last_ended: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._running)

    def make(self, coroutine: Coroutine[Any, None, None]) -> Running:
        """Return a task of asyncio's that begins in the loop's next round."""
        task = asyncio.Task(coroutine, loop=self._loop, name="request")  # making a name up costs more
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def make_eager(self, coroutine: Coroutine[Any, None, None]) -> EagerTask:
        """Return a task that waits for its first step."""
        task = EagerTask(coroutine, self._loop, self._ended)
        self._running.add(task)
        return task

    async def ended_within(self, limit_s: float | None) -> bool:
        """Wait until none is left, `limit_s` seconds at most; return whether none is."""
        if not self._running:
            return True
        self._last_ended = asyncio.Event()
        try:
            async with asyncio.timeout(limit_s):
                await self._last_ended.wait()
        except TimeoutError:
            return False
        return True

    async def cancel(self) -> None:
        """Cancel all, and wait until they have ended."""
        for task in tuple(self._running):
            task.cancel()
        await self.ended_within(None)

    def _ended(self, task: Running) -> None:
        self._running.discard(task)
        if self._last_ended is not None and not self._running:
            self._last_ended.set()
