"""The scheduler held by a call: for services in the scheduler's own process."""

from collections.abc import Sequence

from luftpause.core.model.ids import ModelName, PrincipalId, ReplicaId, RunId
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import TurnReport
from luftpause.ports.scheduler import SchedulerDesk, Ticket


class DirectLink:
    """A `SchedulerLink` whose calls never wait: the desk answers at once, so nothing can be half done."""

    def __init__(self, desk: SchedulerDesk) -> None:
        self._desk = desk

    async def admit(self, offer: TurnOffer) -> Ticket:
        """See SchedulerLink."""
        return self._desk.admit(offer)

    def report(self, report: TurnReport) -> None:
        """See SchedulerLink."""
        self._desk.report(report)

    async def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        """See SchedulerLink."""
        return self._desk.end_run(principal, run)

    async def models(self) -> Sequence[ModelName]:
        """See SchedulerLink."""
        return self._desk.models()

    async def add_replica(self, spec: ReplicaSpec) -> None:
        """See SchedulerLink."""
        self._desk.add_replica(spec)

    async def remove_replica(self, replica: ReplicaId) -> None:
        """See SchedulerLink."""
        self._desk.remove_replica(replica)
