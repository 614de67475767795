"""Where open turns are listed: held ones in lanes, in order of arrival, and under the home that they are away from.

And all of them under their dataplane, with the bucket in which they are over without another sign of life.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import TypeAlias

from immutables import Map

from luftpause.core.model.ids import PeerId, TurnId
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Bucket, HeldTurn, Life, Place

Away: TypeAlias = Map[Life, Map[TurnId, Place]]


OpenTurns: TypeAlias = Map[PeerId, Map[TurnId, Bucket]]


def renewed(open_by_peer: OpenTurns, arrivals: Iterable[TurnArrived], bucket: Bucket) -> OpenTurns:
    """Return the open turns after a sign of life of some of them."""
    fresh: dict[PeerId, list[TurnId]] = {}
    for arrival in arrivals:
        if open_by_peer[arrival.peer][arrival.turn] != bucket:
            fresh.setdefault(arrival.peer, []).append(arrival.turn)
    for peer, of_peer in fresh.items():
        open_by_peer = open_by_peer.set(peer, open_by_peer[peer].update(dict.fromkeys(of_peer, bucket)))
    return open_by_peer


def inserted(places: tuple[Place, ...], place: Place) -> tuple[Place, ...]:
    """Return a lane with one more place."""
    position = bisect_left(places, place)
    return (*places[:position], place, *places[position:])


def taken_out(places: tuple[Place, ...], place: Place) -> tuple[Place, ...]:
    """Return a lane without a place of it."""
    position = bisect_left(places, place)
    return places[:position] + places[position + 1 :]


def gone(away: Away, held: HeldTurn) -> Away:
    """Return who is away when a turn begins to wait, or moved."""
    life = held.away_from
    if life is None:
        return away
    others: Map[TurnId, Place] = away.get(life) or Map()
    return away.set(life, others.set(held.arrival.turn, held.place))


def back(away: Away, held: HeldTurn) -> Away:
    """The inverse of `gone`."""
    life = held.away_from
    if life is None:
        return away
    others = away[life].delete(held.arrival.turn)
    return away.set(life, others) if others else away.delete(life)
