"""What an answered turn teaches of its replica: how fast it prefills, whether it queues, what it bears."""

from typing import Final

from luftpause.core.model.ids import Instant
from luftpause.core.model.replicas import Load
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.state import Turn
from luftpause.core.scheduling.working_set.keeping import SPEED
from luftpause.core.scheduling.working_set.state import Seat

WEIGHT: Final = 0.1
HITS_WEIGHT: Final = 0.05
PREFILL_MIN: Final = 256
"""Less than so many tokens tell nothing of how fast a prefill is."""

HITS_GOOD: Final = 0.8
HITS_BEST: Final = 0.9
RETREAT: Final = 4
HITS_BAD: Final = 0.5
SHRINK: Final = 0.75
SHRINK_PAUSE_S: Final = 5.0
EXCESS_S_MAX: Final = 1.0
WINDOW_MIN: Final = 1024
"""No window is smaller, tokens."""


def after_usage(seat: Seat, turn: Turn, usage: Usage, now: Instant, *, learns: bool) -> Seat:
    """Return a replica's seat after it answered a turn whole."""
    tokens = float(usage.prompt_tokens + usage.completion_tokens)
    seat = seat._replace(turn=seat.turn + WEIGHT * (tokens - seat.turn) if seat.turn else tokens)
    cached = usage.cached_tokens
    if cached is None:
        return seat
    uncached = max(0, usage.prompt_tokens - cached)
    speed, excess_s = seat.speed, seat.excess_s
    if turn.first_s is not None:
        if uncached >= PREFILL_MIN and turn.first_s > 0:
            seen = uncached / turn.first_s
            speed = seen if not speed else speed + (0.3 if seen > speed else 0.02) * (seen - speed)
        excess_s += WEIGHT * (max(0.0, turn.first_s - uncached / (speed or SPEED)) - excess_s)
    seat = seat._replace(speed=speed, excess_s=excess_s)
    if not turn.expects and not seat.kept and learns:
        return _grown(seat, usage.prompt_tokens)  # who has no place there loses none, and nobody else would teach this
    if not turn.expects or usage.prompt_tokens < turn.expects:
        return seat  # it had no place there, or its prompt was rewritten: that is no thrash
    hits = seat.hits + HITS_WEIGHT * (min(1.0, cached / turn.expects) - seat.hits)
    seat = seat._replace(hits=hits)
    return _resized(seat, turn.expects, now) if learns else seat


def after_report(seat: Seat, load: Load, now: Instant) -> Seat:
    """Return a replica's seat after its engine told of its memory; what it took back shrinks it."""
    pool = seat.pool if load.kv_tokens is None or load.kv_tokens <= 0 else load.kv_tokens
    before, counted = seat.preemptions, load.preemptions
    if before is not None and counted is not None and counted > before:
        seat = _shrunk(seat, now)
    if pool != seat.pool or counted != before or seat.window != seat.window_heard:
        seat = seat._replace(pool=pool, preemptions=counted, window_heard=seat.window)
    return seat


def _resized(seat: Seat, context: int, now: Instant) -> Seat:
    if seat.hits < HITS_BAD:
        return _shrunk(seat, now)
    window = seat.window
    if window is None:
        return seat
    # One run more for each windowful of answers, or a quarter of one less: hits are known late, and to overshoot costs.
    if seat.hits < HITS_GOOD:
        return seat._replace(window=max(WINDOW_MIN, window - _step(window, context) // RETREAT))
    return seat if seat.hits < HITS_BEST else _grown(seat, context)


def _grown(seat: Seat, context: int) -> Seat:
    """Return a replica's seat that bears one run more for each windowful of answers, unless its engine queues."""
    window = seat.window
    if window is None or seat.excess_s > EXCESS_S_MAX:
        return seat
    wider = window + _step(window, context)
    if seat.pool is not None and wider >= seat.pool:
        return seat._replace(window=None)
    return seat._replace(window=wider)


def _step(window: int, context: int) -> int:
    return max(1, context * context // max(1, window))


def _shrunk(seat: Seat, now: Instant) -> Seat:
    if seat.shrunk_at is not None and now - seat.shrunk_at < SHRINK_PAUSE_S:
        return seat
    base = seat.charged if seat.window is None else min(seat.window, seat.charged)
    return seat._replace(window=max(WINDOW_MIN, int(base * SHRINK)), shrunk_at=now, hits=(HITS_BAD + HITS_GOOD) / 2)
