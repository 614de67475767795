"""An event loop whose time passes only when nothing else is to be done: hours take no time, and no test sleeps."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
END_S = 1e6
"""Whatever takes longer, seconds of virtual time, never ends."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its clock begins at 0 and jumps to the next timer."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Report what is ready; when nothing is, let the time pass at once."""
        ready = super().select(0)
        if not ready and timeout != 0:
            assert timeout is not None, "nothing will ever happen again"
            self._loop.now += timeout
            assert self._loop.now < END_S, "it never ends"
        return ready


def run_virtual(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on a loop of virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


async def let_pass(seconds: float) -> None:
    """Let virtual time pass."""
    assert isinstance(asyncio.get_running_loop(), VirtualLoop)
    await asyncio.sleep(seconds)
