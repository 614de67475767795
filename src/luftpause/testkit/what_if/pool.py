"""The replicas of a log while it is read: what they serve, and what probes saw of them."""

import statistics
from array import array
from collections.abc import Mapping

from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.testkit.what_if.trace import Probes

PERIODS_MAX = 10_000
"""So many periods between probes are enough to know the usual one."""


class SeenPool:
    """Tell it of declarations and probes."""

    def __init__(self) -> None:
        self._models: dict[ReplicaId, tuple[ModelName, ...]] = {}
        self._healthy: set[ReplicaId] = set()
        self._probes: dict[ReplicaId, Probes] = {}
        self._probed_at: dict[ReplicaId, float] = {}
        self._periods = array("d")

    def declared(self, replica: ReplicaId, models: tuple[ModelName, ...]) -> None:
        """A replica serves these models from now on."""
        self._models[replica] = models

    def found_healthy(self, replica: ReplicaId) -> None:
        """A replica answers."""
        self._healthy.add(replica)

    def probed(self, event: ReplicaProbed, now: float) -> None:
        """A probe ended."""
        replica = event.replica
        if event.healthy:
            self._healthy.add(replica)
        if replica in self._probed_at and len(self._periods) < PERIODS_MAX:
            self._periods.append(now - self._probed_at[replica])
        self._probed_at[replica] = now
        if event.load is None:
            return
        before = self._probes.get(replica, Probes())
        running = event.load.running
        if running < before.running_max:
            return
        full = before.full if running == before.running_max else 0
        self._probes[replica] = Probes(running_max=running, full=full + (event.load.waiting > 0))

    def healthy(self) -> Mapping[ReplicaId, tuple[ModelName, ...]]:
        """Return those that were healthy at some time with their models, in order of their names."""
        return {replica: self._models[replica] for replica in sorted(self._healthy & self._models.keys())}

    def probes(self) -> Mapping[ReplicaId, Probes]:
        """Return what was seen of each replica's load."""
        return dict(self._probes)

    def period_s(self) -> float | None:
        """Return the usual time from one probe of a replica to the next; None without two probes of one."""
        return round(statistics.median(self._periods), 3) if self._periods else None
