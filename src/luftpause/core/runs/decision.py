"""What an event leads to: the state after it, and what to do about it."""

from dataclasses import dataclass

from luftpause.core.runs.actions import Action
from luftpause.core.runs.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The state after an event, and what to do about it, in order."""

    state: State
    actions: tuple[Action, ...] = ()
