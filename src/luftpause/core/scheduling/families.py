"""Which runs were begun by which, and whether somebody works for a run that waits.

A parent is whatever turns of its child name: it may be unknown here, forgotten, or below its own child.
"""

from typing import Final, TypeAlias

from immutables import Map

from luftpause.core.model.ids import Instant, RunId
from luftpause.core.scheduling.state import Part, Run

Children: TypeAlias = Map[RunId, Map[Part, None]]

LOOKED_AT_MAX: Final = 1000
"""So many parts of runs are looked at below one run; a family that is larger goes on by what was seen of it."""


def entered(children: Children, old: Run | None, new: Run | None) -> Children:
    """Return the index with a part of a run entered below its parent, in place of its old self; None: it is no more."""
    before = None if old is None else old.parent
    after = None if new is None else new.parent
    if before == after:
        return children
    if old is not None and before is not None:
        rest = children[before].delete(old.part)
        children = children.set(before, rest) if rest else children.delete(before)
    if new is not None and after is not None:
        known: Map[Part, None] = children.get(after) or Map()
        children = children.set(after, known.set(new.part, None))
    return children


def last_at_work(children: Children, runs: Map[Part, Run], run: RunId, now: Instant) -> Instant | None:
    """Return when anything below a run was last at work: now, while a turn is open there. None where nothing is below.

    Runs that were ended are known no more, and do not count.
    """
    last: Instant | None = None
    seen = {run}
    waiting, looked_at = [run], 0
    while waiting and looked_at < LOOKED_AT_MAX:
        for part in sorted(children.get(waiting.pop(), ())):
            looked_at += 1
            child = runs[part]
            if not child.at_rest:
                return now
            if last is None or child.ended_at > last:
                last = child.ended_at
            if child.run not in seen:
                seen.add(child.run)
                waiting.append(child.run)
    return last
