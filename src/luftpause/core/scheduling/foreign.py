"""How much an engine has to do that is none of ours: what it reports beyond the turns that we know of.

A report is older than its arrival: a turn that ended meanwhile is still in it, one that was placed just now is not yet.
So the most turns that were in flight since the last report are taken off, and of two reports in a row the smaller rest
counts: what an engine had for a moment is not foreign. The first report of a replica's life counts at once: whoever is
started anew must not fill engines beside turns that it has not heard of yet. Without a report there is nothing foreign.
"""

from luftpause.core.model.ids import Instant
from luftpause.core.model.replicas import Load
from luftpause.core.scheduling.state import Replica


def after_report(replica: Replica, load: Load | None, now: Instant) -> Replica:
    """Return a healthy replica after a probe with this load; None where no report came in time.

    Two reports of one instant are the same one told twice.
    """
    if load is None:
        return replica._replace(load=None, surplus=0, foreign=0)
    if replica.heard_at == now:
        return replica._replace(load=load)
    surplus = max(0, load.running + load.waiting - replica.peak)
    foreign = surplus if replica.surplus is None else min(surplus, replica.surplus)
    return replica._replace(load=load, surplus=surplus, foreign=foreign, peak=replica.in_flight, heard_at=now)


def after_adoption(replica: Replica) -> Replica:
    """Return the replica when a turn turns out to be ours that its engine had already: it was foreign until now."""
    return replica._replace(foreign=replica.foreign - 1) if replica.foreign else replica
