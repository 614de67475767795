"""Offers that come sooner than what another peer has to say of their runs.

A turn's end is told before its client can see the answer, and yet the client's next request may be here first: it goes
over another peer's connection, and each connection has its own pace. Such an offer shows signs of a run, as the tool
calls that it echoes, and of none that is known. It waits a moment for the word; then it begins a run of its own. Knows
times and offers, not what is said on a connection.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from luftpause.adapters.link.gathering import Peer
from luftpause.core.model.ids import TurnId
from luftpause.core.model.turns import TurnOffer

WAIT_S: Final = 0.02
"""So long a word is waited for: processes of a busy machine are held up for about as long, and no client minds it."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    peer: Peer
    offer: TurnOffer
    since: float
    timer: asyncio.TimerHandle


class Overtaking:
    """Keeps offers that seem to have overtaken a report.

    Args:
        lacks_word: says of an offer whether it shows signs of a run, and of none that it can be a turn of by now.
        wait_s: how long one waits at most, seconds.
    """

    def __init__(self, lacks_word: Callable[[TurnOffer], bool], *, wait_s: float = WAIT_S) -> None:
        self._lacks_word = lacks_word
        self._wait_s = wait_s
        self._waiting: dict[TurnId, _Waiting] = {}
        self._let_in: TurnId | None = None

    def defers(self, peer: Peer, offer: TurnOffer) -> bool:
        """Say whether an offer must wait; then it is kept here and admitted later. Needs the running event loop."""
        if offer.turn == self._let_in or not self._lacks_word(offer):
            return False
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._wait_s, self._admit, offer.turn)
        self._waiting[offer.turn] = _Waiting(peer, offer, loop.time(), timer)
        return True

    def turn_over(self, turn: TurnId) -> None:
        """A turn has ended, as all may know now: one that waits here, or one that was waited for."""
        if not self._waiting:
            return
        self._drop(turn)
        for waiting in [*self._waiting.values()]:
            if not self._lacks_word(waiting.offer):
                self._admit(waiting.offer.turn)

    def left(self, peer: Peer) -> None:
        """A connection is gone: its peer will offer its turns again when it is back."""
        for turn, waiting in [*self._waiting.items()]:
            if waiting.peer is peer:
                self._drop(turn)

    def close(self) -> None:
        """Forget everything; nobody is admitted any more."""
        for turn in [*self._waiting]:
            self._drop(turn)

    def _admit(self, turn: TurnId) -> None:
        waiting = self._waiting.get(turn)
        self._drop(turn)
        if waiting is None:
            return
        age_s = waiting.offer.age_s + max(0.0, asyncio.get_running_loop().time() - waiting.since)
        before, self._let_in = self._let_in, turn
        try:
            waiting.peer.admit_now(replace(waiting.offer, age_s=age_s))
        finally:
            self._let_in = before

    def _drop(self, turn: TurnId) -> None:
        waiting = self._waiting.pop(turn, None)
        if waiting is not None:
            waiting.timer.cancel()
