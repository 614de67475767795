"""How long an agent's answers become, before they are there: longer than nine in ten of those it had lately.

A caller's answers are alike, and another's are not: one asks for a word, one for a file. What is charged too little is
taken from others in the middle of their turns, so the mean will not do; until an agent has had a few, it must.
"""

from math import ceil
from typing import Final, NamedTuple, TypeAlias

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import TurnArrived

Agent: TypeAlias = tuple[ModelName, PrincipalId, CallerId]
"""Whose answers are taken to be alike."""

SHARE: Final = 0.9
RECENT_MAX: Final = 20
"""Answers that are remembered of each agent, the latest."""
RECENT_MIN: Final = 5
"""Fewer tell nothing of their longest."""
AGENTS_MAX: Final = 2048


class Replies(NamedTuple):
    """An agent's answers, tokens.

    Attributes:
        recent: in order of their ends.
        long: what nine in ten of them do not exceed; 0 while too few are known.
    """

    recent: tuple[int, ...] = ()
    long: int = 0


def agent_of(arrival: TurnArrived) -> Agent:
    """Return whose answer a turn asks for."""
    return arrival.model, arrival.principal, arrival.caller


def after_reply(replies: Replies, usage: Usage) -> Replies:
    """Return what is known of an agent's answers after one more."""
    recent = (*replies.recent, usage.completion_tokens)[-RECENT_MAX:]
    if len(recent) < RECENT_MIN:
        return Replies(recent)
    return Replies(recent, sorted(recent)[ceil(SHARE * len(recent)) - 1])
