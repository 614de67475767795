"""A scheduler whose clock a test moves, with a timeline that watches it."""

from luftpause.core.model.ids import Instant
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings
from luftpause.services.scheduler.timeline import Timeline
from services.scheduler.running import probed


class Clock(SchedulerService):
    """A service whose time stands still until it is told."""

    def __init__(self, settings: SchedulerSettings | None = None) -> None:
        super().__init__(settings or SchedulerSettings())
        self.moment = 100.0

    def now(self) -> Instant:
        return Instant(self.moment)

    def after(self, seconds: float) -> None:
        self.moment += seconds


def watched(
    *replicas: ReplicaSpec, timeline: Timeline | None = None, settings: SchedulerSettings | None = None
) -> tuple[Clock, Timeline]:
    """Start a service with these replicas, all healthy. Needs the running loop."""
    seen = timeline or Timeline()
    service = Clock(settings)
    service.watch(seen)
    service.start()
    for replica in replicas:
        service.add_replica(replica)
        service.probed(probed(replica.replica))
    return service, seen


def told(timeline: Timeline, after: int = 0) -> list[tuple[str, str, float, str]]:
    """Lane, phase, seconds since the start and detail of each change."""
    return [(each.lane.name, each.phase.value, each.at - 100.0, each.detail) for each in timeline.changes(after)]
