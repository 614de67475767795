"""How long a paused run's place is kept: as long as that is worth more than the place.

The place is worth what its tokens cost to prefill again, and costs itself: so a replica's memory in seconds of prefill,
times the weight of the run's class, is what a return may be waited for.
"""

from typing import Final

from luftpause.core.model.ids import ToolName
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.state import Replica
from luftpause.core.scheduling.tool_history import NOTHING_HEARD, Tools
from luftpause.core.scheduling.tool_returns import return_law
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits

SPEED: Final = 4000.0
"""Tokens that a replica prefills in a second where nobody has seen it."""

WORTH_S: Final = 5.0
"""What a return may be waited for where a replica's memory is unknown."""


def speed_of(replica: Replica) -> float:
    """Return how many tokens a replica prefills in a second."""
    return replica.seat.speed or SPEED


def worth_s(replica: Replica, service_class: ServiceClass, limits: WorkingSetLimits) -> float:
    """Return for how many seconds of its place a run's return to it makes up."""
    capacity = replica.seat.capacity
    seconds = WORTH_S if capacity is None else capacity / speed_of(replica)
    return seconds * (limits.interactive_weight if service_class is ServiceClass.INTERACTIVE else 1.0)


def keep_s(tools: Tools, tool: ToolName | None, worth_s: float) -> float:
    """Return for how long to keep the place of a run that is out on a tool."""
    history = NOTHING_HEARD if tool is None else tools.histories.get(tool, NOTHING_HEARD)
    return return_law(history).best_wait(worth_s)
