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
    capacity = seat.capacity
    if capacity is not None and seat.charged + turn.tokens > capacity:
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
    in_flight = seat.in_flight + turn.tokens
    if turn.first_s is not None:
        return seat._replace(in_flight=in_flight)
    awaiting = [each for each in seat.awaiting if each.until > turn.placed_at]
    awaiting.append(Awaiting(turn.arrival.turn, max(0, turn.tokens - turn.expects), turn.late_at))
    return seat._replace(in_flight=in_flight, awaiting=tuple(awaiting))


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
    return seat._replace(awaiting=tuple([each for each in seat.awaiting if each.turn != turn]))


def keeping(replicas: Replicas, old: Run | None, new: Run | None) -> list[Replica]:
    """Return the homes that kept tokens for a run, or do so now, with what they keep when one part of a run changes."""
    before = None if old is None or not old.kept else bound_to(replicas, old)
    after = None if new is None or not new.kept else bound_to(replicas, new)
    kept = 0 if new is None else new.kept
    homes: list[Replica] = []
    if before is not None and old is not None:
        if after is not None and after.replica == before.replica:
            return [_keeping(after, kept - old.kept)]
        homes.append(_keeping(before, -old.kept))
    if after is not None:
        homes.append(_keeping(after, kept))
    return homes


def _keeping(home: Replica, tokens: int) -> Replica:
    return home._replace(seat=home.seat._replace(kept=home.seat.kept + tokens))


def opened(replica: Replica) -> Replica:
    """Return a replica closed for nobody."""
    return replica._replace(seat=replica.seat._replace(claimed_by=None))
