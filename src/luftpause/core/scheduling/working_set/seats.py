"""What a replica's memory is charged with as turns come and go."""

from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.state import Turn
from luftpause.core.scheduling.working_set.state import Seat


def seated(seat: Seat, turn: Turn) -> Seat:
    """Return a replica's seat with one more turn in flight."""
    if not turn.tokens:
        return seat
    awaiting = (*seat.awaiting, (turn.arrival.turn, turn.tokens))
    return seat._replace(in_flight=seat.in_flight + turn.tokens, awaiting=awaiting)


def unseated(seat: Seat, turn: Turn) -> Seat:
    """Return a replica's seat with one turn in flight fewer."""
    if not turn.tokens:
        return seat
    seat = seat._replace(in_flight=seat.in_flight - turn.tokens)
    return seat if turn.first_s is not None else heard(seat, turn.arrival.turn)


def heard(seat: Seat, turn: TurnId) -> Seat:
    """Return a replica's seat when a turn's first token has come, or never will."""
    return seat._replace(awaiting=tuple(each for each in seat.awaiting if each[0] != turn))
