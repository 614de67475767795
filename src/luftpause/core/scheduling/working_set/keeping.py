"""How long a paused run's place is kept: as long as that is worth more than the place.

The place is worth what its tokens cost to prefill again, and costs itself: so a replica's memory in seconds of prefill,
times the weight of the run's class, is what a return may be waited for.
"""

from math import floor, log
from typing import Final

from luftpause.core.model.ids import Instant, ToolName
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.state import Replica
from luftpause.core.scheduling.tool_history import NOTHING_HEARD, Tools
from luftpause.core.scheduling.tool_returns import return_law
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.state import Patience

SPEED: Final = 4000.0
"""Tokens that a replica prefills in a second where nobody has seen it."""

RETURNS_SPARE: Final = 2
RETURNS_SHARE: Final = 8
WORTH_SHARE: Final = 0.25
"""What was found out holds until an eighth more came back, and a few, or a return is worth a quarter more or less."""

WORTH_S_MIN: Final = 0.001
HALF: Final = 0.5
_STEP: Final = log(1.0 + WORTH_SHARE)

WORTH_S: Final = 60.0
"""What a return may be waited for where a replica's memory is unknown: as far as we know nobody is short of it."""


def speed_of(replica: Replica) -> float:
    """Return how many tokens a replica prefills in a second."""
    return replica.seat.speed or SPEED


def worth_s(replica: Replica, service_class: ServiceClass, limits: WorkingSetLimits) -> float:
    """Return for how many seconds of its place a run's return to it makes up."""
    capacity = replica.seat.capacity
    seconds = WORTH_S if capacity is None else capacity / speed_of(replica)
    return seconds * (limits.interactive_weight if service_class is ServiceClass.INTERACTIVE else 1.0)


def worth_step(worth_s: float) -> int:
    """Return a number that is the same for worths that differ little: each replica's is another, and changes."""
    return floor(log(max(worth_s, WORTH_S_MIN)) / _STEP + HALF)


def is_stale(patience: Patience | None, returned: int, worth_s: float) -> bool:
    """Say whether more came back since, or a return is worth something else by now, so that it may not hold."""
    if patience is None or returned - patience.returned > RETURNS_SPARE + patience.returned // RETURNS_SHARE:
        return True
    return abs(worth_s - patience.worth_s) > WORTH_SHARE * patience.worth_s


def found_out(tools: Tools, tool: ToolName, worth_s: float, now: Instant) -> Patience:
    """Return for how long to keep the place of a run that is out on a tool.

    Who is out on it now is seen that long, unless that is longer than runs are remembered as a rule.
    """
    history = tools.histories.get(tool, NOTHING_HEARD)
    law = return_law(history, tools.running_lately(tool, now))
    return Patience(history.returned, worth_s, law.best_wait(worth_s))
