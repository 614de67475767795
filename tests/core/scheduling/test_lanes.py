"""Where held turns stand."""

from immutables import Map

from core.scheduling.builders import arrived
from luftpause.core.model.ids import Instant, ReplicaId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.lanes import Away, back, gone
from luftpause.core.scheduling.state import HeldTurn, Life


def held(turn: str, away_from: Life | None = None) -> HeldTurn:
    arrival = arrived(turn)
    return HeldTurn(arrival, Instant(1.0), 7, (ReplicaKind.GENERATIVE, arrival.model), Instant(1.0), 9, away_from)


def test_who_is_away_is_found_by_the_life_of_its_home_and_leaves_nothing() -> None:
    home = ReplicaId("a"), 5
    one, two = held("one", home), held("two", home)
    away: Away = gone(gone(Map(), one), two)
    assert dict(away[home]) == {one.arrival.turn: one.place, two.arrival.turn: two.place}
    assert back(back(away, one), two) == Map()
    assert gone(away, held("three")) is away
    assert back(away, held("three")) is away
