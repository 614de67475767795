"""How many turns a replica may have in flight after it failed us, and when it may have any number again.

After an outage its cache is cold and everybody waits for it: it begins with a few turns and may have one more for each
that it answers whole, so the window doubles with every round trip. After a refusal it may have half of what it had,
and one more for each windowful of whole answers. Without a failure there is no window. Knows one replica at a time.
"""

from luftpause.core.scheduling.state import Limits, Replica, Window


def after_outage(limits: Limits) -> Window:
    """Return the window of a replica that was healthy once and is again."""
    return Window(size=max(1, limits.slow_start))


def after_refusal(replica: Replica) -> Window:
    """Return the window of a replica whose engine refuses one of its turns in flight; a refusal never widens one."""
    half = max(1, replica.in_flight // 2)
    return Window(size=half if replica.window is None else min(half, replica.window.size), refused_at=replica.in_flight)


def after_answer(replica: Replica, window: Window, limits: Limits) -> Window | None:
    """Return the window when the engine has answered a turn whole that is still counted; None when none is needed.

    A slow start is over when its window has doubled and was not full, so that nobody waits for it. The window after a
    refusal is over when it is past what was in flight at that refusal. What is answered while the replica is closed
    was asked before the refusal, and proves nothing.
    """
    if replica.closed_until is not None:
        return window
    size, refused_at, answered = window
    if refused_at is None:
        is_full = replica.in_flight + replica.kept >= size
        return Window(size + 1) if is_full or size + 1 < 2 * limits.slow_start else None
    if answered + 1 < size:
        return Window(size, refused_at, answered + 1)
    return Window(size + 1, refused_at) if size < refused_at else None
