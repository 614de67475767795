"""Who waits, in the order in which they go: an index over the held turns and the standings.

The principals by standing, and for each of them its callers, each with the queues that its turns stand in: a queue
holds the turns of one class for one pool, and is a bit here. So the next one of a queue, or of several, is found
without a look at the others, however many callers wait; and a standing that changes moves one entry, in however many
queues its turns stand. Who does not wait is not in it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from immutables import Map

from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.ranking import Bits, Ranking
from luftpause.core.scheduling.standings import Payer, PayerStanding, Standing, Standings


class Candidate(NamedTuple):
    """A payer that waits, and in which queues."""

    principal: PrincipalId
    caller: CallerId
    queues: Bits


class Lineup(NamedTuple):
    """All that wait.

    Attributes:
        principals: those with held turns; a principal's queues are those of all its callers.
        callers: those with held turns, for each principal.
    """

    principals: Ranking = Ranking()
    callers: Map[PrincipalId, Ranking] = Map()

    def first(self, among: Bits) -> Candidate | None:
        """Return who goes first of those whose turns stand in any of some queues; None when nobody's do."""
        first = self.principals.first(among)
        if first is None:
            return None
        principal = PrincipalId(first.name)
        caller = self.callers[principal].first(among)
        assert caller is not None, f"{principal} stands in {first.queues:b} and none of its callers does"
        return Candidate(principal, CallerId(caller.name), caller.queues)

    def callers_waiting(self, principal: PrincipalId) -> int:
        """Return how many callers of a principal have held turns."""
        callers = self.callers.get(principal)
        return 0 if callers is None else callers.size

    def in_order(self, among: Bits) -> Iterator[Candidate]:
        """Yield all whose turns stand in any of some queues."""
        for of_principal in self.principals.entries(among):
            principal = PrincipalId(of_principal.name)
            for of_caller in self.callers[principal].entries(among):
                yield Candidate(principal, CallerId(of_caller.name), of_caller.queues)

    def joined(self, payer: Payer, standing: PayerStanding, queue: Bits) -> "Lineup":
        """Note that turns of a payer begin to stand in a queue."""
        principal, caller = payer
        before = self.callers.get(principal, _NOBODY)
        callers = self.callers.set(principal, before.joined(standing[1], caller, queue))
        if before.queues & queue:
            return Lineup(self.principals, callers)
        return Lineup(self.principals.joined(standing[0], principal, queue), callers)

    def left(self, payer: Payer, standing: PayerStanding, queue: Bits) -> "Lineup":
        """Note that no turn of a payer stands in a queue any more."""
        principal = payer[0]
        left = self.callers[principal].left(standing[1], queue)
        callers = self.callers.set(principal, left) if left.chunks else self.callers.delete(principal)
        if left.queues & queue:
            return Lineup(self.principals, callers)
        return Lineup(self.principals.left(standing[0], queue), callers)

    def moved(self, payer: Payer, old: PayerStanding, new: PayerStanding) -> "Lineup":
        """Note that the standing of a payer with held turns changed."""
        principals = self.principals if old[0] == new[0] else self.principals.moved(old[0], new[0])
        if old[1] == new[1]:
            return self if principals is self.principals else Lineup(principals, self.callers)
        callers = self.callers[payer[0]].moved(old[1], new[1])
        return Lineup(principals, self.callers.set(payer[0], callers))

    def principal_moved(self, old: Standing, new: Standing) -> "Lineup":
        """Note that the standing of a principal with held turns changed, and that of no caller of its that waits."""
        return self if old == new else Lineup(self.principals.moved(old, new), self.callers)

    def followed(self, before: Standings, after: Standings, payer: Payer) -> "Lineup":
        """Move whoever waits of a payer and its principal, after a change of the payer's standing."""
        of_principal, of_payer = after.of.get(payer[0]), after.of.get(payer)
        if of_principal is None or not of_principal.waiting:
            return self
        if of_payer is None or not of_payer.waiting:
            return self.principal_moved(before.of[payer[0]].standing, of_principal.standing)
        return self.moved(payer, before.of_payer(payer), (of_principal.standing, of_payer.standing))


_NOBODY: Final = Ranking()
