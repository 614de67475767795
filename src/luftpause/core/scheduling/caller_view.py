"""Callers as people see them: who has turns here, in flight and held."""

from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.state import State

CALLERS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerView:
    """A caller of a principal, with its turns."""

    principal: PrincipalId
    caller: CallerId
    in_flight: int
    held: int


def view_callers(state: State) -> tuple[CallerView, ...]:
    """Return the callers with most open turns, CALLERS_SHOWN at most."""
    standings = state.standings
    ranked = (
        (-in_flight - standings.waiting.get(party, 0), party, in_flight)
        for party, (in_flight, _) in standings.of.items()
        if isinstance(party, tuple)
    )
    return tuple(
        CallerView(principal=party[0], caller=party[1], in_flight=in_flight, held=standings.waiting.get(party, 0))
        for _, party, in_flight in nsmallest(CALLERS_SHOWN, ranked)
    )
