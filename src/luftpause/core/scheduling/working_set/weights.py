"""Who may have more of the engines than others: what a party is served counts for less, the greater its weight is.

Principals are weighed among principals, callers among the callers of one principal. Everybody else's weight is 1.
"""

from typing import Final, NamedTuple

from immutables import Map

from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.standings import Change, Payer, Service


class Weights(NamedTuple):
    """The weights that are not 1, each above 0."""

    principals: Map[PrincipalId, float] = Map()
    callers: Map[CallerId, float] = Map()

    def weighed(self, payer: Payer, service: int) -> Service:
        """Return what some service counts for among principals, and among the callers of the payer's principal."""
        if not self.principals and not self.callers:
            return service, service
        principal, caller = payer
        of_principal, of_caller = self.principals.get(principal), self.callers.get(caller)
        return (
            service if of_principal is None else int(service / of_principal),
            service if of_caller is None else int(service / of_caller),
        )

    def changed(self, payer: Payer, thought: int, worth: int) -> Change:
        """Return by how much a payer was served more, or less, than was thought."""
        before, after = self.weighed(payer, thought), self.weighed(payer, worth)
        return after[0] - before[0], after[1] - before[1]


EVEN: Final = Weights()
