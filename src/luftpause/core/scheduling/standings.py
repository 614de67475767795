"""What each party has had of the engines: its turns in flight, and when it was served last.

Where standings are by service, they count what a party was served instead, in tenths of a token: whoever comes back
from idling begins at what the one served last had had, so nothing is saved up.

A party is a principal among principals, or a caller among the callers of its principal. One without turns in flight
is remembered while anybody waits, so that callers of one turn at a time alternate with a flood, and no longer. Who
begins to wait without being remembered counts as served at that moment: nobody gains by changing its name. Knows
nothing of what the order is for.
"""

from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from luftpause.core.model.ids import CallerId, PrincipalId

Payer: TypeAlias = tuple[PrincipalId, CallerId]
"""A caller label below the principal who used it: two principals never share a caller."""

Party: TypeAlias = PrincipalId | Payer

Standing: TypeAlias = tuple[int, int]
"""Turns in flight, and the sequence number of the last placement: smaller goes first. No two parties share one."""

PayerStanding: TypeAlias = tuple[Standing, Standing]
"""That of a payer's principal among principals, and that of its caller among the principal's callers."""

Service: TypeAlias = tuple[int, int]
"""What a placement counts for among principals, and among the principal's callers; see `working_set/weights.py`."""

RESTING_SPARE: Final = 1024
"""So many parties without open turns are remembered, and one more for each that waits, before all are dropped."""


class Standings(NamedTuple):
    """All parties.

    Attributes:
        of: the standing of each party that has open turns, in flight or held.
        waiting: those of them that have held turns, and how many.
        resting: the standing of each party that has no open turn and is remembered.
        flying: turns in flight of each party, where standings are by service; else its standing has that.
        clock: where standings are by service: what the principal served last had had by then; None where they are not.
        clocks: the same of each principal's callers, for principals with open turns.
    """

    of: Map[Party, Standing] = Map()
    waiting: Map[Party, int] = Map()
    resting: Map[Party, Standing] = Map()
    flying: Map[Party, int] = Map()
    clock: int | None = None
    clocks: Map[PrincipalId, int] = Map()

    def of_payer(self, payer: Payer) -> PayerStanding:
        """Return the standing of a payer with open turns."""
        return self.of[payer[0]], self.of[payer]

    def queued(self, payer: Payer, seq: int) -> "Standings":
        """Note that a turn of a payer begins to wait. Where standings are by service, nobody saves up idle time."""
        of, waiting, resting = self.of, self.waiting, self.resting
        for party in (payer[0], payer):
            waiting = waiting.set(party, waiting.get(party, 0) + 1)
            if party not in of:
                standing = resting.get(party)
                if standing is None:
                    standing = 0, seq
                else:
                    resting = resting.delete(party)
                of = of.set(party, (max(standing[0], self._clock_of(party)), standing[1]))
        return Standings(of, waiting, resting, self.flying, self.clock, self.clocks)

    def unqueued(self, payer: Payer) -> "Standings":
        """Note that a turn of a payer waits no more."""
        of, waiting, resting = self.of, self.waiting, self.resting
        for party in (payer[0], payer):
            held = waiting[party] - 1
            if held:
                waiting = waiting.set(party, held)
                continue
            waiting = waiting.delete(party)
            standing = of[party]
            if not (standing[0] if self.clock is None else self.flying.get(party, 0)):
                of, resting = of.delete(party), resting.set(party, standing)
        return Standings(of, waiting, resting, self.flying, self.clock, self.clocks)

    def placed(self, payer: Payer, seq: int, service: Service = (0, 0)) -> "Standings":
        """Note that a turn of a payer was placed, and where standings are by service, what that is worth."""
        if self.clock is not None:
            return self._served(payer, seq, service)
        of, resting = self.of, self.resting
        for party in (payer[0], payer):
            standing = of.get(party)
            in_flight = 0 if standing is None else standing[0]
            if standing is None and party in resting:
                resting = resting.delete(party)
            of = of.set(party, (in_flight + 1, seq))
        return Standings(of, self.waiting, resting, self.flying, self.clock, self.clocks)

    def settled_service(self, payer: Payer, thought: Service, worth: Service) -> "Standings":
        """Note that a turn in flight of a payer is worth more, or less, than was thought when it was placed."""
        of = self.of
        principal, (had, served) = payer[0], of[payer[0]]
        of = of.set(principal, (had + worth[0] - thought[0], served))
        had, served = of[payer]
        of = of.set(payer, (had + worth[1] - thought[1], served))
        return Standings(of, self.waiting, self.resting, self.flying, self.clock, self.clocks)

    def ended(self, payer: Payer) -> "Standings":
        """Note that a turn of a payer in flight ended."""
        of, waiting, resting, flying = self.of, self.waiting, self.resting, self.flying
        for party in (payer[0], payer):
            had, served = of[party]
            in_flight = had if self.clock is None else flying[party]
            if self.clock is not None:
                flying = flying.set(party, in_flight - 1) if in_flight > 1 else flying.delete(party)
            if in_flight > 1 or party in waiting:
                of = of.set(party, (had - 1 if self.clock is None else had, served))
                continue
            of = of.delete(party)
            if waiting:
                resting = resting.set(party, (0 if self.clock is None else had, served))
        return Standings(of, waiting, resting, flying, self.clock, self.clocks)

    def settled(self) -> "Standings":
        """Forget those without open turns when nobody waits, or when they have become too many."""
        waiting, resting = self.waiting, self.resting
        if not resting or (waiting and len(resting) <= RESTING_SPARE + len(waiting)):
            return self
        clocks = self.clocks
        for principal in [name for name in clocks if name not in self.of]:
            clocks = clocks.delete(principal)
        return self._replace(resting=Map(), clocks=clocks)

    def _served(self, payer: Payer, seq: int, service: Service) -> "Standings":
        of, resting, flying = self.of, self.resting, self.flying
        clock, clocks = self.clock or 0, self.clocks
        for party in (payer[0], payer):
            standing = of.get(party)
            if standing is None:
                standing = resting.get(party, (0, seq))
                resting = resting.delete(party) if party in resting else resting
            had = max(standing[0], self._clock_of(party)) if party not in of else standing[0]
            if isinstance(party, tuple):
                clocks = clocks.set(party[0], max(had, clocks.get(party[0], 0)))
            else:
                clock = max(had, clock)
            of = of.set(party, (had + service[isinstance(party, tuple)], seq))
            flying = flying.set(party, flying.get(party, 0) + 1)
        return Standings(of, self.waiting, resting, flying, clock, clocks)

    def _clock_of(self, party: Party) -> int:
        """Return what whoever was served last had had by then, among those that the party is compared with."""
        if self.clock is None:
            return 0
        return self.clocks.get(party[0], 0) if isinstance(party, tuple) else self.clock
