"""Whether callers got their shares: what they took of the engines against what they were entitled to. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from luftpause.testkit.sim.past import AnsweredTurn

CACHED_WEIGHT: Final = 0.1
REPLY_WEIGHT: Final = 2.0
"""What a token counts for, against one of a prompt that has to be computed."""


def service_of(turn: AnsweredTurn) -> float:
    """Return what a turn took of an engine, weighted tokens."""
    computed = turn.prompt_tokens - turn.cached_tokens
    return computed + CACHED_WEIGHT * turn.cached_tokens + REPLY_WEIGHT * turn.reply_tokens


def jain(values: Sequence[float]) -> float:
    """Return Jain's index: 1 when all are equal, 1 / n when one has everything; 1 for none at all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def entitled(total: float, demands: Mapping[str, float]) -> dict[str, float]:
    """Share out a total evenly among all who want something, but to nobody more than it wants (max-min fairness)."""
    shares: dict[str, float] = {}
    left, waiting = total, sorted(demands, key=lambda name: (demands[name], name))
    while waiting:
        name, even = waiting[0], left / len(waiting)
        shares[name] = min(demands[name], even)
        left -= shares[name]
        del waiting[0]
    return shares


def fairness(services: Mapping[str, float], demands: Mapping[str, float]) -> float:
    """Return Jain's index over what each got of what it was entitled to."""
    due = entitled(sum(services.values()), demands)
    return jain([services.get(name, 0.0) / share for name, share in due.items() if share > 0])
