"""Taking one turn back from its engine, while nothing of its answer has come and its request may be sent twice."""

import asyncio
from dataclasses import replace
from typing import Final

from luftpause.core.dialects.single_request import CHAT_PATH
from luftpause.core.model.ids import RunId
from luftpause.core.model.turns import ServiceClass, TurnOffer
from luftpause.core.scheduling.events import TurnReturned
from luftpause.ports.asgi import Running
from luftpause.ports.engines import EngineRequest, Exchange
from luftpause.services.dataplane.open_turns import OpenTurns

COMPUTES_ONLY: Final = (CHAT_PATH, b"/v1/completions", b"/v1/messages")
"""What is asked there leaves nothing behind in its engine. Responses may store, and call tools of the engine's own."""


class Recall:
    """One course's turns as far as they may come back: of one after the other, each under its own id."""

    __slots__ = ("_count", "_exchange", "_is_under_way", "_task", "_turns")

    def __init__(self, turns: OpenTurns) -> None:
        self._turns = turns
        self._task: Running | None = None
        self._exchange: Exchange | None = None
        self._is_under_way = False
        self._count = 0

    def allow(self, offer: TurnOffer, request: EngineRequest) -> None:
        """Let the turn be recalled that the running task is about to send, until it is begun or ends."""
        if offer.service_class is ServiceClass.BATCH and request.path.partition(b"?")[0] in COMPUTES_ONLY:
            self._task, self._exchange = running_task(), None
            self._turns.may_return(offer.turn, self._take_back)

    def begun(self, offer: TurnOffer, exchange: Exchange, *, silent: bool) -> bool:
        """Note that the engine answers, and say whether the turn may still come back: while that is `silent`."""
        self._exchange = exchange
        if not silent:
            self._turns.stays(offer.turn)
        return self._turns.returns(offer.turn)

    def is_done(self, offer: TurnOffer) -> bool:
        """Say whether the running task was cancelled to take the turn back; then it is reported back."""
        if not self._is_under_way or self._task is None:
            return False
        self._is_under_way = False
        self._count += 1
        if self._task.uncancel():
            return False  # its client left as well, or has to
        self._turns.end(offer.turn, TurnReturned(turn=offer.turn))
        return True

    def offered_again(self, offer: TurnOffer, run: RunId | None, age_s: float) -> TurnOffer:
        """Return a new turn in the place of one that ended before its answer began; its wait counts from the start."""
        keys = replace(offer.keys, run=run)
        return replace(offer, turn=self._turns.open(), keys=keys, age_s=age_s, recalls=self._count)

    def _take_back(self) -> None:
        assert self._task is not None, "what may return was sent by a task"
        self._is_under_way = True
        self._task.cancel()
        if self._exchange is not None:
            self._exchange.close()  # nothing more of it reaches the client


def running_task() -> Running:
    """Return the task that we are in."""
    task: Running | None = asyncio.current_task()
    assert task is not None, "an ASGI application runs in a task"
    return task
