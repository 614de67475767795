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
        (-account.flying - account.waiting, party)
        for party, account in standings.of.items()
        if isinstance(party, tuple)
    )
    shown = [(party, standings.of[party]) for _, party in nsmallest(CALLERS_SHOWN, ranked)]
    return tuple(
        CallerView(principal=party[0], caller=party[1], in_flight=account.flying, held=account.waiting)
        for party, account in shown
    )
