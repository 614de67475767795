"""A launcher in another process, as the scheduler's end of its link holds it."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from luftpause.adapters.link.codec import order_frame
from luftpause.adapters.link.frames import AskLog, LogLines, Ordered
from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.residency.actions import LoadModel
from luftpause.core.scheduling.residency.events import LauncherJoined
from luftpause.ports.launcher import ModelOrder
from luftpause.ports.processes import LogSlice

_ASKED_MAX: Final = 64
"""Questions that are open at once; one more is answered with nothing."""
_ANSWER_S: Final = 5.0


class RemoteSeat:
    """A `LauncherSeat` over one connection. `say` sends a frame, or drops it when the connection is gone."""

    def __init__(self, inventory: LauncherJoined, say: Callable[[Ordered | AskLog], None]) -> None:
        self._inventory = inventory
        self._say = say
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[LogSlice]] = {}

    @property
    def launcher(self) -> LauncherId:
        """Which launcher it is."""
        return self._inventory.launcher

    def took_stock(self, inventory: LauncherJoined) -> None:
        """It told of another inventory."""
        self._inventory = inventory

    def inventory(self) -> LauncherJoined:
        """See `LauncherSeat`: what it told last."""
        return self._inventory

    def ordered(self, order: ModelOrder) -> None:
        """See `LauncherSeat`."""
        # Who pays for it is no business of the launcher's.
        self._say(order_frame(replace(order, payer=None) if isinstance(order, LoadModel) else order))

    async def log(self, model: ModelName, after: int) -> LogSlice:
        """See `LauncherSeat`. Nothing, where the launcher does not answer in time."""
        if len(self._asked) >= _ASKED_MAX:
            return LogSlice(lines=(), next=after)
        number = next(self._numbers)
        answer: asyncio.Future[LogSlice] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._say(AskLog(number, model, after))
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await answer
        except TimeoutError:
            return LogSlice(lines=(), next=after)
        finally:
            del self._asked[number]

    def answered(self, frame: LogLines) -> None:
        """It answered a question; one that nobody waits for any more is dropped."""
        answer = self._asked.get(frame.request)
        if answer is not None and not answer.done():
            answer.set_result(LogSlice(lines=frame.lines, next=frame.next))
