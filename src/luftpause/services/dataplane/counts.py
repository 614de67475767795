"""What the dataplane counts, as plain numbers on the way of a turn; `metrics` has Prometheus' words for them."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from luftpause.core.dialects.edits import Edit
from luftpause.core.model.turns import ServiceClass
from luftpause.telemetry.tallies import Tally

T = TypeVar("T")

GONE: Final = "gone"
"""The status counted for a client that left before its answer began."""

_FIRST_BYTE_BUCKETS_S: Final[Sequence[float]] = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_HELD_BUCKETS_S: Final[Sequence[float]] = (0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)


class Counts:
    """What is counted of one class of turns.

    Attributes:
        statuses: how many chat requests were answered, by status.
        held: seconds that turns waited for their place.
        first_byte: seconds that turns waited for their engine's first byte.
    """

    __slots__ = ("first_byte", "held", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.held = Tally(_HELD_BUCKETS_S)
        self.first_byte = Tally(_FIRST_BYTE_BUCKETS_S)

    def answered(self, status: str) -> None:
        """Count a chat request."""
        self.statuses[status] = self.statuses.get(status, 0) + 1


class DoorCounts:
    """All that one dataplane counts.

    Attributes:
        by_class: the counts of each class; None: of requests that were refused before it was known.
        tools_left_out: how often each tool was offered in a request and no engine was told of it.
        edits: how often each change was made to a request.
    """

    def __init__(self) -> None:
        self.by_class: dict[ServiceClass | None, Counts] = {kind: Counts() for kind in (*ServiceClass, None)}
        self.tools_left_out: dict[str, int] = {}
        self.edits: dict[Edit, int] = {}

    def of(self, service_class: ServiceClass | None) -> Counts:
        """Return the counts of a class; None: of requests that were refused before it was known."""
        return self.by_class[service_class]

    def left_out(self, tools: Iterable[str]) -> bool:
        """Count tools that a request offered and no engine was told of; return whether one of them is new here."""
        return _counted(tools, self.tools_left_out)

    def edited(self, edits: Iterable[Edit]) -> bool:
        """Count changes that were made to a request; return whether one of them is new here."""
        return _counted(edits, self.edits)


def _counted(found: Iterable[T], counts: dict[T, int]) -> bool:
    new = False
    for each in found:
        new = new or each not in counts
        counts[each] = counts.get(each, 0) + 1
    return new
