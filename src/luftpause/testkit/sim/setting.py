"""Where simulated runs are served: the replicas, how they are looked at, what goes wrong with them. Decides nothing."""

from dataclasses import dataclass, field

from luftpause.core.model.ids import ModelName
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.plans import MODEL
from luftpause.testkit.sim.scenario import Faults, Outage, RouterFigures, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class SimReplica:
    """A replica: its engine, and the models that it serves."""

    engine: EngineFigures
    models: tuple[ModelName, ...] = (MODEL,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a world consists of, but for its runs. The keys mean what they mean in a scenario."""

    replicas: tuple[SimReplica, ...]
    probe_period_s: float = 2.0
    router: RouterFigures = field(default_factory=RouterFigures)
    faults: Faults = field(default_factory=Faults)
    outages: tuple[Outage, ...] = ()

    def serving(self, model: ModelName) -> tuple[int, ...]:
        """Return which replicas serve a model."""
        return tuple(number for number, replica in enumerate(self.replicas) if model in replica.models)


def setting_of(scenario: Scenario) -> Setting:
    """Return the setting that a scenario describes."""
    return Setting(
        replicas=(SimReplica(engine=scenario.engine),) * scenario.replicas,
        probe_period_s=scenario.probe_period_s,
        router=scenario.router,
        faults=scenario.faults,
        outages=scenario.outages,
    )
