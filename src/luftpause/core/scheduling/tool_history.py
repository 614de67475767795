"""How long runs stay out on each tool: what came back, what never did, and who is out now.

A pause begins when a turn ends in tool calls and leaves its run at rest, and ends when the run's next turn arrives. It
teaches one tool. Of several called at once that is the one that usually takes longest: the pause lasts as long as the
slowest call, and that the others took no longer says nothing about when they came back.

Forgetting goes by observation, not by time: a tool that is called once an hour keeps what it taught, a busy one follows
a change within a hundred calls, and nothing changes while nothing happens. Instead of making all old weights smaller
each observation is given a greater one.

Knows no run and no rule: `draft.py` says what happened, `tool_returns.py` what follows from it.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, ldexp, sqrt
from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from luftpause.core.model.ids import Instant, ToolName
from luftpause.core.model.tool_names import TOOLS_MAX, canonical

BOUNDS_S: Final = (*(ldexp(root, power) for power in range(-5, 13) for root in (1.0, sqrt(2.0))), 8192.0)
"""Where one bucket of durations ends and the next begins, seconds: from 1/32 s to 8192 s, each √2 times the last."""

BUCKETS: Final = len(BOUNDS_S) + 1
"""The first begins at 0, the last has no end."""

HALVED_AFTER: Final = 64
"""So many observations later an observation weighs half: all that is remembered weighs as much as 92 of them."""

PRIOR_MEDIAN_S: Final = 2.0
PRIOR_WEIGHT: Final = 0.5
"""Before anything is known, half come back within 2 s, and of those still out after t seconds half within t + 2 more:
P(T > t) = 2 / (2 + t), 19 s on average. That weighs as much as half an observation."""

HISTORIES_MAX: Final = 1000
HISTORIES_DROPPED: Final = 125
"""At one more than HISTORIES_MAX so many go at once, those first that were not heard of for longest."""

OPEN_STEPS: Final = 128
"""The longest pause is so many steps: an open call's start is known no finer, and a tool has no more of them."""

OPEN_STEP_S_MIN: Final = 0.001

Weights: TypeAlias = tuple[float, ...]
"""One for each bucket of durations."""

_GROWTH: Final = 1.0108892860517005  # 2 ** (1 / HALVED_AFTER), written out to be the same on every machine
_UNIT_MAX: Final = 2.0**20
_NOTHING: Final[Weights] = (0.0,) * BUCKETS
_MIDDLES_S: Final = (BOUNDS_S[0] / 2, *((low + high) / 2 for low, high in pairwise(BOUNDS_S)), 2 * BOUNDS_S[-1])


def _prior() -> Weights:
    out = [PRIOR_MEDIAN_S / (PRIOR_MEDIAN_S + bound) for bound in (0.0, *BOUNDS_S)]
    return tuple(PRIOR_WEIGHT * (before - after) for before, after in pairwise((*out, 0.0)))


PRIOR: Final = _prior()


class History(NamedTuple):
    """What one tool taught.

    Attributes:
        returned: pauses that ended as they should, ever.
        returns: their weights by duration.
        losses: weights of runs that were given up while they were out, by how long they had been.
        unit: what the next observation weighs; all weights are relative to it.
        heard_at: when it taught last.
    """

    returned: int
    returns: Weights
    losses: Weights
    unit: float
    heard_at: Instant


NOTHING_HEARD: Final = History(0, _NOTHING, _NOTHING, 1.0, Instant(0.0))


def bucket_of(seconds: float) -> int:
    """Return the bucket that a duration falls in: each holds its lower bound."""
    low, high = 0, len(BOUNDS_S)
    while low < high:  # compiled, this takes a third of what `bisect` takes to look at what it is given
        middle = (low + high) // 2
        if seconds < BOUNDS_S[middle]:
            high = middle
        else:
            low = middle + 1
    return low


def taught(history: History, seconds: float, now: Instant, *, is_lost: bool = False) -> History:
    """Return a history after one more pause, which ended or, `is_lost`, was given up."""
    returns, losses, unit = history.returns, history.losses, history.unit
    if unit > _UNIT_MAX:
        returns, losses, unit = tuple(each / unit for each in returns), tuple(each / unit for each in losses), 1.0
    bucket = bucket_of(seconds)
    weights = list(losses if is_lost else returns)
    weights[bucket] = weights[bucket] + unit
    if is_lost:
        return History(history.returned, returns, tuple(weights), unit * _GROWTH, now)
    return History(history.returned + 1, tuple(weights), losses, unit * _GROWTH, now)


_NOBODY: Final[Map[int, int]] = Map()


