"""What each party has had of the engines: its turns in flight, and when it was served last.

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

RESTING_SPARE: Final = 1024
"""So many parties without open turns are remembered, and one more for each that waits, before all are dropped."""


class Standings(NamedTuple):
    """All parties.

    Attributes:
        of: the standing of each party that has open turns, in flight or held.
        waiting: those of them that have held turns, and how many.
        resting: the standing of each party that has no open turn and is remembered.
    """

    of: Map[Party, Standing] = Map()
    waiting: Map[Party, int] = Map()
    resting: Map[Party, Standing] = Map()

    def of_payer(self, payer: Payer) -> PayerStanding:
        """Return the standing of a payer with open turns."""
        return self.of[payer[0]], self.of[payer]

    def queued(self, payer: Payer, seq: int) -> "Standings":
        """Note that a turn of a payer begins to wait."""
        of, waiting, resting = self
        for party in (payer[0], payer):
            waiting = waiting.set(party, waiting.get(party, 0) + 1)
            if party not in of:
                standing = resting.get(party)
                of = of.set(party, (0, seq) if standing is None else standing)
                if standing is not None:
                    resting = resting.delete(party)
        return Standings(of, waiting, resting)

    def unqueued(self, payer: Payer) -> "Standings":
        """Note that a turn of a payer waits no more."""
        of, waiting, resting = self
        for party in (payer[0], payer):
            held = waiting[party] - 1
            if held:
                waiting = waiting.set(party, held)
                continue
            waiting = waiting.delete(party)
            standing = of[party]
            if not standing[0]:
                of, resting = of.delete(party), resting.set(party, standing)
        return Standings(of, waiting, resting)

    def placed(self, payer: Payer, seq: int) -> "Standings":
        """Note that a turn of a payer was placed."""
        of, waiting, resting = self
        for party in (payer[0], payer):
            standing = of.get(party)
            in_flight = 0 if standing is None else standing[0]
            if standing is None and party in resting:
                resting = resting.delete(party)
            of = of.set(party, (in_flight + 1, seq))
        return Standings(of, waiting, resting)

    def ended(self, payer: Payer) -> "Standings":
        """Note that a turn of a payer in flight ended."""
        of, waiting, resting = self
        for party in (payer[0], payer):
            in_flight, served = of[party]
            if in_flight > 1 or party in waiting:
                of = of.set(party, (in_flight - 1, served))
                continue
            of = of.delete(party)
            if waiting:
                resting = resting.set(party, (0, served))
        return Standings(of, waiting, resting)

    def settled(self) -> "Standings":
        """Forget those without open turns when nobody waits, or when they have become too many."""
        of, waiting, resting = self
        if not resting or (waiting and len(resting) <= RESTING_SPARE + len(waiting)):
            return self
        return Standings(of, waiting, Map())
