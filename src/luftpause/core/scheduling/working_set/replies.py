"""How long an agent's answers become, before they are there: longer than nine in ten of those it had lately.

A caller's answers are alike, and another's are not: one asks for a word, one for a file. What is charged too little is
taken from others in the middle of their turns, so the mean will not do; until an agent has had a few, it must. What an
answer comes to as it is streamed is learned along with it: so it is seen when one becomes longer than that.

A cap is for answers that never end, not for long ones: none before many are known, and far above the longest.
"""

from math import ceil
from typing import Final, NamedTuple, TypeAlias

from luftpause.core.model.charges import BYTES_MAX, TOKENS_MAX
from luftpause.core.model.ids import CallerId, ModelName, PrincipalId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import TurnArrived, TurnFinished

Agent: TypeAlias = tuple[ModelName, PrincipalId, CallerId]
"""Whose answers are taken to be alike."""

SHARE: Final = 0.9
RECENT_MAX: Final = 20
"""Answers that are remembered of each agent, the latest."""
RECENT_MIN: Final = 5
"""Fewer tell nothing of their longest."""
AGENTS_MAX: Final = 2048

STREAMED_MIN: Final = 16
"""Shorter answers tell nothing of what a token of them comes to: what stands around them is half of it."""
WEIGHT: Final = 0.2
"""Of one answer's bytes per token among those of all before it."""

_BY_ITSELF: Final = "stop"
"""Other reasons may hide a cut: some engines name the tools that were called all the same."""

CAP_MIN: Final = 4096
"""No cap is lower, tokens."""
CAP_MARGIN: Final = 4
"""A cap is so many times the longest answer of those remembered."""


class Replies(NamedTuple):
    """An agent's answers, tokens.

    Attributes:
        recent: in order of their ends.
        long: what nine in ten of them do not exceed; 0 while too few are known.
        token_bytes: what a token of them comes to as it is streamed; 0 while none was.
        cap_min: since one was cut off at a cap, caps are at least that.
    """

    recent: tuple[int, ...] = ()
    long: int = 0
    token_bytes: float = 0.0
    cap_min: int = 0


def agent_of(arrival: TurnArrived) -> Agent:
    """Return whose answer a turn asks for."""
    return arrival.model, arrival.principal, arrival.caller


def after_reply(replies: Replies, usage: Usage, reply_bytes: int = 0) -> Replies:
    """Return what is known of an agent's answers after one more. `reply_bytes`: as it was streamed, else 0."""
    made, token_bytes = usage.completion_tokens, replies.token_bytes
    if made >= STREAMED_MIN and 0 < reply_bytes <= BYTES_MAX:
        seen = reply_bytes / made
        token_bytes += WEIGHT * (seen - token_bytes) if token_bytes else seen
    recent = (*replies.recent, made)
    if len(recent) > RECENT_MAX:
        gone, recent = recent[0], recent[1:]
        if _side(gone, replies.long) == _side(made, replies.long):
            return Replies(recent, replies.long, token_bytes, replies.cap_min)
    if len(recent) < RECENT_MIN:
        return Replies(recent, 0, token_bytes, replies.cap_min)
    return Replies(recent, sorted(recent)[ceil(SHARE * len(recent)) - 1], token_bytes, replies.cap_min)


def _side(reply: int, long: int) -> int:
    """Return on which side of an order statistic an answer lies: one for another on the same side leaves that alone."""
    return 0 if reply == long else 1 if reply > long else -1


def cap_of(replies: Replies) -> int:
    """Return how long an agent's next answer may become at most; 0 while nobody can tell."""
    if len(replies.recent) < RECENT_MAX:
        return 0
    return min(TOKENS_MAX, max(CAP_MIN, CAP_MARGIN * max(replies.recent), replies.cap_min))


def is_cut(finished: TurnFinished) -> bool:
    """Say whether an answer ended because it became as long as we had allowed it.

    Several at once are longer together, and some engines go on: both say that they stopped.
    """
    usage = finished.usage
    return usage is not None and 0 < finished.reply_cap <= usage.completion_tokens and finished.finish != _BY_ITSELF


def after_cut(replies: Replies, cap: int) -> Replies:
    """Return what is known of an agent's answers after one was cut off at a cap: that was too low."""
    return replies._replace(cap_min=max(replies.cap_min, 2 * min(cap, TOKENS_MAX)))
