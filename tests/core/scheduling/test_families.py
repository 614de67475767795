"""Which runs were begun by which, and whether somebody works for a run that waits."""

from core.scheduling.builders import World, arrived, failed, finished, known_run, spec
from core.scheduling.histories import history
from luftpause.core.model.ids import Instant, PeerId, RunId
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import PeerResynced, RunEnded
from luftpause.core.scheduling.families import LOOKED_AT_MAX, last_at_work
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Limits, empty_state


def children(world: World, parent: str) -> list[str]:
    return sorted(run for run, _ in world.state.children.get(RunId(parent), ()))


def worked_at(world: World, run: str) -> float | None:
    return last_at_work(world.state.children, world.state.runs, RunId(run), world.now)


def test_a_child_stands_below_the_parent_that_its_latest_turn_names() -> None:
    world = World(spec("a", "m", "n"))
    world.tell_all([arrived("t1", "kid", parent="boss"), arrived("t2", "other", parent="boss")])
    world.tell(arrived("t3", "kid", model="n"))
    assert children(world, "boss") == ["kid", "other"], "the parent need not be known"
    world.tell(arrived("t4", "kid"))
    assert children(world, "boss") == ["kid", "other"], "a turn that names none changes nothing"
    world.tell(arrived("t5", "kid", parent="chief"))
    assert (children(world, "boss"), children(world, "chief")) == (["other"], ["kid"])
    world.tell_all([RunEnded(run=RunId("kid")), RunEnded(run=RunId("other"))])
    assert not world.state.children


def test_a_dataplane_tells_of_parents_again() -> None:
    world = World(spec("a"))
    told = known_run("kid", "a", parent="boss")
    world.tell(PeerResynced(peer=PeerId("p"), turns=(), runs=(told,)))
    assert children(world, "boss") == ["kid"]


def test_work_counts_however_deep_it_is_and_ends_with_the_last_of_it() -> None:
    world = World(spec("a"))
    assert worked_at(world, "boss") is None
    world.tell_all([arrived("t1", "kid", parent="boss"), finished("t1", tools=1), arrived("t2", "toy", parent="kid")])
    world.later(5)
    assert worked_at(world, "boss") == 5.0
    world.tell(failed("t2"))
    world.later(5)
    assert worked_at(world, "boss") == 5.0
    world.tell(RunEnded(run=RunId("toy")))
    assert worked_at(world, "boss") == 0.0


def test_families_may_go_in_circles_and_be_large() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "x", parent="y"), arrived("t2", "y", parent="x"), arrived("t3", "z", parent="z")])
    world.tell_all([finished("t1"), finished("t2"), finished("t3")])
    world.later(1)
    assert [worked_at(world, run) for run in "xyz"] == [0.0] * 3
    kids = tuple(known_run(f"kid{number}", "a", parent="boss", age_s=1.0) for number in range(LOOKED_AT_MAX + 10))
    world.tell(PeerResynced(peer=PeerId("p"), turns=(), runs=kids))
    assert worked_at(world, "boss") == 0.0


def test_the_index_equals_a_scan_whatever_happens() -> None:
    for seed in range(5):
        state, families = empty_state(Limits()), 0
        for event, now in history(seed, 300):
            state = decide(state, event, Instant(now)).state
            check(state)
            families += bool(state.children)
        assert families, f"seed {seed} had no parents"
