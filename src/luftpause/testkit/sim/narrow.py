"""How an outage or a refusal holds a replica back, by the rules: from the width it began with and the answers since."""

from dataclasses import dataclass


@dataclass(slots=True)
class Narrow:
    """Why a replica may not have any number of turns.

    `refused_at` is what was in flight there when its engine refused a turn; None after an outage.
    """

    start: int
    refused_at: int | None = None
    answers: int = 0

    @property
    def width(self) -> int:
        """Return how many turns it may have: one more for each answer, or for each widthful after a refusal."""
        if self.refused_at is None:
            return self.start + self.answers
        width, left = self.start, self.answers
        while left >= width:
            left -= width
            width += 1
        return width

    def answered(self, used: int) -> "Narrow | None":
        """Return what one more whole answer leaves of it; `used` is what was taken or kept until then.

        It is over once a refusal is outgrown, or a slow start has doubled beside free places.
        """
        has_free_places = used < self.width
        wider = Narrow(self.start, self.refused_at, self.answers + 1)
        if self.refused_at is not None:
            return wider if wider.width <= self.refused_at else None
        return None if has_free_places and wider.width >= 2 * self.start else wider


def halved(narrow: Narrow | None, flying: int) -> Narrow:
    """Return what a refusal leaves when so many turns are in flight: half, at least one, and never more than before."""
    half = max(1, flying // 2)
    return Narrow(half if narrow is None else min(half, narrow.width), refused_at=flying)
