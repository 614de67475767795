"""How far a load is, from what an engine writes and from the memory it holds. Pure."""

import re
from collections.abc import Sequence
from typing import Final

_PERCENT: Final = re.compile(r"(?<![0-9.])([0-9]{1,3})(?:\.[0-9]+)? ?%")
_WHOLE: Final = 100
_STEP: Final = 0.01
"""Of the memory that a load will take: growth by less is no progress."""
_STEP_BYTES: Final = 64 * 2**20
"""The same where nobody knows what it will take."""
_STEPS_MAX: Final = 200
"""A load gets further so often and no more, so that an engine that only talks is given up at last."""
_LAST: Final = 0.99
"""A load is over when it is told ready, not before."""


class LoadProgress:
    """One load.

    Args:
        memory: what it is thought to take, bytes; 0: nobody knows.
    """

    def __init__(self, memory: int) -> None:
        self._step = max(memory * _STEP, 1.0) if memory else float(_STEP_BYTES)
        self._memory = memory
        self._held = 0
        self._percent = -1
        self._steps = 0
        self.fraction = 0.0

    def further(self, lines: Sequence[str], held: int) -> bool:
        """Take in new lines and the memory held now, bytes; return whether the load got further."""
        percents = [int(found[1]) for line in lines for found in _PERCENT.finditer(line) if int(found[1]) <= _WHOLE]
        said_more = bool(percents) and percents[-1] != self._percent
        if said_more:
            self._percent = percents[-1]
        holds_more = held >= self._held + self._step
        if holds_more:
            self._held = held
        if not said_more and not holds_more:
            return False
        by_memory = held / self._memory if self._memory else 0.0
        self.fraction = min(_LAST, max(self.fraction, by_memory, self._percent / _WHOLE))
        self._steps += 1
        return self._steps <= _STEPS_MAX
