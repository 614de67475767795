"""Replicas as the bookkeeper sees them."""

from dataclasses import dataclass

from luftpause.core.model.replicas import Load, ReplicaSpec

SLOW_START = 2


@dataclass
class Place:
    """A replica as the account sees it. `width` is what an outage or a refusal leaves it, None if neither does."""

    spec: ReplicaSpec
    healthy: bool = False
    was_well: bool = False
    load: Load | None = None
    closed_until: float | None = None
    width: int | None = None
    refused_at: int | None = None
    in_a_row: int = 0

    def probed(self, load: Load | None) -> None:
        if self.was_well and not self.healthy:
            self.width, self.refused_at, self.in_a_row = SLOW_START, None, 0
        self.healthy = self.was_well = True
        self.load = load

    def fell_ill(self) -> None:
        if self.healthy:
            self.width = self.closed_until = None
        self.healthy, self.load = False, None

    def queues(self) -> bool:
        return self.load is not None and self.load.waiting > 0

    def most(self) -> int:
        """Return how many turns of ours the report of an engine that queues leaves room for."""
        assert self.load is not None
        return max(1, self.load.running)
