"""What a replica's memory is charged with as turns come and go."""

from luftpause.core.model.ids import Instant, TurnId
from luftpause.core.scheduling.affinity import Replicas, bound_to
from luftpause.core.scheduling.lineup import Lineup
from luftpause.core.scheduling.standings import Standings
from luftpause.core.scheduling.state import Replica, Run, Turn
from luftpause.core.scheduling.working_set.guests import has_little, with_guest
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.state import Awaiting, Seat


def as_guest(standings: Standings, lineup: Lineup, turn: Turn, limits: WorkingSetLimits | None) -> Turn:
    """Return a turn that is about to be booked in as a guest's, if it is one; who was one before may be none now."""
    payer = turn.arrival.principal, turn.arrival.caller
    if limits is None or not limits.guests:
        is_guest = False
    else:
        is_guest = has_little(standings, lineup, payer, turn.tokens, limits.weights)
    return turn if turn.guest is is_guest else turn._replace(guest=is_guest)


def booked_in(seat: Seat, turn: Turn) -> Seat:
    """Return a replica's seat with one more turn in flight, which may fill it over."""
    if seat.capacity is not None and seat.charged + turn.tokens > seat.capacity:
        seat = seat._replace(overfilled_at=turn.placed_at)
    if turn.guest:
        seat = with_guest(seat, turn.arrival.service_class, turn.tokens)
    return seated(seat, turn)


def may_open_more(before: Seat, after: Seat, turn: Turn) -> bool:
    """Say whether others may begin beside a turn that was booked in who could not before.

    Those that were awaited for too long are awaited no longer, and more is left to others beside more guests.
    """
    return turn.guest or (turn.tokens > 0 and len(after.awaiting) <= len(before.awaiting))


def seated(seat: Seat, turn: Turn) -> Seat:
    """Return a replica's seat with one more turn in flight."""
    seat = seat._replace(in_flight=seat.in_flight + turn.tokens)
    if turn.first_s is not None:
        return seat
    awaited = tuple(each for each in seat.awaiting if each.until > turn.placed_at)
    awaiting = (*awaited, Awaiting(turn.arrival.turn, max(0, turn.tokens - turn.expects), turn.late_at))
    return seat._replace(awaiting=awaiting)


def grown(seat: Seat, turn: Turn, tokens: int, now: Instant) -> Seat:
    """Return a replica's seat when one of its turns is charged with so many tokens more, which may fill it over."""
    if turn.guest:
        seat = with_guest(seat, turn.arrival.service_class, tokens)
    seat = seat._replace(in_flight=seat.in_flight + tokens)
    is_over = seat.capacity is not None and seat.charged > seat.capacity
    return seat._replace(overfilled_at=now) if is_over else seat


def unseated(seat: Seat, turn: Turn) -> Seat:
    """Return a replica's seat with one turn in flight fewer."""
    seat = seat._replace(in_flight=seat.in_flight - turn.tokens)
    if turn.guest:
        seat = with_guest(seat, turn.arrival.service_class, -turn.tokens)
    return seat if turn.first_s is not None else heard(seat, turn.arrival.turn)


def heard(seat: Seat, turn: TurnId) -> Seat:
    """Return a replica's seat when a turn's first token has come, or never will."""
    return seat._replace(awaiting=tuple(each for each in seat.awaiting if each.turn != turn))


def keeping(replicas: Replicas, run: Run, sign: int) -> Replica | None:
    """Return the home of a run that is out on a tool, with its tokens kept there too, or no more; None without one."""
    home = bound_to(replicas, run)
    if home is None:
        return None
    return home._replace(seat=home.seat._replace(kept=home.seat.kept + sign * run.kept))


def opened(replica: Replica) -> Replica:
    """Return a replica closed for nobody."""
    return replica._replace(seat=replica.seat._replace(claimed_by=None))
