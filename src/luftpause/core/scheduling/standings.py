"""What each party has had of the engines: its turns in flight, and when it was served last.

A party is a principal among principals, or a caller among the callers of its principal. One without turns in flight
is remembered while anybody waits, so that callers of one turn at a time alternate with a flood, and no longer. Who
begins to wait without being remembered counts as served at that moment: nobody gains by changing its name. Knows
nothing of what the order is for.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from luftpause.core.model.ids import CallerId, PrincipalId

Payer: TypeAlias = tuple[PrincipalId, CallerId]
"""A caller label below the principal who used it: two principals never share a caller."""

Party: TypeAlias = PrincipalId | Payer

Standing: TypeAlias = tuple[int, int]
"""Turns in flight, and the sequence number of the last placement: smaller goes first."""

RESTING_SPARE: Final = 1024
"""So many parties without turns in flight are remembered at least, before those that do not wait are dropped."""


class Standings(NamedTuple):
    """All parties.

    Attributes:
        of: the standing of each party that has turns in flight, waits, or is remembered.
        resting: those of them that have no turn in flight.
    """

    of: Map[Party, Standing] = Map()
    resting: Map[Party, None] = Map()

    def queued(self, principal: PrincipalId, caller: CallerId, seq: int) -> "Standings":
        """Note that a turn of a caller begins to wait."""
        of, resting = self
        for party in (principal, (principal, caller)):
            if party not in of:
                of, resting = of.set(party, (0, seq)), resting.set(party, None)
        return self if of is self.of else Standings(of, resting)

    def placed(self, principal: PrincipalId, caller: CallerId, seq: int) -> "Standings":
        """Note that a turn of a caller was placed."""
        of, resting = self
        for party in (principal, (principal, caller)):
            in_flight, _ = of.get(party, _NEW)
            if not in_flight and party in resting:
                resting = resting.delete(party)
            of = of.set(party, (in_flight + 1, seq))
        return Standings(of, resting)

    def ended(self, principal: PrincipalId, caller: CallerId, *, is_remembered: bool) -> "Standings":
        """Note that a turn of a caller ended. `is_remembered`: whether anybody waits."""
        of, resting = self
        for party in (principal, (principal, caller)):
            in_flight, served = of[party]
            if in_flight > 1 or is_remembered:
                of = of.set(party, (in_flight - 1, served))
                if in_flight == 1:
                    resting = resting.set(party, None)
            else:
                of = of.delete(party)
        return Standings(of, resting)

    def settled(self, waiting: Iterable[tuple[PrincipalId, CallerId]]) -> "Standings":
        """Forget the parties without a turn in flight, but for those of the callers that wait."""
        kept = {party for payer in waiting for party in (payer[0], payer)}
        resting = {party: None for party in self.resting if party in kept}
        of = self.of
        for party in self.resting:
            if party not in kept:
                of = of.delete(party)
        return Standings(of, Map(resting))


_NEW: Final = (0, 0)
