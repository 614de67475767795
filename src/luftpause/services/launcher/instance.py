"""One engine process as the launcher holds it: its plan, its state, and the process behind the latest attempt."""

from dataclasses import dataclass, field

from luftpause.core.model.ids import Instant
from luftpause.core.model.replicas import Endpoint, ReplicaSpec
from luftpause.core.processes.state import EngineProcess
from luftpause.core.processes.view import view
from luftpause.ports.processes import RunningProcess
from luftpause.services.launcher.loading import LoadProgress
from luftpause.services.launcher.planning import EnginePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    """One engine process for status pages and progress lines.

    Attributes:
        state: starting, ready, stopping, backing-off or exited.
        url: where it listens, empty before its first start.
        pid: its process, 0 when there is none.
        since_s: how long it has been in that state, seconds.
        why: one sentence without its full stop; empty when there is nothing to explain.
    """

    model: str
    instance: int
    instances: int
    replica: str
    state: str
    url: str
    pid: int
    since_s: float
    why: str


@dataclass(slots=True, kw_only=True)
class Instance:
    """The launcher's own, changed by it alone.

    Attributes:
        port: of the latest attempt; 0 before the first.
        progress: of the latest attempt's load.
        log_seen: number of the first line that its progress was not read from.
        looked_at: when its progress was looked at last.
    """

    plan: EnginePlan
    state: EngineProcess
    port: int = 0
    running: RunningProcess | None = None
    progress: LoadProgress = field(default_factory=lambda: LoadProgress(0))
    log_seen: int = 0
    looked_at: float = 0.0

    @property
    def endpoint(self) -> Endpoint:
        """Where the latest attempt listens. Only engines with a port have one."""
        assert self.port, "an engine that was never started listens nowhere"
        return self.plan.endpoint_at(self.port)

    def spec(self) -> ReplicaSpec:
        """Return the replica as the scheduler is to know it."""
        return ReplicaSpec(
            replica=self.plan.replica,
            endpoint=self.endpoint,
            models=self.plan.models[:1],  # the scheduler knows its aliases from the catalogue
            engine=self.plan.engine,
            health=self.plan.health,
        )

    def view(self, now: Instant) -> InstanceView:
        """Return what there is to say about it now."""
        process = view(self.state, now)
        return InstanceView(
            model=self.plan.models[0],
            instance=self.plan.instance,
            instances=self.plan.instances,
            replica=self.plan.replica,
            state=process.state,
            url=self.endpoint.url if self.port else "",
            pid=self.running.pid if self.running else 0,
            since_s=process.since_s,
            why=process.why,
        )