class Tools(NamedTuple):
    """All tools, by their canonical names.

    Attributes:
        step_s: width of the steps in which open calls are counted, seconds.
        histories: of each tool that taught anything, HISTORIES_MAX at most.
        out: how many runs are out on each tool since the end of which step.
    """

    step_s: float = 1800.0 / OPEN_STEPS
    histories: Map[ToolName, History] = Map()
    out: Map[ToolName, Map[int, int]] = Map()

    def step(self, since: Instant) -> int:
        """Return the step in which a pause began. It counts from that step's end: so long at least it lasts."""
        return ceil(since / self.step_s)

    def running(self, now: Instant) -> dict[ToolName, list[tuple[float, int]]]:
        """Return for each tool that runs are out on for how long they have been, seconds, and how many.

        Those in one bucket of durations are put together, with their mean. Steps are added up as whole numbers, so the
        order in which they are met does not matter. Costs a look at each step of each tool in which a pause began.
        """
        return {tool: self._running(of_tool, now) for tool, of_tool in self.out.items()}

    def running_lately(self, tool: ToolName, now: Instant) -> list[tuple[float, int]]:
        """Return for how long runs have been out on a tool, seconds, and how many, those out for longest last.

        Those are left out that have been out for longer than runs are remembered as a rule.
        """
        earliest = self.step(now) - OPEN_STEPS
        steps = sorted(self.out.get(tool, _NOBODY).items(), reverse=True)
        return [(max(0.0, now - step * self.step_s), count) for step, count in steps if step >= earliest]

    def slowest(self, names: Sequence[ToolName]) -> ToolName | None:
        """Return the tool that a pause on all of these will teach, None when there is none.

        An unknown one takes as long as the prior says. Of those that take equally long it is the one called first.
        """
        if len(names) < 2:
            return canonical(names[0]) if names else None
        tools = dict.fromkeys(map(canonical, names[:TOOLS_MAX]))
        return max(tools, key=lambda tool: _usual_s(self.histories.get(tool, NOTHING_HEARD)))

    def left(self, tool: ToolName, since: Instant) -> "Tools":
        """Count a run as out on a tool."""
        return self._counted(tool, since, 1)

    def back(self, tool: ToolName, since: Instant) -> "Tools":
        """The exact inverse of `left`; teaches nothing."""
        return self._counted(tool, since, -1)

    def taught(self, tool: ToolName, seconds: float, now: Instant, *, is_lost: bool = False) -> "Tools":
        """Learn from a pause that ended, or was given up."""
        histories = self.histories
        known = histories.get(tool)
        history = taught(NOTHING_HEARD if known is None else known, seconds, now, is_lost=is_lost)
        histories = histories.set(tool, history)
        if known is None and len(histories) > HISTORIES_MAX:
            oldest = sorted((each.heard_at, name) for name, each in histories.items() if name != tool)
            for _, name in oldest[:HISTORIES_DROPPED]:
                histories = histories.delete(name)
        return Tools(self.step_s, histories, self.out)

    def _counted(self, tool: ToolName, since: Instant, change: int) -> "Tools":
        out = self.out
        step, steps = ceil(since / self.step_s), out.get(tool, _NOBODY)
        count = steps.get(step, 0) + change
        steps = steps.set(step, count) if count else steps.delete(step)
        return Tools(self.step_s, self.histories, out.set(tool, steps) if steps else out.delete(tool))

    def _running(self, of_tool: Map[int, int], now: Instant) -> list[tuple[float, int]]:
        sums: dict[int, tuple[int, int]] = {}
        for step, count in of_tool.items():
            bucket = bucket_of(now - step * self.step_s)
            steps, runs = sums.get(bucket, (0, 0))
            sums[bucket] = steps + step * count, runs + count
        return [(max(0.0, now - steps / runs * self.step_s), runs) for _, (steps, runs) in sorted(sums.items())]


def open_step_s(longest_s: float) -> float:
    """Return the width of the steps when no pause is longer than this, seconds."""
    return max(OPEN_STEP_S_MIN, longest_s / OPEN_STEPS)


def total(weights: Sequence[float]) -> float:
    """Return the sum, added up one by one: `sum` of floats is another number in some versions of Python."""
    added = 0.0
    for weight in weights:
        added += weight
    return added


def _seconds(weights: Weights) -> float:
    return total([weight * middle_s for weight, middle_s in zip(weights, _MIDDLES_S, strict=True)])


def _usual_s(history: History) -> float:
    """Return about how long a tool keeps runs out, seconds."""
    _, returns, losses, unit, _ = history
    total_s = (_seconds(returns) + _seconds(losses)) / unit
    return (total_s + _seconds(PRIOR)) / ((total(returns) + total(losses)) / unit + PRIOR_WEIGHT)
