"""Engine steps that follow each other without anything to decide between them, in closed form.

Every step takes a little longer than the one before, because what is decoded gets longer.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stretch:
    """So many steps from an instant on; the first takes `first_s`, each later one `growth_s` more than the last."""

    began_at: float
    steps: int
    first_s: float
    growth_s: float

    def at(self, steps: int) -> float:
        """Return when so many of the steps are over."""
        return self.began_at + steps * self.first_s + self.growth_s * (steps * (steps - 1) / 2)

    @property
    def ends_at(self) -> float:
        """When all of them are over."""
        return self.at(self.steps)

    def step_end_after(self, now: float) -> int:
        """Return how many steps are over at the first end of a step that is not before `now`; at least 1."""
        if self.steps == 1 or now >= self.ends_at:
            return self.steps
        steps = min(max(1, self._estimate(now)), self.steps)
        while steps > 1 and self.at(steps - 1) >= now:
            steps -= 1
        while steps < self.steps and self.at(steps) < now:
            steps += 1
        return steps

    def cut(self, steps: int) -> "Stretch":
        """Return the same steps, but only the first so many."""
        return Stretch(self.began_at, steps, self.first_s, self.growth_s)

    def last_end(self, now: float) -> float:
        """Return the last end of a step at or before `now`; the beginning when none is over."""
        steps = self.step_end_after(now)
        ended = self.at(steps)
        return ended if ended <= now else self.at(steps - 1)

    def _estimate(self, now: float) -> int:
        elapsed = now - self.began_at
        half = self.growth_s / 2
        if half == 0.0:
            return math.ceil(elapsed / self.first_s)
        linear = self.first_s - half
        return math.ceil((math.sqrt(linear * linear + 4 * half * elapsed) - linear) / (2 * half))
