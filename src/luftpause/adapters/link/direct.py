"""The scheduler held by a call: for services in the scheduler's own process."""

from collections.abc import Sequence

from luftpause.core.model.ids import LauncherId, ModelName, PeerId, PrincipalId, ReplicaId, RunId
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import TurnReport
from luftpause.ports.launcher import LauncherDesk, LauncherReport, LauncherSeat
from luftpause.ports.scheduler import Recall, SchedulerDesk, SchedulerLink, Ticket


class DirectLink(SchedulerLink):
    """A `SchedulerLink` whose calls never wait: the desk answers at once, so nothing can be half done."""

    def __init__(self, desk: SchedulerDesk) -> None:
        self._desk = desk

    async def admit(self, offer: TurnOffer) -> Ticket:
        """See SchedulerLink."""
        return self._desk.admit(offer)

    def report(self, report: TurnReport) -> None:
        """See SchedulerLink."""
        self._desk.report(report)

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """See SchedulerLink."""
        self._desk.attend(peer, recall)

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


class DirectLauncherLink:
    """A `LauncherLink` whose calls never wait."""

    def __init__(self, desk: LauncherDesk) -> None:
        self._desk = desk
        self._launcher: LauncherId | None = None

    def join(self, seat: LauncherSeat) -> None:
        """See LauncherLink."""
        inventory = seat.inventory()
        self._launcher = inventory.launcher
        self._desk.joined(seat, inventory)

    def tell(self, report: LauncherReport) -> None:
        """See LauncherLink."""
        assert self._launcher is not None, "it reports before it joined"
        self._desk.told(self._launcher, report)
