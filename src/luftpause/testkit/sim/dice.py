"""Random draws that depend on a name alone: the same name draws the same, on every machine and Python.

So a run's contents do not depend on when it begins, nor on what else was drawn before.
"""

import hashlib
import math
from statistics import NormalDist
from typing import Final

_DRAW_BYTES: Final = 8
_NORMAL: Final = NormalDist()


class Dice:
    """A stream of draws, made from its name."""

    __slots__ = ("_block", "_name", "_number")

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._number = 0
        self._block = b""

    def unit(self) -> float:
        """Draw from between 0 and 1, both excluded."""
        if not self._block:
            self._block = hashlib.blake2b(self._name, salt=self._number.to_bytes(16, "big")).digest()
            self._number += 1
        drawn, self._block = self._block[:_DRAW_BYTES], self._block[_DRAW_BYTES:]
        return (int.from_bytes(drawn, "big") // 4096 + 0.5) / 2.0**52

    def whole(self, low: int, high: int) -> int:
        """Draw a whole number, both ends included."""
        return low + int(self.unit() * (high - low + 1))

    def log_normal(self, median: float, sigma: float) -> float:
        """Draw from a log-normal distribution; `sigma` is the spread of the logarithm."""
        drawn = _NORMAL.inv_cdf(self.unit())
        return median * math.exp(sigma * drawn)

    def exponential(self, mean: float) -> float:
        """Draw the time until the next of events that come independently."""
        return -mean * math.log(self.unit())
