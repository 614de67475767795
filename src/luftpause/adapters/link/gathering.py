"""After a restart of the scheduler: whose turns wait until the other peers have told what they know.

A scheduler that was started anew would otherwise fill engines whose turns it has not heard of yet, mint a second run
for a conversation that another peer is about to tell of, and refuse models that a launcher is about to declare. That
there was a restart, and who was there before, is remembered; where it is not, the peers say themselves: one that knew
an earlier scheduler returns. So the first start delays nobody. Knows times and offers, not what is said on a
connection.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from luftpause.core.model.ids import ModelName, PeerId, TurnId
from luftpause.core.model.turns import TurnOffer


class Peer(Protocol):
    """A connection that offers turns."""

    def admit_now(self, offer: TurnOffer) -> None:
        """Admit a turn that was kept waiting."""
        ...


@dataclass(frozen=True, slots=True)
class _Deferred:
    peer: Peer
    offer: TurnOffer
    since: float


class Gathering:
    """Defers offers for at most `grace_s` after the start, seconds, and only after a restart.

    Args:
        grace_s: how long after the start anybody is waited for.
        others_s: how long after a peer returned that nobody remembers the others are waited for: every peer dials again
            within this.
        models: says which models are served now; an offer of another one waits for the whole grace.
        known: the peers of the scheduler before this one, as far as remembered: they are waited for, and no others.
    """

    def __init__(
        self,
        *,
        grace_s: float,
        others_s: float,
        models: Callable[[], Collection[ModelName]],
        known: Collection[PeerId] = (),
    ) -> None:
        self._known = frozenset(known)
        self._missing = set(known)
        self._grace_s = grace_s
        self._others_s = others_s
        self._models = models
        self._ends_at = 0.0
        self._began = False
        self._open = False
        self._waits_for_others = self._heard_of_others = False
        self._strangers: set[Peer] = set()
        self._deferred: dict[TurnId, _Deferred] = {}
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def missing(self) -> Collection[PeerId]:
        """The remembered peers that have not come back and are still waited for."""
        return self._missing

    def start(self) -> None:
        """The scheduler has just been started. Needs the running event loop."""
        self._ends_at = _now() + self._grace_s
        if self._missing:
            self._begin()

    def close(self) -> None:
        """Forget everything; nobody is admitted any more."""
        for timer in self._timers:
            timer.cancel()
        self._deferred.clear()

    def greeted(self, peer: Peer) -> None:
        """A peer said hello; what it knows is still to come."""
        self._strangers.add(peer)

    def resynced(self, peer: Peer, name: PeerId, *, is_returning: bool) -> None:
        """A peer has told all that it knows. `is_returning`: it knew an earlier scheduler."""
        self._strangers.discard(peer)
        self._missing.discard(name)
        is_news = is_returning and name not in self._known and not self._heard_of_others
        if is_news and not self._open and _now() < self._ends_at:  # who was there is not remembered, or not whole
            self._heard_of_others = self._waits_for_others = True
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_at(min(_now() + self._others_s, self._ends_at), self._others_had_time))
            if not self._began:
                self._begin()
        self._try_to_open()

    def _begin(self) -> None:
        self._began = True
        self._timers.append(asyncio.get_running_loop().call_at(self._ends_at, self._end))

    def left(self, peer: Peer) -> None:
        """A connection is gone: its peer will offer its turns again when it is back."""
        self._strangers.discard(peer)
        self._deferred = {turn: entry for turn, entry in self._deferred.items() if entry.peer is not peer}
        self._try_to_open()

    def defers(self, peer: Peer, offer: TurnOffer) -> bool:
        """Say whether an offer must wait; then it is kept here and admitted later."""
        if not self._began or _now() >= self._ends_at or (self._open and offer.model in self._models()):
            return False
        self._deferred[offer.turn] = _Deferred(peer, offer, _now())
        return True

    def withdrawn(self, turn: TurnId) -> None:
        """A turn is over, which may be one that waits here."""
        self._deferred.pop(turn, None)

    def models_changed(self) -> None:
        """Models came: those who waited for them need not wait any more."""
        if self._open:
            self._admit(self._models())

    def _others_had_time(self) -> None:
        self._waits_for_others = False
        self._try_to_open()

    def _try_to_open(self) -> None:
        waits = self._waits_for_others or self._strangers or self._missing
        if self._began and not self._open and not waits:
            self._open = True
            self._admit(self._models())

    def _end(self) -> None:
        self._ends_at = 0.0
        self._open = True
        self._missing.clear()
        self._admit(None)

    def _admit(self, models: Collection[ModelName] | None) -> None:
        """Admit deferred offers of these models, None for any, in the order in which their turns arrived anywhere."""
        chosen = [entry for entry in self._deferred.values() if models is None or entry.offer.model in models]
        for entry in _by_arrival(chosen):
            if self._deferred.pop(entry.offer.turn, None) is entry:
                age_s = entry.offer.age_s + max(0.0, _now() - entry.since)
                entry.peer.admit_now(replace(entry.offer, age_s=age_s))


def _by_arrival(entries: Iterable[_Deferred]) -> list[_Deferred]:
    """Sort by when the turns arrived; those of one peer stay in its order, whatever its clock made of their ages."""
    latest: dict[Peer, float] = {}
    keyed = []
    for entry in entries:
        arrived_at = max(entry.since - entry.offer.age_s, latest.get(entry.peer, -math.inf))
        latest[entry.peer] = arrived_at
        keyed.append((arrived_at, entry))
    return [entry for _, entry in sorted(keyed, key=lambda pair: pair[0])]


def _now() -> float:
    return asyncio.get_running_loop().time()
