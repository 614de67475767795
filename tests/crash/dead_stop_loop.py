"""An event loop that stops dead: at any step of its own or of the disk, without another line of the program running.

Time is virtual, and what goes to threads is done in the loop, a step later, so that every run takes the same steps.
The world that was left behind is taken apart afterwards with `bury`: whatever its `finally` blocks still do reaches
nobody, because the next world goes on with copies of disk and effects.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar

from crash.crashing_disk import CrashError
from luftpause.adapters.journal_file.compaction import StoppedError
from testkit.virtual_time import VirtualLoop

T = TypeVar("T")


class DeadStopLoop(VirtualLoop):
    """Stops before its step number `stop_at`, counted from 0; never where that is None."""

    def __init__(self, stop_at: int | None = None) -> None:
        self._stop_at = stop_at
        self._lost: list[tuple[Callable[..., object], tuple[object, ...], Context | None]] = []
        self.steps = 0
        self.dead = False
        self._buried = False
        super().__init__()

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon(self._step, callback, args, context, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when, self._step, callback, args, context, context=context)

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        self.call_soon(self._work, done, func, args)
        return done

    def _work(self, done: asyncio.Future[T], func: Callable[..., T], args: tuple[object, ...]) -> None:
        try:
            outcome = func(*args)
        except CrashError:
            if self._buried:
                done.cancel()
            else:
                self._die()
        except (OSError, StoppedError) as error:
            if not done.cancelled():
                done.set_exception(error)
        else:
            if not done.cancelled():
                done.set_result(outcome)

    def _step(self, callback: Callable[..., object], args: tuple[object, ...], context: Context | None) -> None:
        if not self.dead and self.steps == self._stop_at:
            self._die()
        if self.dead:
            self._lost.append((callback, args, context))
            return
        self.steps += 1
        callback(*args)

    def _die(self) -> None:
        self.dead = True
        self.stop()

    def bury(self) -> None:
        """End everything that was under way; its effects must not matter any more."""
        self._buried, self.dead, self._stop_at = True, False, None
        self.set_exception_handler(lambda _loop, _context: None)
        for callback, args, context in self._lost:
            self.call_soon(callback, *args, context=context)
        while left := asyncio.all_tasks(self):
            for task in left:
                work = task.get_coro()
                # One that has not begun holds another that would never be awaited: it gets a step first.
                if not inspect.iscoroutine(work) or inspect.getcoroutinestate(work) != inspect.CORO_CREATED:
                    task.cancel()
            self.call_soon(self.stop)
            self.run_forever()
        self.close()


def live(loop: DeadStopLoop, work: Coroutine[Any, Any, T]) -> T | None:
    """Run to the end and return what comes of it, or None when the loop stopped dead. Then `bury` the loop."""
    task = loop.create_task(work)
    task.add_done_callback(lambda _task: loop.stop())
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        asyncio.set_event_loop(None)
    if loop.dead:
        return None
    return task.result()
