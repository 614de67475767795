"""Whether runs come back after an answer that called no tool, and how soon.

Not every harness has tools called in the engine's own way: some read the calls out of the text, and people just go on
talking. To the scheduler such a run is idle after each answer, and so are those that are over. What asks on is learned
of each principal and class; callers are not told apart, they may be new ones each time. An answer counts as its run's
last until that comes back.
"""

from typing import Final, NamedTuple, TypeAlias

from luftpause.core.model.ids import Instant, PrincipalId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.tool_history import NOTHING_HEARD, History, taught
from luftpause.core.scheduling.tool_returns import return_law

Asker: TypeAlias = tuple[PrincipalId, ServiceClass]
"""Whose runs are taken to be alike."""

NEVER_S: Final = 1e9


class Asked(NamedTuple):
    """What an asker's runs did after their answers.

    Attributes:
        answers: how many there were.
        history: after how long runs came back; those that did not are its losses.
    """

    answers: int = 0
    history: History = NOTHING_HEARD


def gone_idle(asked: Asked, now: Instant) -> Asked:
    """Return what is known when one more run had its answer."""
    return Asked(asked.answers + 1, taught(asked.history, NEVER_S, now, is_lost=True))


def come_back(asked: Asked, seconds: float, now: Instant) -> Asked:
    """Return what is known when a run asks on, so long after its answer."""
    history = asked.history
    losses = list(history.losses)
    losses[-1] = max(0.0, losses[-1] - history.unit)
    return Asked(asked.answers, taught(history._replace(losses=tuple(losses)), seconds, now))


def patience_s(asked: Asked, worth_s: float) -> float:
    """Return for how long a place is kept after an answer, where a return to it is worth so many seconds of it."""
    return return_law(asked.history).best_wait(worth_s) if asked.history.returned else 0.0
