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
    peak: int = 0
    surplus: int | None = None
    foreign: int = 0
    heard_at: int | None = None

    def probed(self, load: Load | None, now: int, flying: int) -> None:
        if self.was_well and not self.healthy:
            self.width, self.refused_at, self.in_a_row = SLOW_START, None, 0
        self.healthy = self.was_well = True
        self.load = load
        if load is None:
            self.surplus = self.foreign = 0
        elif self.heard_at != now:
            rest = max(0, load.running + load.waiting - self.peak)
            self.foreign = min(rest, rest if self.surplus is None else self.surplus)
            self.surplus, self.peak, self.heard_at = rest, flying, now

    def fell_ill(self, flying: int) -> None:
        if self.healthy:
            self.width = self.closed_until = self.surplus = self.heard_at = None
            self.foreign, self.peak = 0, flying
        self.healthy, self.load = False, None

    def queues(self) -> bool:
        return self.load is not None and self.load.waiting > 0

    def most(self) -> int:
        """Return how many turns of ours the report of an engine that queues leaves room for."""
        assert self.load is not None
        return max(1, self.load.running - self.foreign)
