"""Where simulated runs are served: the replicas, how they are looked at, what goes wrong with them. Decides nothing."""

from dataclasses import dataclass, field
from typing import Final

from luftpause.core.model.ids import ModelName
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.plans import MODEL
from luftpause.testkit.sim.scenario import Faults, Outage, RouterFigures, Scenario, Strangers

GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What it takes to have a replica's engine up: bytes, and seconds to load and to be gone again."""

    memory: int
    load_s: float
    stop_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimReplica:
    """A replica: its engine, and the models that it serves. `launch`: None while it is always up."""

    engine: EngineFigures
    models: tuple[ModelName, ...] = (MODEL,)
    launch: Launch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a world consists of, but for its runs. The keys mean what they mean in a scenario; `memory` is in bytes."""

    replicas: tuple[SimReplica, ...]
    probe_period_s: float = 2.0
    router: RouterFigures = field(default_factory=RouterFigures)
    faults: Faults = field(default_factory=Faults)
    outages: tuple[Outage, ...] = ()
    restarts_s: tuple[float, ...] = ()
    strangers: tuple[Strangers, ...] = ()
    memory: int = 0

    @property
    def is_launched(self) -> bool:
        """Whether its engines are loaded and unloaded."""
        return any(replica.launch is not None for replica in self.replicas)

    def serving(self, model: ModelName) -> tuple[int, ...]:
        """Return which replicas serve a model."""
        return tuple(number for number, replica in enumerate(self.replicas) if model in replica.models)


def setting_of(scenario: Scenario) -> Setting:
    """Return the setting that a scenario describes."""
    return Setting(
        replicas=_launched(scenario) or _declared(scenario),
        memory=int(scenario.memory_gib * GIB),
        probe_period_s=scenario.probe_period_s,
        router=scenario.router,
        faults=scenario.faults,
        outages=scenario.outages,
        restarts_s=scenario.restarts_s,
        strangers=scenario.strangers,
    )


def _declared(scenario: Scenario) -> tuple[SimReplica, ...]:
    factors = {pace.replica: pace.factor for pace in scenario.paces}
    alike = scenario.engine
    return tuple(
        SimReplica(engine=alike.sped_up(factors[number]) if number in factors else alike)
        for number in range(scenario.replicas)
    )


def _launched(scenario: Scenario) -> tuple[SimReplica, ...]:
    return tuple(
        SimReplica(
            engine=scenario.engine,
            models=(ModelName(model.name),),
            launch=Launch(memory=int(model.memory_gib * GIB), load_s=model.load_s, stop_s=model.stop_s),
        )
        for model in scenario.models
    )
