"""Deciding again what a log says was decided, and telling the first difference.

Reads lines, one at a time, and knows no file.
"""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from luftpause.adapters.event_log.lines import (
    Entry,
    Gap,
    LineError,
    Segment,
    digest_of,
    event_in,
    orders_text,
    state_in,
)
from luftpause.adapters.event_log.reading import Reading, UnreadableError, unreadable
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.actions import Action, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.state import Decision, State


class DifferenceError(Exception):
    """The log and what is decided now part here. Its text is one line."""


@dataclass(slots=True)
class Replayed:
    """What was found in a log.

    Attributes:
        dropped: events that the log lost.
        torn: lines that were cut short by the end of a process.
        open: segments that nothing says the end of: their process was killed, or the log was cut.
        digests: states that were compared.
        holds: orders to hold, by the name of their reason.
        held_s: how long each placed turn was held, seconds.
    """

    segments: int = 0
    events: int = 0
    dropped: int = 0
    torn: int = 0
    open: int = 0
    digests: int = 0
    placed: int = 0
    refused: int = 0
    holds: Counter[str] = field(default_factory=Counter)
    held_s: "array[float]" = field(default_factory=lambda: array("d"))

    def held_s_at(self, share: float) -> float:
        """Return the time held that this share of the placed turns did not exceed, seconds; 0 without any."""
        in_order = sorted(self.held_s)
        return in_order[max(0, math.ceil(len(in_order) * share) - 1)] if in_order else 0.0

    def count(self, actions: Iterable[Action]) -> None:
        """Count orders."""
        for action in actions:
            match action:
                case PlaceTurn(held_s=held_s):
                    self.placed += 1
                    self.held_s.append(held_s)
                case HoldTurn(why=why):
                    self.holds[type(why).__name__] += 1
                case RefuseTurn():
                    self.refused += 1
                case _:
                    pass


class Watcher(Protocol):
    """Who sees a log being replayed."""

    def began(self, segment: Segment, state: State) -> None:
        """A segment begins with a state; its clock may be another one than that of the segment before."""
        ...

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """An event was taken in, as it was then."""
        ...


class _Nobody:
    """Sees nothing."""

    def began(self, segment: Segment, state: State) -> None:
        """See `Watcher`."""

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See `Watcher`."""


NOBODY: Final = _Nobody()


def replay(
    lines: Iterable[bytes],
    prove: Callable[[State], None] | None = None,
    watcher: Watcher = NOBODY,
) -> Replayed:
    """Take in every event of a log again.

    Args:
        lines: of the log.
        prove: called with the state after every event; raises AssertionError when it is unsound.
        watcher: sees all of it.

    Raises:
        DifferenceError: something else is decided than was then, or the log is none.
    """
    seen = Replayed()
    state: State | None = None
    reading = Reading(lines)
    try:
        for number, line in reading:
            state = _take(line, state, number, seen, prove, watcher)
    except UnreadableError as error:
        raise DifferenceError(str(error)) from error
    seen.torn, seen.open = reading.torn, reading.open
    return seen


def _take(
    line: Segment | Entry | Gap,
    state: State | None,
    number: int,
    seen: Replayed,
    prove: Callable[[State], None] | None,
    watcher: Watcher,
) -> State | None:
    """Take in a line and return the state after it, None when that is unknown."""
    match line:
        case Segment():
            seen.segments += 1
            try:
                begun = state_in(line)
            except LineError as error:
                raise unreadable(number, error) from error
            watcher.began(line, begun)
            return begun
        case Gap(dropped=dropped):
            seen.dropped += dropped
            return None
        case Entry():
            if state is None:
                raise DifferenceError(f"line {number}: an event without a state before it")
            try:
                event = event_in(line)
            except LineError as error:
                raise unreadable(number, error) from error
            decision = _decided(line, event, state, number, seen)
            watcher.decided(state, event, Instant(line.now), decision)
            _prove(line, decision.state, number, prove)
            return decision.state


def _decided(line: Entry, event: Event, before: State, number: int, seen: Replayed) -> Decision:
    """Decide again, and compare."""
    decision = decide(before, event, Instant(line.now))
    orders = orders_text(decision.actions)
    if orders != bytes(line.orders):
        raise DifferenceError(
            f"line {number}: {line.kind} led to {bytes(line.orders).decode()}, and now to {orders.decode()}"
        )
    if line.digest:
        seen.digests += 1
        digest = digest_of(decision.state)
        if digest != line.digest:
            raise DifferenceError(f"line {number}: {line.kind} led to state {line.digest}, and now to {digest}")
    seen.events += 1
    seen.count(decision.actions)
    return decision


def _prove(line: Entry, state: State, number: int, prove: Callable[[State], None] | None) -> None:
    if prove is None:
        return
    try:
        prove(state)
    except AssertionError as unsound:
        raise DifferenceError(f"line {number}: {line.kind} led to an unsound state: {unsound}") from unsound
