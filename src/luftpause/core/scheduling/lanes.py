"""Where held turns stand: in lanes, in order of arrival, and under the home that some of them are away from."""

from bisect import bisect_left
from typing import TypeAlias

from immutables import Map

from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.state import HeldTurn, Life, Place

Away: TypeAlias = Map[Life, Map[TurnId, Place]]


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
