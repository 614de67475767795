"""What listeners are told: of replicas that are declared, and of those that come and go with a model."""

from core.scheduling.builders import World, arrived, finished, probed, spec
from core.scheduling.residency.words import down, joined, model, unload_asked, up
from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.scheduling.events import Event, ReplicaAdded, ReplicaRemoved
from luftpause.services.scheduler.audience import Audience


class Noted:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def declared(self, spec: ReplicaSpec) -> None:
        self.told.append(f"+{spec.replica}")

    def removed(self, replica: ReplicaId) -> None:
        self.told.append(f"-{replica}")


class Watched:
    """A scheduler with an audience of one."""

    def __init__(self) -> None:
        self.world = World(spec("a"))
        self.audience = Audience()
        self.noted = Noted()
        self.audience.join(self.noted, self.world.state)

    def tell(self, *events: Event) -> list[str]:
        self.noted.told.clear()
        for event in events:
            before = self.world.state
            self.world.tell(event)
            self.audience.follow(event, before, self.world.state)
        return list(self.noted.told)


def test_who_joins_hears_of_all_that_is_declared_and_then_of_changes() -> None:
    watched = Watched()
    assert watched.noted.told == ["+a"]
    assert watched.tell(ReplicaAdded(spec=spec("a"))) == []
    assert watched.tell(ReplicaAdded(spec=spec("b")), probed("b")) == ["+b"]
    assert watched.tell(ReplicaRemoved(replica=ReplicaId("b"))) == ["-b"]


def test_a_models_replica_comes_and_goes_with_it_and_with_nothing_else() -> None:
    watched = Watched()
    assert watched.tell(joined(model("A")), arrived("t", model="A")) == []
    assert watched.tell(up("A")) == ["+box/A"]
    assert watched.tell(ReplicaRemoved(replica=ReplicaId("box/A")), finished("t")) == []
    assert watched.tell(unload_asked("A")) == ["-box/A"]
    assert watched.tell(down("A")) == []
