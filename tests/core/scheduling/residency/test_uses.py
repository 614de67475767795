"""Who uses which model, as turns wait, runs pause and tools return: `check` compares it with a scan each time."""

from core.scheduling.builders import World, arrived, finished, known_run, probed, spec
from core.scheduling.residency.words import down, joined, model, up
from luftpause.core.model.ids import ModelName, PeerId, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.events import PeerResynced, RunEnded, TurnAbandoned
from luftpause.core.scheduling.places import all_of, first_of
from luftpause.core.scheduling.residency.state import NOBODY
from luftpause.core.scheduling.residency.uses import model_of, user_of, waiting_place
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.trees import BEGUN_S

A = ModelName("A")


def test_turns_that_wait_are_counted_by_class_in_order_of_arrival() -> None:
    world = World()
    world.tell(joined(model("A")))
    for turn in (arrived("t1", model="A"), arrived("t2", model="A", batch=True), arrived("t3", model="A", age_s=5.0)):
        world.tell(turn)
    waiting = world.state.residency.waiting[A]
    assert [place[2] for place in all_of(waiting.interactive)] == ["t3", "t1"]
    assert [place[2] for place in all_of(waiting.batch)] == ["t2"]
    world.tell(TurnAbandoned(turn=first_of(waiting.interactive)[2]))
    assert world.state.residency.waiting[A].number == 2
    world.tell(up("A"))
    assert world.state.residency.waiting.get(A, NOBODY) is NOBODY


def test_a_run_that_goes_on_waits_for_its_model_since_it_came_whatever_it_ranks_by() -> None:
    world = World(limits=Limits(working_set=WorkingSetLimits()))
    world.tell(joined(model("A")))
    world.tell(arrived("t1", "r", model="A"))
    world.tell(up("A"))
    world.tell(finished("t1", tools=["look"], tokens=1000))
    world.tell(down("A"))
    world.tell(arrived("t2", "r", model="A"))
    held = world.state.held[TurnId("t2")]
    assert held.ranked_at == world.now - BEGUN_S
    assert waiting_place(held) == (world.now, held.seq, "t2")
    assert world.state.residency.waiting[A].interactive == ((waiting_place(held),),)


def test_runs_that_are_out_are_counted_until_they_come_back_or_end() -> None:
    world = World()
    world.tell(joined(model("A")))
    world.tell(arrived("t1", "r", model="A"))
    world.tell(up("A"))
    world.tell(finished("t1", tools=["look"]))
    assert sum(world.state.residency.paused[A].values()) == 1
    world.tell(arrived("t2", "r", model="A"))
    assert A not in world.state.residency.paused
    world.tell(finished("t2", tools=1))
    world.tell(RunEnded(run=arrived("t2", "r").run))
    assert A not in world.state.residency.paused


def test_what_was_known_before_the_launcher_came_is_counted_when_it_comes() -> None:
    world = World(spec("static", "A"))
    world.tell(PeerResynced(peer=PeerId("p"), turns=(), runs=(known_run("r", "gone", model="A", tools=["look"]),)))
    world.tell(probed("static", healthy=False))
    world.hold(arrived("t", model="A"))
    world.tell(joined(model("A")))
    assert sum(world.state.residency.paused[A].values()) == 1
    assert world.state.residency.waiting[A].number == 1


def test_a_model_is_found_by_its_own_name_and_kind_and_by_its_replica() -> None:
    world = World()
    world.tell(joined(model("A")))
    world.tell(arrived("t", model="A"))
    world.tell(up("A"))
    residency = world.state.residency
    found = model_of(residency, ReplicaKind.GENERATIVE, A)
    assert found is not None
    assert model_of(residency, ReplicaKind.SINGLE_PASS, A) is None
    assert found.replica is not None
    assert user_of(residency, found.replica) == found
    assert user_of(residency, spec("static").replica) is None


def test_without_a_launcher_nothing_is_noted() -> None:
    world = World(spec("a"))
    world.place(arrived("t", "r"))
    before = world.state.residency
    world.tell(finished("t", tools=["look"]))
    assert world.state.residency is before
