"""Where open turns are listed: held ones in lanes, in order of arrival, and under the home that they are away from."""

from typing import NamedTuple, TypeAlias

from immutables import Map

from luftpause.core.model.ids import PeerId, TurnId
from luftpause.core.scheduling.lineup import Lineup
from luftpause.core.scheduling.places import NOWHERE, Place, Places, inserted, taken_out
from luftpause.core.scheduling.ranking import Bits
from luftpause.core.scheduling.standings import PayerStanding
from luftpause.core.scheduling.state import Bucket, HeldTurn, Lane, Life, Pool, Queue, Turn

Away: TypeAlias = Map[Life, Map[TurnId, Place]]


def open_turns(turns: Map[TurnId, Turn], held: Map[TurnId, HeldTurn]) -> list[tuple[TurnId, PeerId, Bucket]]:
    """Return all open turns, in flight and held, with their dataplanes, and when they are over."""
    flying = [(turn, known.arrival.peer, known.over_in) for turn, known in turns.items()]
    return flying + [(turn, known.arrival.peer, known.over_in) for turn, known in held.items()]


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


class Line(NamedTuple):
    """The indices over held turns, as `State` has them. It is read by name: to unpack it costs more than to make it."""

    lanes: Map[Pool, Map[Lane, Places]]
    away: Away
    queue_bits: Map[Queue, Bits]
    lineup: Lineup


def stood_in(line: Line, held: HeldTurn, standing: PayerStanding) -> Line:
    """Return the indices when a turn begins to wait, or moved."""
    lanes, queue_bits, lineup = line.lanes, line.queue_bits, line.lineup
    of_pool: Map[Lane, Places] = lanes.get(held.pool) or Map()
    lane = held.lane
    places = of_pool.get(lane, NOWHERE)
    of_pool = of_pool.set(lane, inserted(places, held.place))
    if not places:
        bit = queue_bits.get(held.queue)
        if bit is None:
            taken = lineup.principals.queues
            bit = ~taken & (taken + 1)  # the lowest that is free
            queue_bits = queue_bits.set(held.queue, bit)
        lineup = lineup.joined(held.payer, standing, bit)
    return Line(lanes.set(held.pool, of_pool), gone(line.away, held), queue_bits, lineup)


def stepped_out(line: Line, held: HeldTurn, standing: PayerStanding) -> Line:
    """The inverse of `stood_in`."""
    lanes, queue_bits, lineup = line.lanes, line.queue_bits, line.lineup
    of_pool, lane = lanes[held.pool], held.lane
    places = taken_out(of_pool[lane], held.place)
    of_pool = of_pool.set(lane, places) if places else of_pool.delete(lane)
    lanes = lanes.set(held.pool, of_pool) if of_pool else lanes.delete(held.pool)
    if not places:
        bit = queue_bits[held.queue]
        lineup = lineup.left(held.payer, standing, bit)
        if not lineup.principals.queues & bit:
            queue_bits = queue_bits.delete(held.queue)
    return Line(lanes, back(line.away, held), queue_bits, lineup)
